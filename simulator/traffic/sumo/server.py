"""SUMO in a child process: requests to it, combined into a few large ones, and the messages it writes."""

import contextlib
import json
import math
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import pandas as pd

from simulator.files.errors import InputError, ProgramError, RejectionError
from simulator.files.extras import import_extra
from simulator.traffic.sumo.inputs import NEEDED, SumoInputs, error_text, sumo_command, sumo_environment

_EVERYWHERE_M = 1e9
Point = tuple[float, float]
_EVENTS = (
    "VAR_LOADED_VEHICLES_IDS",
    "VAR_DEPARTED_VEHICLES_IDS",
    "VAR_TELEPORT_STARTING_VEHICLES_IDS",
    "VAR_TELEPORT_ENDING_VEHICLES_IDS",
    "VAR_ARRIVED_VEHICLES_IDS",
    "VAR_COLLIDING_VEHICLES_NUMBER",
    "VAR_EMERGENCYSTOPPING_VEHICLES_NUMBER",
)
"""SUMO's variables, in the order of the fields of `Events`."""


class Events(NamedTuple):
    """Events of a step: ids of the vehicles concerned, and numbers of collisions and emergency stops."""

    loaded: Sequence[str]
    departed: Sequence[str]
    teleport_starts: Sequence[str]
    teleport_ends: Sequence[str]
    arrived: Sequence[str]
    colliding: int
    emergency_stops: int


class SumoClient:
    """Requests to SUMO by the functions of its library; `SumoServer.asking` converts their exceptions to our errors.

    Parameters
    ----------
    ask
        Function from `SumoServer.asking`. It is valid for a few requests only, so each group needs a new `SumoClient`.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self._numbers = import_extra("traci.constants", needed=NEEDED, extra="sumo")

    def edges(self) -> set[str]:
        """Return the edges that have lanes, without edges within junctions and edges that only represent a zone."""
        return {lane.rpartition("_")[0] for lane in self._ask("lane.getIDList") if not lane.startswith(":")}

    def signals(self) -> int:
        """Count the signals of the network."""
        return len(self._ask("trafficlight.getIDList"))

    def subscribe(self) -> Events:
        """Make SUMO collect its events in every step, and return the events from reading its files."""
        self._ask("simulation.subscribe", [getattr(self._numbers, name) for name in _EVENTS])
        return self._events()

    def step(self) -> Events:
        """Advance SUMO by one step, and return its events."""
        self._ask("simulationStep")
        return self._events()

    def _events(self) -> Events:
        results = self._ask("simulation.getSubscriptionResults")
        return Events(*(results[self._key(name)] for name in _EVENTS))

    def _key(self, name: str) -> str:
        """Return a variable's key in an answer, as text because JSON keys are text."""
        return str(getattr(self._numbers, name))

    def delay_s(self, vehicle: str) -> float:
        """Return the delay of a vehicle's departure; before, SUMO's time since the plan, below 0 if it is in future."""
        return float(self._ask("vehicle.getDepartDelay", vehicle))

    def pending(self) -> Sequence[str]:
        """Return the vehicles whose departure time has come but which SUMO could not insert yet."""
        found: Sequence[str] = self._ask("simulation.getPendingVehicles")
        return found

    def route_ends(self, vehicle: str) -> tuple[str, str]:
        """Return the first and the last edge of a vehicle's route.

        For a vehicle between zones, they are those of the zones, which are not edges of the network.
        """
        route = self._ask("vehicle.getRoute", vehicle)
        return route[0], route[-1]

    def edge_ends(self, edge: str) -> tuple[Point, Point]:
        """Return the start and end points of an edge, on its rightmost lane, in SUMO's coordinates."""
        length_m = self._ask("lane.getLength", f"{edge}_0")
        begin, end = (self._ask("simulation.convert2D", edge, at_m) for at_m in (0.0, length_m))
        return (begin[0], begin[1]), (end[0], end[1])

    def vehicles(self) -> pd.DataFrame:
        """Return all vehicles on the road, by one request for a circle around a junction that contains the network.

        One row per vehicle: `vehicle` and `edge`, their ids (within a junction, the edge's begins with a colon); `x`
        and `y`, SUMO's coordinates of the vehicle's front, metres; `speed_mps`, below 0 where SUMO does not know it.
        For 700 vehicles this takes 7 ms, while requesting the position of each vehicle separately takes 60 ms.
        """
        ask, numbers = self._ask, self._numbers
        middle = ask("junction.getIDList")[0]
        around = (middle, numbers.CMD_GET_VEHICLE_VARIABLE, _EVERYWHERE_M)
        # SUMO answers a subscription at once; it is cancelled before the next step would answer it again.
        ask("junction.subscribeContext", *around, [numbers.VAR_POSITION, numbers.VAR_SPEED, numbers.VAR_ROAD_ID])
        found = ask("junction.getContextSubscriptionResults", middle)
        ask("junction.unsubscribeContext", *around)
        road, position, speed = map(self._key, ("VAR_ROAD_ID", "VAR_POSITION", "VAR_SPEED"))
        rows = [(vehicle, values[road], *values[position][:2], values[speed]) for vehicle, values in found.items()]
        # Vehicles parked beside the road are in no lane, so the circle does not contain them.
        for vehicle in sorted(set(ask("vehicle.getIDList")) - found.keys()):
            place = ask("vehicle.getPosition", vehicle)
            rows.append((vehicle, ask("vehicle.getRoadID", vehicle), *place[:2], ask("vehicle.getSpeed", vehicle)))
        return pd.DataFrame(rows, columns=["vehicle", "edge", "x", "y", "speed_mps"])


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

