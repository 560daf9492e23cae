"""SUMO's input files and options, and where SUMO is installed."""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from simulator.files.extras import import_extra, record_extra
from simulator.files.xml_elements import elements_of
from simulator.traffic.demand.sumo_file import number, seconds
from simulator.traffic.errors import TrafficError

NEEDED = 'engine = "sumo" needs SUMO'
LONGEST_SAYING = 600
_BESIDE_THE_POINT = ("pj_obj_create", "proj_create", "Quitting (on error)")


def sumo_command() -> list[str]:
    """Return the command that runs SUMO's library in a separate process; SUMO's arguments follow it.

    Raises
    ------
    TrafficError
        If the package libsumo is not installed.
    """
    if importlib.util.find_spec("libsumo") is None:  # not imported here: it conflicts with pyarrow's library
        raise TrafficError([f"{NEEDED}: pip install 'crowdveil[sumo]'"])
    record_extra("libsumo")
    return [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]


def traci_constants() -> Any:
    """Return the numeric codes of SUMO's variables, from the package traci.

    Raises
    ------
    TrafficError
        If it is not installed.
    """
    return import_extra("traci.constants", needed=NEEDED, extra="sumo")


def sumo_environment() -> Mapping[str, str]:
    """Return SUMO's environment, in which the library uses its own schemas and types, not those of another SUMO."""
    return {name: value for name, value in os.environ.items() if name != "SUMO_HOME"}


def saying(text: str) -> str:
    """Return SUMO's own explanation in its output, on one line: from its first error on, or its last lines.

    If there are errors, warnings are left out.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_BESIDE_THE_POINT)]
    first = next((place for place, line in enumerate(lines) if line.startswith("Error:")), None)
    told = lines[-3:] if first is None else [line for line in lines[first:] if not line.startswith("Warning:")]
    said = " ".join(line.removeprefix("Error:").strip() for line in told)
    if not said:
        return "SUMO gave no reason"
    return said if len(said) <= LONGEST_SAYING else f"{said[: LONGEST_SAYING - 1]}…"


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
        TrafficError
            If a file name contains a comma.
        """
        split = [file for file in (*self.routes, *self.additional) if "," in str(file)]
        if split:
            raise TrafficError([f"{file}: must have no comma in its path: SUMO ends the path there" for file in split])

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
        TrafficError
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
        if faults:
            raise TrafficError(faults)
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
            scale=_known(number(scales), scales, config, "scale"),
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
            done = subprocess.run(  # noqa: S603 - SUMO itself, and a file the user named
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
            raise TrafficError([f"{config}: SUMO has not read it after {_PATIENCE_S:g} s"]) from None
        if done.returncode != 0 or not written.is_file():
            raise TrafficError([f"{config}: SUMO does not take it: {saying(done.stderr)}"])
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
        raise TrafficError([f"{config}: {name} must be a number, received {text!r}"])
    return value
