"""SUMO's input files and options, where SUMO is installed, and how many vehicles its files insert at most."""

import importlib.util
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from simulator.files.errors import InputError, ProgramError, RejectionError
from simulator.files.extras import record_extra
from simulator.files.times import seconds
from simulator.files.tntp_text import finite_number
from simulator.files.xml_elements import Element, elements_of
from simulator.formats.sumo.attributes import read_number
from simulator.formats.sumo.route_file import most_of_flow
from simulator.traffic.trips import too_many

LONGEST_ERROR_TEXT = 600
_BESIDE_THE_POINT = ("pj_obj_create", "proj_create", "Quitting (on error)")


def sumo_command() -> list[str]:
    """Return the command that runs SUMO's library in a separate process; SUMO's arguments follow it.

    Raises
    ------
    InputError
        If the package libsumo is not installed.
    """
    if importlib.util.find_spec("libsumo") is None:  # not imported here: it conflicts with pyarrow's library
        raise ProgramError(["SUMO's library, libsumo, is needed: pip install 'crowdveil[sumo]'"])
    record_extra("libsumo")
    return [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]


def sumo_environment() -> Mapping[str, str]:
    """Return SUMO's environment, in which the library uses its own schemas and types, not another SUMO's."""
    return {name: value for name, value in os.environ.items() if name != "SUMO_HOME"}


def error_text(text: str) -> str:
    """Return SUMO's own explanation in its output, on one line: from its first error on, or its last lines.

    If there are errors, warnings are left out.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_BESIDE_THE_POINT)]
    first = next((place for place, line in enumerate(lines) if line.startswith("Error:")), None)
    reasons = lines[-3:] if first is None else [line for line in lines[first:] if not line.startswith("Warning:")]
    reason = " ".join(line.removeprefix("Error:").strip() for line in reasons)
    if not reason:
        return "SUMO gave no reason"
    return reason if len(reason) <= LONGEST_ERROR_TEXT else f"{reason[: LONGEST_ERROR_TEXT - 1]}…"


_PATIENCE_S = 60.0
_LISTS = ("route-files", "additional-files")
_FILES = ("net-file", *_LISTS, "weight-files", "load-state")
_SECTIONS = re.compile(
    "input|time|processing|routing|communication|battery|mesoscopic|random_number"
    "|(toc|driver_state|bluelight|elechybrid|taxi|glosa|friction)_device"
)
"""Sections of a configuration that change the traffic; the other sections concern SUMO's output."""
_OUTPUTS = ("output", ".file", ".wkt", ".py")
"""Endings of the names of options that name an output file of SUMO."""


