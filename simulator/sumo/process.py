"""SUMO in a child process: requests to it, and the messages it writes."""

import contextlib
import json
import math
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, cast

from simulator.files.errors import InputError, ProgramError, RejectionError
from simulator.sumo.inputs import SumoInputs, error_text, sumo_command, sumo_environment


class Events(NamedTuple):
    """Events of a step, with the ids of the vehicles concerned.

    Attributes
    ----------
    loaded
        Vehicle, delay of its departure in seconds, its class, and first and last edge of its route, of each vehicle
        that SUMO has read. Before the departure, the delay is SUMO's time since the planned departure, below 0 if it is
        in future. The edges of a vehicle between zones are the zones' edges, which are not edges of the network.
    departed
        Vehicle, its class, and first and last edge of its route.
    teleport_starts, teleport_ends, arrived
        Vehicles.
    colliding, emergency_stops
        Numbers of vehicles in collisions, and of emergency stops.
    """

    loaded: Sequence[tuple[str, float, str, str, str]]
    departed: Sequence[tuple[str, str, str, str]]
    teleport_starts: Sequence[str]
    teleport_ends: Sequence[str]
    arrived: Sequence[str]
    colliding: int
    emergency_stops: int


_LONGEST_READ = 1 << 20
_WARNING = b"Warning:"
_MOST_KINDS = 100
_PARTICULAR = re.compile(r"'[^']*'|[-+]?\d[\d.:]*")
"""Parts in which warnings of the same kind differ: names, numbers, times."""


class Warned(NamedTuple):
    """Warnings that are equal except for names and numbers: their number, and the first of them."""

    times: int
    first: str


