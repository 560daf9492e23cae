"""The words for what a run has: its data owners, the statistics of its campaigns, and the sources of its data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scenarios.kinds import title as title_of


class OwnerNames(NamedTuple):
    """
    The nouns for one data owner and for several.

    Parameters
    ----------
    one, many
        For example "vehicle" and "vehicles".
    """

    one: str = "vehicle"
    many: str = "vehicles"

    @property
    def with_article(self) -> str:
        """The singular noun with its article: "a vehicle" or "an owner"."""
        return f"{'an' if self.one[:1].lower() in set('aeiou') else 'a'} {self.one}"

    @property
    def person(self) -> str:
        """The noun for the person whose privacy is at stake: a driver for vehicles, else the data owner."""
        return "a driver" if self == OwnerNames() else self.with_article

    def unit(self, unit: str) -> str:
        """Return the unit of an error with these nouns in place of "vehicles"; units of speed are unchanged."""
        return self.many if unit == OwnerNames().many else unit

    def replace_in(self, words: str) -> str:
        """Return a text with "vehicles" replaced by the plural noun."""
        return words.replace(OwnerNames().many, self.many)


NO_PRIVACY = "no_privacy"


@dataclass(frozen=True)
class Statistic:
    """
    What a campaign estimates in each cell, in words.

    Parameters
    ----------
    name
        Its name in `scores.parquet`.
    unit
        Unit of the errors.
    of_truth
        What the true value of a cell is.
    """

    name: str
    unit: str
    of_truth: str


COUNT = Statistic("count", "vehicles", "vehicles asked that are in the cell")
ALL_VEHICLES = "all vehicles in the cell, asked or not"
_SPEEDS = {
    "mean_speed": Statistic("mean_speed", "m/s", "mean speed of the vehicles asked that are in the cell"),
    "median_speed": Statistic("median_speed", "m/s", "median speed of the vehicles asked that are in the cell"),
}


def statistic_of(name: str) -> Statistic:
    """Return the statistic of a name in `scores.parquet`; counts for any name that is no name of speeds."""
    return _SPEEDS.get(name, COUNT)


def mechanism_label(name: str, kinds: Mapping[str, str]) -> str:
    """Return a mechanism's title, with its name where several of these kinds, given by name, share the title.

    Without a title it is the name; a refined estimate's name goes on with ``+`` and the refinement.
    """
    of, plus, refinement = name.partition("+")
    kind = kinds.get(of, "")
    title = title_of("mechanism", kind, of)
    alone = title == of or [*kinds.values()].count(kind) == 1
    return f"{title}{plus}{refinement}" if alone else f"{title} “{of}”{plus}{refinement}"