@dataclass(frozen=True)
class SumoInputs:
    """Files and options of one SUMO run.

    Attributes
    ----------
    net
        Network file.
    routes, additional
        Route and additional files; additional ones are read first.
    seed
        SUMO's seed.
    step_s
        SUMO's step, whole milliseconds.
    begin_s
        SUMO's time at the run's start.
    options
        Other options of a configuration, by SUMO's names.
    outputs
        Names of a configuration's options that name outputs; they are not passed to SUMO.
    mesoscopic
        Whether to run the mesoscopic model.
    teleport_s
        SUMO's ``--time-to-teleport``; 0 for never, None for the value in the configuration or SUMO's default.
    scale
        Number of copies of each vehicle, from the configuration.
    """

    net: Path
    routes: tuple[Path, ...]
    additional: tuple[Path, ...]
    seed: int
    step_s: float = 1.0
    begin_s: float = 0.0
    mesoscopic: bool = False
    teleport_s: float | None = None
    scale: float = 1.0
    options: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the file names: SUMO treats a comma as the end of a file name.

        Raises
        ------
        InputError
            If a file name contains a comma.
        """
        split = [file for file in (*self.routes, *self.additional) if "," in str(file)]
        if split:
            raise InputError([f"{file}: must have no comma in its path: SUMO ends the path there" for file in split])

    @classmethod
    def from_config(
        cls,
        config: Path,
        *,
        seed: int,
        step_s: float,
        begin_s: float | None = None,
        mesoscopic: bool = False,
        teleport_s: float | None = None,
    ) -> "SumoInputs":
        """Return the files and options that a ``.sumocfg`` names, as SUMO interprets them, without its outputs.

        Raises
        ------
        InputError
            If SUMO cannot read it, with SUMO's message; or it names no network, or another step.
        """
        for _ in elements_of(config):  # rejects entity declarations before SUMO reads it
            pass
        options, outputs = _options_of(config)
        faults = []
        if "net-file" not in options:
            faults.append(f"{config}: must name a network (net-file)")
        asked_s = options.get("step-length")
        if asked_s is not None and seconds(asked_s) != step_s:
            faults.append(f"{config}: step-length is {asked_s}; set step_s = {asked_s} too, received {step_s:g}")
        named = [file for name in _FILES for file in options.get(name, "").split(",") if file]
        for file in named:
            if not Path(file).is_file() and Path(f"{file}.gz").is_file():
                beside = f"but {Path(file).name}.gz does: name that file, or unpack it"
                faults.append(f"{config}: names {file}, which does not exist, {beside}")
        if faults:
            raise InputError(faults)
        lists = {name: tuple(map(Path, filter(None, options.pop(name, "").split(",")))) for name in _LISTS}
        begins = options.pop("begin", "0")
        if begin_s is None:
            begin_s = _known(seconds(begins), begins, config, "begin")
        scales = options.get("scale", "1")
        return cls(
            net=Path(options.pop("net-file")),
            routes=lists["route-files"],
            additional=lists["additional-files"],
            seed=seed,
            step_s=step_s,
            begin_s=begin_s,
            mesoscopic=mesoscopic,
            teleport_s=teleport_s,
            scale=_known(finite_number(scales), scales, config, "scale"),
            options=options,
            outputs=outputs,
        )

    @property
    def others(self) -> tuple[Path, ...]:
        """Files that SUMO reads in addition to route and additional files."""
        named = (Path(file) for name in _FILES for file in self.options.get(name, "").split(",") if file)
        return (self.net, *named)

    def arguments(self) -> list[str]:
        """Return SUMO's command line, without the program."""
        given = {**self.options, "net-file": str(self.net)}
        for name, files in zip(_LISTS, (self.routes, self.additional), strict=True):
            if files:
                given[name] = ",".join(map(str, files))
        given |= {"step-length": f"{self.step_s:.3f}", "begin": f"{self.begin_s:.3f}", "seed": str(self.seed)}
        if self.mesoscopic:
            given["mesosim"] = "true"
        if self.teleport_s is not None:
            # SUMO treats 0 and below as never.
            given["time-to-teleport"] = f"{self.teleport_s:.3f}" if self.teleport_s > 0 else "-1"
        # A configuration may ask SUMO to listen on a port, on every network interface: it must not.
        given |= {"remote-port": "0", "no-step-log": "true", "duration-log.disable": "true"}
        return [argument for name, value in given.items() for argument in (f"--{name}", value)]