Ask = Callable[..., Any]
"""Function from the name and the arguments of a function of SUMO's library to its result, as JSON values."""


class SumoError(Exception):
    """Error raised when SUMO rejects a request, with SUMO's message."""


class SumoServer:
    """One running SUMO process; requests go through `asking`, and `close` always ends it.

    SUMO's library runs in a child process, because it may crash and because it conflicts with pyarrow's library.
    Requests and answers go through the child's standard input and output, so that it listens on no port. The child ends
    by itself when this process ends.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", log: SumoLog) -> None:
        self._process, self._log = process, log
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
            server = cls(process, log)
            cleaning.callback(server.close)
            threading.Thread(target=server._end_when_late, daemon=True).start()
            server._load()
            cleaning.pop_all()
        return server

    @contextlib.contextmanager
    def _within(self, limit_s: float) -> Iterator[None]:
        """Kill SUMO if the block lasts longer; after an error in it, SUMO counts as not having answered."""
        self._answered, self._due_s = False, time.monotonic() + limit_s
        try:
            yield
        finally:
            self._due_s = math.inf
        self._answered = True

    def _load(self) -> None:
        try:
            with self._within(_LOADING_S):
                self.version = self._receive()
        except ConnectionError:
            self._wait(_DYING_S)
            if self._late:
                raise InputError([f"SUMO has not read its files after {_LOADING_S:g} s"]) from None
            raise RejectionError([f"SUMO does not start: {error_text(self._log.read())}"]) from None

    @property
    def is_open(self) -> bool:
        """Whether SUMO can still answer requests."""
        return not self._closed

    @contextlib.contextmanager
    def asking(self, *, what: str) -> Iterator[Ask]:
        """Yield the function that sends requests to SUMO; each request may take at most ten minutes.

        Parameters
        ----------
        what
            Time or purpose of the requests, for the beginning of messages.

        Raises
        ------
        InputError
            If SUMO rejects a request, or has ended, with its own message.
        """
        if self._closed:
            raise ProgramError([f"{what}: SUMO is closed"])
        try:
            with self._within(_ANSWER_S):
                yield self._ask
        except SumoError as error:
            self._answered = True
            raise RejectionError([f"{what}: SUMO reports: {error}"]) from None
        except ConnectionError:
            raise self._ended(what) from None

    def _ask(self, name: str, *arguments: object) -> Any:
        if self._process.stdin is None:
            raise RuntimeError("SUMO was started without an input")
        self._process.stdin.write(json.dumps([name, arguments]).encode() + b"\n")
        self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> Any:
        line = self._process.stdout.readline() if self._process.stdout is not None else b""
        if not line.endswith(b"\n"):
            raise ConnectionError("SUMO has ended")
        kind, value = json.loads(line)
        if kind == "error":
            raise SumoError(value)
        return value

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

    def close(self) -> None:
        """End SUMO in any state; do nothing if it has already ended."""
        self._closed = True
        # During an answer, no further request is possible.
        if self._answered and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._wait(_ENDING_S)
        self._process.kill()  # SUMO reacts to nothing else during a step; no effect if it has ended
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._log.close()
