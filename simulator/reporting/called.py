"""What the report calls those who are counted: vehicles, or what the scenario says."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Called(NamedTuple):
    """
    One data owner and several, in words.

    Parameters
    ----------
    one, many
        As "vehicle" and "vehicles".
    """

    one: str = "vehicle"
    many: str = "vehicles"

    @property
    def with_article(self) -> str:
        """One of them, "a vehicle" or "an owner"."""
        return f"{'an' if self.one[:1].lower() in set('aeiou') else 'a'} {self.one}"

    @property
    def who_pays(self) -> str:
        """Whose secrets are told: behind a vehicle is a driver."""
        return "a driver" if self == Called() else self.with_article

    def unit(self, unit: str) -> str:
        """Return the unit of an error in their words; those of speeds as they are."""
        return self.many if unit == Called().many else unit

    def of(self, words: str) -> str:
        """Put them into words of ours that say what is counted."""
        return words.replace(Called().many, self.many)


def called(run: Mapping[str, Any]) -> Called:
    """
    Read what `run.json` calls them.

    Parameters
    ----------
    run
        The content of `run.json`.

    Returns
    -------
    words
        Vehicles where it says nothing, as the runs of earlier versions.
    """
    words = run.get("called")
    return Called(*map(str, words)) if words else Called()
