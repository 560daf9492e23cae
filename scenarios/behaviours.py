"""``[[behaviours]]``: devices that do not follow the protocol, and what they do instead."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from scenarios.field_types import Count, NotNegative, PositiveProbability, Whole
from scenarios.rules import EachOnce, one_of
from scenarios.section import ByKind, NamedByKind, OwnKind, OwnParameters, Rules


class BehaviourSection(NamedByKind):
    """Some devices, and what they do; every other device follows the protocol."""

    role = "behaviour"
    share: PositiveProbability | None = None
    """Share of the devices, drawn at random: vehicles, and devices outside that answer one by one."""
    devices: Annotated[tuple[Whole, ...], Field(strict=False, min_length=1)] | None = None
    """Numbers of the devices: vehicles in the order of departure, from 0."""

    rules: ClassVar[Rules] = (
        one_of(("share",), ("devices",), words="needs either share or devices"),
        EachOnce(("devices",)),
    )


class FixedCellSection(BehaviourSection):
    """Devices say that they are in one cell wherever they are, or hide that they are in one."""

    kind: Literal["fixed_cell", "hide_cell", "refuse_cell"]
    title: ClassVar[dict[str, str]] = {
        "fixed_cell": "say that they are in one cell wherever they are",
        "hide_cell": "say that they are outside every cell while they are in one cell",
        "refuse_cell": "send nothing about moments at which they are in one cell",
    }
    cell: Count
    """Number of the cell, from 1, in the partition that is asked about."""


class RandomCellSection(BehaviourSection):
    """Devices say that they are in a cell drawn at random for each query."""

    kind: Literal["random_cell"]
    title = "say that they are in a cell drawn at random"


class AmplifySection(BehaviourSection):
    """Devices write the encoding of their report many times over. Servers that read plain reports reject it."""

    kind: Literal["amplify"]
    title = "write their report many times over"
    factor: Annotated[int, Field(ge=2, le=1_000_000)]
    """Number by which every entry of the encoding is multiplied."""


class SilentSection(BehaviourSection):
    """Devices send nothing in one round."""

    kind: Literal["silent"]
    title = "send nothing in one round"
    round: Count = 2
    """The round, from 1."""


class LateSection(BehaviourSection):
    """Devices wait before they answer, or answer a second time after a wait."""

    kind: Literal["late", "twice"]
    title: ClassVar[dict[str, str]] = {
        "late": "answer late, about the cell that they are then in",
        "twice": "answer a second time, with new coins",
    }
    wait_s: NotNegative
    """Seconds from the question to the late, or second, answer."""


class OwnBehaviour(BehaviourSection, OwnParameters):
    """Devices of a user's own class, ``package.module:Class``; its other keys are parameters of the class."""

    kind: OwnKind


Behaviour = Annotated[BehaviourSection, ByKind("behaviour", plug_in=OwnBehaviour)]


def parameters_of(section: BehaviourSection) -> dict[str, Any]:
    """Return the keys of a section that are parameters of the device's class."""
    return {name: value for name, value in section.parameters.items() if name not in BehaviourSection.model_fields}
