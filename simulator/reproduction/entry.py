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
        What it is, unique within its entry: "beta=0.05, epsilon=0.25".
    published
        As printed; None where the paper prints no such number.
    computed
        Ours, as found now.
    agrees
        Whether they agree by the rule the entry states; None where nothing was published to agree with.
    note
        The rule, or what was found where they do not agree.

    Raises
    ------
    ValueError
        If it does not agree and no note says why, or a number is NaN.
    """

    key: str
    published: Value
    computed: Value
    agrees: bool | None
    note: str = ""

    def __post_init__(self) -> None:
        """Hold every row to the rules."""
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
        For the legend.
    x, y
        As many of each; `y` may hold None for a gap.
    kind
        How it is drawn.
    published
        Whether it shows the paper's numbers, which are drawn apart from ours.
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
        In words, units included.
    curves
        What is drawn.
    log_x, log_y
        Logarithmic axes.
    """

    title: str
    x_title: str
    y_title: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Reproduction:
    """What came of an entry.

    Parameters
    ----------
    rows
        Published beside computed.
    drawings
        The figure's panels, drawn anew; a table has none or one.
    findings
        Sentences a reader should not miss: what is wrong in the paper, how it was found.
    skipped
        Why nothing was computed (a data set is missing), with no rows; None if something was.
    """

    rows: Sequence[Row] = ()
    drawings: Sequence[Drawing] = ()
    findings: Sequence[str] = ()
    skipped: str | None = None

    def __post_init__(self) -> None:
        """Refuse two rows of one key, and an entry that is neither done nor skipped."""
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
        As on the command line: "sp-fig6".
    paper
        Whose it is.
    title
        What it shows, one line.
    reproduce
        Computes it; takes the keyword `seed`.
    """

    name: str
    paper: Paper
    title: str
    reproduce: Callable[..., Reproduction] = field(repr=False)

    def to_dict(self, done: Reproduction) -> dict[str, Any]:
        """Return the JSON form: name, paper, rows, and besides title, findings and skipped."""
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
    """Write an infinity, which JSON has not, as text."""
    if isinstance(value, float) and math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return value
