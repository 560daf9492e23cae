"""Entry: one table or figure of a paper, with published and computed values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Paper = Literal["SP", "ALP", "LQS", "HDK", "crowdveil"]
Value: TypeAlias = float | int | str | bool | None

CITATIONS: dict[Paper, str] = {
    "SP": "J. Joy, M. Gerla, Differential Privacy By Sampling",
    "ALP": "J. Joy, M. Gerla, Anonymized Local Privacy",
    "LQS": "N. Li, W. Qardaji, D. Su, On Sampling, Anonymization, and Differential Privacy",
    "HDK": "J. Hu, J. Drechsler, H. Kim, Accuracy Gains from Privacy Amplification Through Sampling",
    "crowdveil": "crowdveil: all mechanisms side by side",
}


@dataclass(frozen=True)
class Row:
    """One published number or conclusion beside the computed one.

    Parameters
    ----------
    key
        Identifier, unique within its entry: "beta=0.05, epsilon=0.25".
    published
        The published value; None where the paper states no such number.
    computed
        The value computed here.
    agrees
        Whether they agree by the rule stated by the entry; None where there is no published value to compare with.
    note
        The rule, or the result where they do not agree.

    Raises
    ------
    ValueError
        If the values do not agree and no note explains why, or a number is NaN.
    """

    key: str
    published: Value
    computed: Value
    agrees: bool | None
    note: str = ""

    def __post_init__(self) -> None:
        """Check that the row is valid."""
        if self.agrees is not True and not self.note:
            raise ValueError(f"{self.key}: a row that does not agree must say in its note what was found")
        for value in (self.published, self.computed):
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(f"{self.key}: a value must not be NaN")


@dataclass(frozen=True)
class Curve:
    """One line, or one set of bars or points, of a drawn figure.

    Parameters
    ----------
    name
        Name in the legend.
    x, y
        Coordinates, equally many of each; `y` may hold None for a gap.
    kind
        How it is drawn.
    published
        Whether it shows the paper's numbers, which are drawn in another style than the computed ones.
    low, high
        A band around a line, or error bars around points and bars, if there is one.
    """

    name: str
    x: Sequence[Value]
    y: Sequence[float | None]
    kind: Literal["line", "points", "bars"] = "line"
    published: bool = False
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Drawing:
    """One panel: curves over axes with names and units.

    Parameters
    ----------
    title, x_title, y_title
        Titles in words, including units.
    curves
        The curves drawn.
    log_x, log_y
        Whether the axes are logarithmic.
    """

    title: str
    x_title: str
    y_title: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Reproduction:
    """The result of an entry.

    Parameters
    ----------
    rows
        Published values beside computed ones.
    drawings
        The reproduced panels of the figure; a table has none or one.
    findings
        The most important findings in sentences: errors in the paper, and how they were found.
    skipped
        Why nothing was computed (a data set is missing), in which case there are no rows; None otherwise.
    """

    rows: Sequence[Row] = ()
    drawings: Sequence[Drawing] = ()
    findings: Sequence[str] = ()
    skipped: str | None = None

    def __post_init__(self) -> None:
        """Reject two rows with the same key, and a result with both rows and a reason for skipping, or neither."""
        keys = [row.key for row in self.rows]
        if len(set(keys)) < len(keys):
            raise ValueError(f"two rows have one key: {sorted(key for key in set(keys) if keys.count(key) > 1)}")
        if bool(self.rows) is (self.skipped is not None):
            raise ValueError("an entry has rows, or says why it was skipped")


@dataclass(frozen=True)
class Entry:
    """A name under which a table or figure is reproduced.

    Parameters
    ----------
    name
        Name on the command line: "sp-fig6".
    paper
        The paper it belongs to.
    title
        What it shows, in one line.
    reproduce
        Function that computes it; takes the keyword `seed`.
    """

    name: str
    paper: Paper
    title: str
    reproduce: Callable[..., Reproduction] = field(repr=False)

    def to_dict(self, done: Reproduction) -> dict[str, Any]:
        """Return the JSON form: name, paper, title, rows, findings and skipped."""
        return {
            "name": self.name,
            "paper": self.paper,
            "title": self.title,
            "rows": [
                {
                    "key": row.key,
                    "published": _jsonable(row.published),
                    "computed": _jsonable(row.computed),
                    "agrees": row.agrees,
                    "note": row.note,
                }
                for row in done.rows
            ],
            "findings": list(done.findings),
            "skipped": done.skipped,
        }


def _jsonable(value: Value) -> Value:
    """Return an infinity, which JSON cannot represent, as text, and any other value unchanged."""
    if isinstance(value, float) and math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return value