def _options_of(config: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Have SUMO rewrite a configuration, to get one name per option and absolute file names.

    Returns
    -------
    options
        Options that change the traffic.
    outputs
        Names of the options that name outputs.
    """
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "all.sumocfg"
        command = [*sumo_command(), "-c", str(config.resolve()), "--save-configuration", str(written)]
        try:
            done = subprocess.run(  # noqa: S603 - SUMO itself, and a file named by the user
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                encoding="utf-8",
                errors="replace",
                timeout=_PATIENCE_S,
                env=sumo_environment(),
            )
        except subprocess.TimeoutExpired:
            raise InputError([f"{config}: SUMO has not read it after {_PATIENCE_S:g} s"]) from None
        if done.returncode != 0 or not written.is_file():
            raise RejectionError([f"{config}: SUMO rejects it: {error_text(done.stderr)}"])
        found, outputs, section = {}, [], ""
        for e in elements_of(written):
            if e.attributes is None:
                continue
            if "value" not in e.attributes:
                section = e.name
            elif e.name.endswith(_OUTPUTS):
                outputs.append(e.name)
            elif _SECTIONS.fullmatch(section):
                found[e.name] = e.attributes["value"]
    for name in _FILES:
        if name in found:
            # SUMO writes paths relative to the folder of its output file.
            parts = map(unquote, found[name].split(","))  # and writes a blank as %20
            found[name] = ",".join(str((Path(folder) / part).resolve()) for part in parts)
    return found, tuple(outputs)


def _known(value: float | None, text: str, config: Path, name: str) -> float:
    if value is None:
        raise InputError([f"{config}: {name} must be a number, received {text!r}"])
    return value


_DEEPEST = 16
_CARRIED = ("vehicle", "trip", "flow", "route", "routeDistribution", "taz", "vType")
_INCLUDING = {"include": "href", "rerouter": "file", "variableSpeedSign": "file"}
"""Elements that make SUMO read another file, and the attribute that names the file."""
_LATER = ("triggered", "containerTriggered", "split")


@dataclass(frozen=True)
class Insertions:
    """Vehicles that may depart.

    Attributes
    ----------
    most
        Maximum number of vehicles in the whole run.
    unscheduled
        Ids of vehicles that depart upon another event, such as the arrival of a passenger: their actual departure is
        taken as the scheduled one.
    files
        Given files that hold vehicles, trips, flows, types, routes or zones.
    included
        Files that they include, at any depth.
    """

    most: int
    unscheduled: frozenset[str]
    files: tuple[Path, ...] = ()
    included: tuple[Path, ...] = ()

    @classmethod
    def read(
        cls, files: Iterable[Path], *, begin_s: float, end_s: float, step_s: float, scale: float = 1.0
    ) -> "Insertions":
        """Count the vehicles, trips and flows of route and additional files, plain or gzipped.

        For flows see `most_of_flow`. A person's trip counts as the car it may need.

        Parameters
        ----------
        files
            Route files and additional files; the files they include are read too.
        begin_s, end_s
            Begin and end of the run, in SUMO's time.
        step_s
            SUMO's step.
        scale
            Number of copies of each vehicle.

        Raises
        ------
        InputError
            If a file cannot be read, a time or rate in it is invalid, or there are no vehicles or too many.
        """
        reading = _Reading(begin_s, end_s, step_s)
        listed = list(files)
        carriers = tuple(file for file in listed if reading.run(file, 0))
        named = ", ".join(map(str, listed))
        if reading.vehicles == 0:
            within = f"from second {begin_s:g} to {math.floor(1000 * end_s) / 1000:.10g} of SUMO's time"
            raise InputError([f"{named}: no vehicle, trip or flow that departs within the run, {within}"])
        most = math.ceil(reading.vehicles * math.ceil(scale * reading.type_scale))
        if fault := too_many(most):
            raise InputError([f"{named}: {fault}"])
        return cls(most, frozenset(reading.unscheduled), carriers, tuple(dict.fromkeys(reading.included)))


def refuse_connection(element: Element, file: Path) -> None:
    """Check that an element names no output of the form ``host:port``, to which SUMO would connect.

    Raises
    ------
    InputError
        If the element names such an output.
    """
    attributes = element.attributes or {}
    names = [name for name in ("file", "dest", "output") if name in attributes]
    if element.name == "param" and attributes.get("key", "").endswith("file"):
        names.append("value")
    for name in names:
        if attributes[name].find(":") > 1:
            rule = "must be a file: SUMO takes it for a host and port, and connects"
            raise InputError([f"{file}: line {element.line}: {name} {rule}, got {attributes[name]!r}"])


class _Reading:
    def __init__(self, begin_s: float, end_s: float, step_s: float) -> None:
        self._begin_s, self._end_s, self._step_s = begin_s, end_s, step_s
        self._persons = 1
        self.vehicles = 0
        self.type_scale = 1.0
        self.unscheduled: list[str] = []
        self.included: list[Path] = []

    def run(self, file: Path, depth: int) -> bool:
        """Read a file and the files it includes; return whether it holds vehicles, types or routes."""
        if depth > _DEEPEST:
            raise InputError([f"{file}: is included more than {_DEEPEST} files deep"])
        carries, self._persons = False, 1
        interval: Mapping[str, str] = {}
        for element in elements_of(file):
            if element.attributes is None:
                if element.name == "interval":
                    interval = {}
                elif element.name == "personFlow":
                    self._persons = 1
                continue
            refuse_connection(element, file)
            carries |= element.name in _CARRIED
            if element.name == "interval":
                interval = element.attributes
            elif (named := element.attributes.get(_INCLUDING.get(element.name, ""))) is not None:
                self.included.append(file.parent / named)
                carries |= self.run(self.included[-1], depth + 1)
            else:
                self._count(element.name, {**interval, **element.attributes}, f"{file}: line {element.line}")
        return carries

    def _count(self, name: str, attributes: Mapping[str, str], where: str) -> None:
        if name in {"flow", "personFlow"}:
            most = most_of_flow(attributes, begin_s=self._begin_s, end_s=self._end_s, step_s=self._step_s, where=where)
            if name == "flow":
                self.vehicles += most
            else:
                self._persons = most
        elif name == "personTrip":
            self.vehicles += self._persons
        elif name == "vType":
            self.type_scale = max(self.type_scale, read_number(attributes, "scale", 1.0, where))
        elif name in {"vehicle", "trip"}:
            depart = attributes.get("depart", "")
            if depart in _LATER:
                self.unscheduled.append(attributes.get("id", ""))
            leaves_s = seconds(depart)
            # SUMO skips vehicles that depart before its begin; it reports any other unreadable departure itself.
            if leaves_s is None or self._begin_s <= leaves_s <= self._end_s or leaves_s < 0:
                self.vehicles += 1
