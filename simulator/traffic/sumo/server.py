"""SUMO in a process of its own, and the connection to it."""

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from simulator.traffic.errors import TrafficError
from simulator.traffic.sumo.inputs import SumoInputs
from simulator.traffic.sumo.installation import saying, sumo_binary, sumo_environment, traci_module
from simulator.traffic.sumo.port import LOOPBACK, reserved_port
from simulator.traffic.sumo.said import Said, Warned

_ATTEMPTS = 5
_PORT_NOT_OURS = ("Unable to create listening socket", "tcpip::Socket")
"""What SUMO writes where its port is another's, or somebody else came first and went away."""
_LOADING_S = 600.0
"""A network and its routes that SUMO has not read in ten minutes."""
_ANSWER_S = 600.0
"""One step of SUMO that has not ended in ten minutes."""
_POLL_S = 0.01
_DEEPEST = 64
"""How many folders above a file that SUMO is to write the root is, at most."""
_ENDING_S = 30.0
"""What SUMO gets to end by itself, once it was told to."""
_DYING_S = 5.0


class SumoServer:
    """One running SUMO; asked through `asking`, and always ended by `close`.

    SUMO runs beside this process, not in it: it may crash, and its library does not go with pyarrow's. It is
    reached on the loopback interface only, and ends by itself when this process does.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", connection: Any, version: str, said: Said) -> None:
        self._process, self._connection, self._said = process, connection, said
        self._answered = True
        self.version = version

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
            with reserved_port() as port:
                # The port says whose SUMO it is that answers: two runs may have been given the same one.
                mark = f"crowdveil-{port}-{time.time_ns()}"
                said = Said()
                # SUMO puts the prefix behind the folder of every file that its files have it write: so all of them
                # come to lie in a folder of ours. From too deep a folder it leads nowhere, and SUMO ends.
                outputs = said.outputs.resolve()
                prefix = f"{'../' * _DEEPEST}{outputs.relative_to(outputs.anchor).as_posix()}/"
                command = [str(program), *inputs.arguments(), "--output-prefix", prefix]
                command += ["--remote-port", str(port), "--save-state.prefix", mark]
                process = subprocess.Popen(  # noqa: S603 - SUMO itself, and files the user named
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=said.file,
                    env=environment,
                    start_new_session=True,  # Ctrl-C is for us; we end SUMO
                )
                try:
                    answering = _connect(process, port, mark)
                    if answering is not None:
                        return cls(process, *answering, said)
                except BaseException:
                    _end(process)
                    said.close()
                    raise
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_DYING_S)  # it closes its connection a moment before it ends
            ended = process.poll() is not None
            _end(process)
            said.close()
            if ended and not any(words in said.read() for words in _PORT_NOT_OURS):
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
        self._answered, asked = False, time.monotonic()
        try:
            yield self._connection
        except traci.exceptions.FatalTraCIError:
            waited_s = time.monotonic() - asked
            raise TrafficError([f"{what}: {self._silence() if waited_s >= _ANSWER_S else self._obituary()}"]) from None
        except traci.exceptions.TraCIException as error:
            # SUMO reports what it cannot go on after as the answer to a step, and then ends.
            self._answered = True
            raise TrafficError([f"{what}: SUMO says: {error}"]) from None
        except OSError as error:
            raise TrafficError([f"{what}: {self._obituary()} ({error})"]) from None
        self._answered = True

    def warned(self) -> tuple[Warned, ...]:
        """Return what SUMO has warned of so far."""
        return self._said.warned()

    def _silence(self) -> str:
        # traci tells a socket that timed out from one that was closed by nothing.
        if self._process.poll() is None:
            return f"SUMO has not answered for {_ANSWER_S:g} s"
        return self._obituary()

    def _obituary(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_S)
        code = self._process.returncode
        how = "" if code is None else f", killed by signal {-code}" if code < 0 else f", with exit code {code}"
        return f"SUMO ended the connection{how}: {saying(_errors_of(self._said.read()))}"

    def close(self) -> None:
        """End SUMO, whatever state it is in; nothing if that is done."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # In the middle of an answer the connection is of no more use.
            if self._answered and self._process.poll() is None:
                _wait_at_most(connection, _ENDING_S)
                with contextlib.suppress(Exception):
                    connection.close(wait=False)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_ENDING_S)
            _hang_up(connection)
        _end(self._process)
        self._said.close()


def _connect(process: "subprocess.Popen[bytes]", port: int, mark: str) -> tuple[Any, str] | None:
    """Wait until SUMO has read its files and answers; None where it has ended, or another SUMO answers.

    Returns
    -------
    connection
        To SUMO; waits `_ANSWER_S` for an answer.
    version
        SUMO's.
    """
    traci = traci_module()
    end = time.monotonic() + _LOADING_S
    while (left_s := end - time.monotonic()) > 0:
        try:
            # One attempt each: with more, traci prints.
            connection = traci.connect(port, numRetries=0, host=LOOPBACK, proc=process, label=None)
        except traci.exceptions.FatalTraCIError:
            time.sleep(_POLL_S)
            continue
        except traci.exceptions.TraCIException:
            return None  # it has ended
        _wait_at_most(connection, left_s)
        threading.Thread(target=_hang_up_after, args=(process, connection), daemon=True).start()
        try:
            if connection.simulation.getOption("save-state.prefix") == mark:
                version = connection.getVersion()[1]
                _wait_at_most(connection, _ANSWER_S)
                return connection, version
        except (traci.exceptions.FatalTraCIError, traci.exceptions.TraCIException, OSError):
            pass
        _hang_up(connection)
        if time.monotonic() < end:
            return None
    raise TrafficError([f"SUMO has not read its files after {_LOADING_S:g} s"])


def _wait_at_most(connection: Any, seconds: float) -> None:
    """Limit how long an answer may take; traci has no such limit."""
    held = getattr(connection, "_socket", None)
    if held is not None:
        held.settimeout(seconds)


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