class SumoLog:
    """File for SUMO's messages, readable even after it is closed, and a folder for `outputs`, which is deleted."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "log"
        self.outputs = Path(self._folder.name) / "outputs"
        self.outputs.mkdir()
        self.file: IO[bytes] = self._path.open("wb")
        self._last = ""
        self._last_warned: tuple[Warned, ...] = ()

    def read(self) -> str:
        """Return the end of the messages, at most 1 MiB."""
        if self.file.closed:
            return self._last
        # A separate file object, because SUMO writes at the position of the other one.
        with self._path.open("rb") as written:
            written.seek(max(0, written.seek(0, os.SEEK_END) - _LONGEST_READ))
            return written.read().decode("utf-8", errors="replace")

    def warned(self) -> tuple[Warned, ...]:
        """Return all warnings since the start, in the order of the first warning of each kind.

        Beyond a hundred kinds, all other warnings count as one kind.
        """
        if self.file.closed:
            return self._last_warned
        kinds: dict[str, Warned] = {}
        with self._path.open("rb") as written:
            for line in written:
                if line.startswith(_WARNING):
                    text = line[len(_WARNING) :].decode("utf-8", errors="replace").strip()
                    kind = _PARTICULAR.sub("", text)
                    if kind not in kinds and len(kinds) >= _MOST_KINDS:
                        kind = ""
                    times, first = kinds.get(kind, (0, text))
                    kinds[kind] = Warned(times + 1, first)
        return tuple(kinds.values())

    def close(self) -> None:
        """Remove the file; do nothing if it is already removed."""
        if self.file.closed:
            return
        self._last, self._last_warned = self.read(), self.warned()
        self.file.close()
        self._folder.cleanup()


_LOADING_S = 600.0
"""Maximum time for SUMO to read a network and its routes."""
_ANSWER_S = 600.0
"""Maximum time for SUMO to answer a request, such as one step."""
_POLL_S = 0.05
_DEEPEST = 64
"""Maximum depth, in folders below the root, of a file that SUMO is to write."""
_ENDING_S = 30.0
"""Time that SUMO has to end by itself after the request to end."""
_DYING_S = 5.0


class SumoProcess:
    """One running SUMO process; requests go through `ask`, and `close` always ends it.

    SUMO's library runs in a child process, because it may crash and because it conflicts with pyarrow's library.
    Requests and answers go through the child's standard input and output, so that it listens on no port. The child ends
    by itself when this process ends.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", log: SumoLog) -> None:
        self._process, self._log = process, log
        self._requests, self._answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        self._closed = self._late = False
        self._answered = True
        self._due_s = math.inf
        self.version = ""

    @classmethod
    def launch(cls, inputs: SumoInputs) -> Self:
        """Start SUMO and have it read its files.

        Raises
        ------
        InputError
            If SUMO is not installed, or ends while loading, with its own message.
        """
        command, log = [*sumo_command(), *inputs.arguments()], SumoLog()
        # SUMO inserts the prefix after the folder of every output file named in its files, so all outputs go to our
        # temporary folder. In a folder that is too deep the path does not exist, and SUMO ends.
        outputs = log.outputs.resolve()
        prefix = f"{'../' * _DEEPEST}{outputs.relative_to(outputs.anchor).as_posix()}/"
        command += ["--output-prefix", prefix]
        with contextlib.ExitStack() as cleaning:
            cleaning.callback(log.close)
            process = subprocess.Popen(  # noqa: S603 - our own program, and files named by the user
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log.file,
                env=sumo_environment(),
                start_new_session=True,  # Ctrl-C must only reach this process, which ends SUMO
            )
            started = cls(process, log)
            cleaning.callback(started.close)
            threading.Thread(target=started._end_when_late, daemon=True).start()
            started._load()
            cleaning.pop_all()
        return started

    def _load(self) -> None:
        try:
            _, self.version = self._exchange("", limit_s=_LOADING_S)
        except ConnectionError:
            if self._late:
                raise InputError([f"SUMO has not read its files after {_LOADING_S:g} s"]) from None
            raise RejectionError([f"SUMO does not start: {error_text(self._log.read())}"]) from None

    @property
    def is_open(self) -> bool:
        """Whether SUMO can still answer requests."""
        return not self._closed

    def ask(self, request: str, *arguments: object, what: str) -> Any:
        """Send a request to SUMO, and return the answer, which may take ten minutes.

        Parameters
        ----------
        request, *arguments
            Name of a method of `worker.Requests`, which also describes the answer, and its arguments.
        what
            Time or purpose of the request, for the beginning of messages.

        Raises
        ------
        InputError
            If SUMO rejects the request, or has ended, with its own message.
        """
        if self._closed:
            raise ProgramError([f"{what}: SUMO is closed"])
        try:
            kind, value = self._exchange(json.dumps([request, arguments]) + "\n", limit_s=_ANSWER_S)
        except ConnectionError:
            raise self._ended(what) from None
        if kind == "error":
            raise RejectionError([f"{what}: SUMO reports: {value}"])
        return value

    def _exchange(self, request: str, *, limit_s: float) -> tuple[str, Any]:
        """Send a request, and return the kind and value of the answer; kill SUMO if it takes longer.

        Raises
        ------
        ConnectionError
            If SUMO has ended.
        """
        self._answered, self._due_s = False, time.monotonic() + limit_s
        try:
            self._requests.write(request.encode())
            self._requests.flush()
            line = self._answers.readline()
        finally:
            self._due_s = math.inf
        if not line.endswith(b"\n"):
            raise ConnectionError("SUMO has ended")
        self._answered = True
        kind, value = json.loads(line)
        return kind, value

    def _end_when_late(self) -> None:
        """Kill SUMO if its answer is late: reading from a pipe has no time limit, but ends with the process."""
        while self._process.poll() is None:
            if time.monotonic() > self._due_s:
                self._late = True
                self._process.kill()
            time.sleep(_POLL_S)

    def warned(self) -> tuple[Warned, ...]:
        """Return SUMO's warnings so far."""
        return self._log.warned()

    def _ended(self, what: str) -> InputError:
        self._wait(_DYING_S)
        if self._late:
            return ProgramError([f"{what}: SUMO has not answered for {_ANSWER_S:g} s"])
        # Warnings are left out: the last one is not the reason why a SUMO process was killed.
        errors = "\n".join(line for line in self._log.read().splitlines() if not line.startswith("Warning:"))
        code = self._process.returncode
        how = "" if code is None else f", killed by signal {-code}" if code < 0 else f", with exit code {code}"
        text = f"{what}: SUMO ended the connection{how}: {error_text(errors)}"
        return RejectionError([text]) if code is None or code >= 0 else ProgramError([text])

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    @property
    def outputs(self) -> Path:
        """The folder of SUMO's outputs, which are complete after `finish` and deleted by `close`."""
        return self._log.outputs

    def finish(self) -> bool:
        """Ask SUMO to end, and return whether it has written its outputs."""
        self._closed = True
        # During an answer, no further request is possible.
        if self._answered:
            with contextlib.suppress(OSError):
                self._requests.close()
            self._wait(_ENDING_S)
        return self._process.poll() == 0

    def close(self) -> None:
        """End SUMO in any state; do nothing if it has already ended."""
        self.finish()
        self._process.kill()  # SUMO reacts to nothing else during a step; no effect if it has ended
        self._process.wait()
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                pipe.close()
        self._log.close()
