"""SUMO in a process of its own, and the connection to it."""

import contextlib
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self

from simulator.traffic.errors import TrafficError
from simulator.traffic.sumo.inputs import SumoInputs
from simulator.traffic.sumo.installation import saying, sumo_binary, sumo_environment, traci_module

_LOOPBACK = "127.0.0.1"
_ATTEMPTS = 5
_PORT_TAKEN = "Unable to create listening socket"
_LOADING_S = 600.0
"""A network and its routes that SUMO has not read in ten minutes."""
_POLL_S = 0.01
_ENDING_S = 30.0
"""What SUMO gets to write what its configuration asks for, once it was told to end."""
_DYING_S = 5.0
_LONGEST_READ = 1 << 20


class _Said:
    """A file for what SUMO writes; it keeps its words after it is closed."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "said"
        self.file: IO[bytes] = self._path.open("wb")
        self._last = ""

    def read(self) -> str:
        """Return the last of what was written, at most a MiB of it."""
        if self.file.closed:
            return self._last
        # Opened anew: SUMO writes where the other one points to.
        with self._path.open("rb") as written:
            written.seek(max(0, written.seek(0, os.SEEK_END) - _LONGEST_READ))
            return written.read().decode("utf-8", errors="replace")

    def close(self) -> None:
        """Remove the file."""
        self._last = self.read()
        self.file.close()
        self._folder.cleanup()


class SumoServer:
    """One running SUMO; asked through `asking`, and always ended by `close`.

    SUMO runs beside this process, not in it: it may crash, and its library does not go with pyarrow's. It is
    reached on the loopback interface only, and ends by itself when this process does.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", connection: Any, said: _Said) -> None:
        self._process, self._connection, self._said = process, connection, said
        self._answered = True
        self.version: str = connection.getVersion()[1]

    @classmethod
    def launch(cls, inputs: SumoInputs) -> Self:
        """Start SUMO and have it read its files.

        Raises
        ------
        TrafficError
            If SUMO is not installed, or ends instead: with its own message.
        """
        program, environment = sumo_binary(), dict(sumo_environment())
        traci_module()
        for _ in range(_ATTEMPTS):
            port = _free_port()
            # The port says whose SUMO it is that answers: two runs may have been given the same one.
            mark = f"crowdveil-{port}-{time.time_ns()}"
            command = [str(program), *inputs.arguments(), "--remote-port", str(port), "--save-state.prefix", mark]
            said = _Said()
            process = subprocess.Popen(  # noqa: S603 - SUMO itself, and files the user named
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said.file,
                env=environment,
                start_new_session=True,  # Ctrl-C is for us; we end SUMO
            )
            try:
                connection = _connect(process, port, mark)
                if connection is not None:
                    return cls(process, connection, said)
            except BaseException:
                _end(process)
                said.close()
                raise
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_DYING_S)  # it closes its connection a moment before it ends
            ended = process.poll() is not None
            _end(process)
            said.close()
            if ended and _PORT_TAKEN not in said.read():
                raise TrafficError([f"SUMO does not start: {saying(said.read())}"])
        raise TrafficError([f"SUMO found no free port in {_ATTEMPTS} attempts"])

    @property
    def is_open(self) -> bool:
        """Whether it can still be asked."""
        return self._connection is not None

    @contextlib.contextmanager
    def asking(self, *, what: str) -> Iterator[Any]:
        """Lend the connection to one request.

        Parameters
        ----------
        what
            When or for what, to begin a message with.

        Raises
        ------
        TrafficError
            If SUMO refuses, or is no more: with its own message.
        """
        traci = traci_module()
        if self._connection is None:
            raise TrafficError([f"{what}: SUMO is closed"])
        self._answered = False
        try:
            yield self._connection
        except traci.exceptions.FatalTraCIError:
            raise TrafficError([f"{what}: {self._obituary()}"]) from None
        except traci.exceptions.TraCIException as error:
            # SUMO reports what it cannot go on after as the answer to a step, and then ends.
            self._answered = True
            raise TrafficError([f"{what}: SUMO says: {error}"]) from None
        except OSError as error:
            raise TrafficError([f"{what}: {self._obituary()} ({error})"]) from None
        self._answered = True

    def words(self) -> str:
        """Return what SUMO has written so far, its warnings."""
        return self._said.read()

    def _obituary(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_S)
        code = self._process.returncode
        how = "" if code is None else f", killed by signal {-code}" if code < 0 else f", with exit code {code}"
        return f"SUMO ended the connection{how}: {saying(_errors_of(self.words()))}"

    def close(self) -> None:
        """End SUMO, whatever state it is in; nothing if that is done."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # In the middle of an answer the connection is of no more use.
            if self._answered and self._process.poll() is None:
                with contextlib.suppress(Exception):
                    connection.close(wait=False)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_ENDING_S)
            _hang_up(connection)
        _end(self._process)
        self._said.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _connect(process: "subprocess.Popen[bytes]", port: int, mark: str) -> Any:
    """Wait until SUMO has read its files and answers; None where it has ended, or another SUMO answers."""
    traci = traci_module()
    end = time.monotonic() + _LOADING_S
    while time.monotonic() < end:
        try:
            # One attempt each: with more, traci prints.
            connection = traci.connect(port, numRetries=0, host=_LOOPBACK, proc=process, label=None)
        except traci.exceptions.FatalTraCIError:
            time.sleep(_POLL_S)
            continue
        except traci.exceptions.TraCIException:
            return None  # it has ended
        threading.Thread(target=_hang_up_after, args=(process, connection), daemon=True).start()
        try:
            if connection.simulation.getOption("save-state.prefix") == mark:
                return connection
        except (traci.exceptions.FatalTraCIError, traci.exceptions.TraCIException):
            pass
        _hang_up(connection)
        return None
    raise TrafficError([f"SUMO has not read its files after {_LOADING_S:g} s"])


def _hang_up(connection: Any) -> None:
    """Close the socket without another word; traci has no other way than the one that asks SUMO first."""
    held = getattr(connection, "_socket", None)
    if held is not None:
        held.close()


def _hang_up_after(process: "subprocess.Popen[bytes]", connection: Any) -> None:
    """Wake who waits for an answer once SUMO has ended: whoever else has its port may never give one."""
    held = getattr(connection, "_socket", None)
    process.wait()
    if held is not None:
        with contextlib.suppress(OSError):
            held.shutdown(socket.SHUT_RDWR)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill it, if it has not ended: SUMO in the middle of a step does not listen to anything milder."""
    if process.poll() is None:
        process.kill()
    process.wait()


def _errors_of(words: str) -> str:
    """Leave warnings out: of a SUMO that was killed, its last one is no reason."""
    return "\n".join(line for line in words.splitlines() if not line.startswith("Warning:"))
