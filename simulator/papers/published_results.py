"""Entries: the tables and figures of a paper, declared in one TOML file a paper and computed on request.

A paper's file states its entries. An entry has a name, a title, the function that computes it, published numbers, and
the texts of its rows, panels and findings. A row's declaration states the published value and the rule by which the
computed value is compared with it. Texts are templates of `str.format`, filled with values that the function passes.
"""

import importlib
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from operator import ge, gt, le, lt
from typing import Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict

from scenarios.errors import suggestion
from simulator.files.errors import InputError
from simulator.pages.charts import Axis, Chart, Series

Value: TypeAlias = float | int | str | bool | None
OWN = "crowdveil"
"""Abbreviation of this project's own tables, which compare theory with simulation and have no published values."""
ALL = "all"
"""In place of an entry's name: every entry."""


class DataError(Exception):
    """A data set that an entry reads is missing or malformed: the entry is skipped."""


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
    weaker
        What may be said instead of "agrees", where the comparison is too weak to count: "not contradicted" if the rule
        is a wide interval, "fitted" if a parameter was chosen to meet the published value, "as computed elsewhere" if
        it is not the paper's own. `agrees` is then None.

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
    weaker: str | None = None

    def __post_init__(self) -> None:
        """Check that the row is valid."""
        if self.agrees is not True and not self.note:
            raise ValueError(f"{self.key}: a row that does not agree must state the finding in its note")
        for value in (self.published, self.computed):
            if isinstance(value, float) and math.isnan(value):
                raise ValueError(f"{self.key}: a value must not be NaN")

    @property
    def verdict(self) -> str:
        """Whether the row agrees, in words."""
        if self.agrees is None:
            return self.weaker or "not published"
        return "agrees" if self.agrees else "differs"


class _Declared(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DeclaredRow(_Declared):
    """A row of a paper's file: its texts, its published value, and how a computed value is compared with it.

    Attributes
    ----------
    key, note : str
        Templates of the row's identifier and note.
    differs : str
        Template of the note where the values do not agree, if it is another one.
    published : number, text or None
        The published value.
    printed : str or None
        Instead: a published number as it is printed. A computed one agrees if it is the same, rounded to these digits.
    equals : bool
        Rule: the computed value equals the published one.
    within, within_share : float or None
        Rule: the greatest difference from the published value, absolute or as a share of it.
    below, above, at_least : float or None
        Rule: bounds of the computed value. Where no rule is declared, the function states whether the row agrees.
    weaker : {"not contradicted", "fitted", "as computed elsewhere"} or None
        What a row that keeps its rule says instead of "agrees"; it is then not counted.
    """

    key: str
    note: str = ""
    differs: str | None = None
    published: bool | int | float | str | None = None
    printed: str | None = None
    equals: bool = False
    within: float | None = None
    within_share: float | None = None
    below: float | None = None
    above: float | None = None
    at_least: float | None = None
    weaker: Literal["not contradicted", "fitted", "as computed elsewhere"] | None = None

    def agrees(self, computed: Value, published: Value, printed: object) -> bool | None:
        """Return whether a computed value agrees by the declared rule; None if no rule is declared."""
        if isinstance(printed, str) and isinstance(computed, int | float):
            return same_digits(computed, printed)
        if self.equals:
            return computed == published
        if not isinstance(computed, int | float):
            return None
        rules = [(computed, lt, self.below), (computed, gt, self.above), (computed, ge, self.at_least)]
        if isinstance(published, int | float):
            rules.append((abs(computed - published), le, self.within))
            rules.append((abs(computed / published - 1.0) if published else math.inf, le, self.within_share))
        held = [compare(number, bound) for number, compare, bound in rules if bound is not None]
        return all(held) if held else None


class DeclaredPanel(_Declared):
    """A panel of a paper's file: its title, the titles of its axes, and whether they are logarithmic."""

    title: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


class DeclaredTexts(_Declared):
    """Numbers, numbers and words as they are printed, and the texts of rows, panels and findings."""

    numbers: dict[str, list[int | float]] = {}
    printed: dict[str, list[str]] = {}
    rows: dict[str, DeclaredRow] = {}
    panels: dict[str, DeclaredPanel] = {}
    findings: dict[str, str] = {}


class Entry(DeclaredTexts):
    """A table or figure of a paper, as the paper's file declares it.

    Attributes
    ----------
    name : str
        Name on the command line: "sp-fig6".
    title : str
        What it shows, in one line.
    computed_by : str
        "module:function" within this package: the function that computes it, from a `Reproduction` to fill and a seed.
    paper : str
        Abbreviation of the paper that it belongs to.
    """

    name: str
    title: str
    computed_by: str
    paper: str = ""

    def reproduce(self, *, seed: int) -> "Reproduction":
        """Import the function and call it with the seed of everything drawn.

        Returns
        -------
        done
            The result; skipped, with the reason, if a data set is missing or malformed.
        """
        module, _, function = self.computed_by.partition(":")
        compute_into: Callable[[Reproduction, int], None] = getattr(
            importlib.import_module(f"simulator.papers.{module}"), function
        )
        results = Reproduction(self)
        try:
            compute_into(results, seed)
        except DataError as error:
            return Reproduction(self, skipped=str(error))
        return results


class DeclaredPaper(_Declared):
    """A paper's file: its abbreviation, its citation, what several of its entries share, and its entries in order."""

    paper: str
    citation: str
    shared: DeclaredTexts = DeclaredTexts()
    entry: list[Entry]

    @property
    def entries(self) -> list[Entry]:
        """The entries, each with what they share where it declares nothing of that name."""
        texts = dict(self.shared)
        return [
            one.model_copy(update={"paper": self.paper, **{kind: texts[kind] | getattr(one, kind) for kind in texts}})
            for one in self.entry
        ]


@dataclass
class Reproduction:
    """The result of an entry, to which its function adds rows, panels and findings.

    Parameters
    ----------
    entry
        The entry, whose declared texts are used.
    rows
        Published values beside computed ones.
    charts
        The reproduced panels of the figure; a table has none or one. Published series have the style `PUBLISHED`, and
        computed ones none yet.
    findings
        The most important findings in sentences: errors in the paper, and how they were found.
    skipped
        Why nothing was computed (a data set is missing), in which case there are no rows; None otherwise.
    """

    entry: Entry
    rows: list[Row] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    skipped: str | None = None

    def add_row(self, name: str, computed: object, agrees: object = None, /, **values: object) -> None:
        """Add a row.

        Parameters
        ----------
        name
            The declaration's name.
        computed
            The computed value; numbers of numpy's are converted.
        agrees
            Whether it agrees with the published value, where the declaration has no rule.
        **values
            What the templates of key and note are filled with. `published` or `printed` among them is the published
            value, where one declaration serves several rows.

        Raises
        ------
        ValueError
            If there is a published value and nothing states whether the computed one agrees with it, or another row has
            the same key.
        """
        declared = self.entry.rows[name]
        value = _plain(computed)
        published = _plain(values.get("published", declared.published))
        printed = values.get("printed", declared.printed)
        if isinstance(printed, str):
            published = (int if printed.isdigit() else float)(printed)
        held = declared.agrees(value, published, printed) if agrees is None else bool(agrees)
        filled = {**values, "published": published}
        if held is None and published is not None:
            raise ValueError(f"{name}: the row has a published value, and neither a rule nor a verdict of its function")
        note = declared.differs if declared.differs is not None and held is False else declared.note
        weaker = declared.weaker if held else None
        row = Row(
            declared.key.format(**filled), published, value, None if weaker else held, note.format(**filled), weaker
        )
        if any(row.key == other.key for other in self.rows):
            raise ValueError(f"two rows have one key: {row.key}")
        self.rows.append(row)

    def add_panel(self, name: str, series: Sequence[Series], /, **values: object) -> None:
        """Add a panel; its titles are filled with `values`."""
        declared = self.entry.panels[name]
        title, across, up = (text.format(**values) for text in (declared.title, declared.x, declared.y))
        x, y = Axis(across, log=declared.log_x), Axis(up, log=declared.log_y)
        about = f"{title}. {up} against {across}; the table below holds the numbers."
        self.charts.append(Chart(series, x, y, title, about))

    def add_findings(self, *names: str, **values: object) -> None:
        """Add findings, filled with `values`."""
        self.findings += [self.entry.findings[name].format(**values) for name in names]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of rows that agree, that differ, and that have no published value, or none that can be compared."""
        verdicts = [row.agrees for row in self.rows]
        return verdicts.count(True), verdicts.count(False), verdicts.count(None)

    def tally(self) -> str:
        """Return a sentence that states how many rows agree.

        Returns
        -------
        text
            For example ``22 of 24 published values agree; 4 more fitted; 3 more have none to agree with``.
        """
        if self.skipped is not None:
            return "skipped"
        agree, differ, new = self.counts
        published = agree + differ
        weaker = Counter(row.weaker for row in self.rows if row.weaker)
        new -= weaker.total()
        if not published and not weaker:
            return f"no number is published; {new} {'value' if new == 1 else 'values'} computed"
        which = "expected" if self.entry.paper == OWN else "published"
        tally = f"{agree} of {published} {which} {'value agrees' if published == 1 else 'values agree'}"
        tally = tally if published else "no published number is compared"
        tally += "".join(f"; {count} more {what}" for what, count in weaker.items())
        return f"{tally}; {new} more {'has' if new == 1 else 'have'} none to agree with" if new else tally

    def to_dict(self) -> dict[str, object]:
        """Return the JSON form: name, paper and title of the entry, rows, findings and skipped."""
        rows = [
            {"key": row.key, "published": _jsonable(row.published), "computed": _jsonable(row.computed)}
            | {"agrees": row.agrees, "verdict": row.verdict, "note": row.note}
            for row in self.rows
        ]
        named = {name: getattr(self.entry, name) for name in ("name", "paper", "title")}
        return named | {"rows": rows, "findings": self.findings, "skipped": self.skipped}


def _jsonable(value: Value) -> Value:
    """Return an infinity, which JSON cannot represent, as text, and any other value unchanged."""
    if isinstance(value, float) and math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return value


def _plain(value: object) -> Value:
    """Return the Python number of a number of numpy's, and any other value unchanged."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, float | int | str):
        return value
    raise TypeError(f"a value must be a number, a text or None; got {value!r}")


def same_digits(computed: float, printed: str) -> bool:
    """Return whether a number, rounded to the published digits ("6.83e-10", "0.159"), equals the published value."""
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(f"{computed:.{decimals}{'e' if exponent else 'f'}}") == float(printed)


def read_paper(name: str) -> DeclaredPaper:
    """Read the file of a paper in this package, by its name without the suffix.

    Raises
    ------
    ValueError
        If the file is no TOML, or an entry, row or panel of it is malformed; the message names the key.
    """
    text = resources.files("simulator.papers").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return DeclaredPaper.model_validate(tomllib.loads(text))


FOUNDING = ("sampling_privacy", "anonymized_local", "safe_sampling", "amplification")
PAPERS = [read_paper(name) for name in (*FOUNDING, "rivals", "deployed", "traces", "over_time")]
CITATIONS = {paper.paper: paper.citation for paper in PAPERS}
ENTRIES: tuple[Entry, ...] = tuple(entry for paper in PAPERS for entry in paper.entries)


def find_entries(name: str, entries: Sequence[Entry] = ENTRIES) -> tuple[Entry, ...]:
    """Return the entry of a name, a paper's entries by its abbreviation, or every entry for "all".

    Raises
    ------
    InputError
        If there is no such entry; the message names the most similar one.
    """
    chosen = [entry for entry in entries if name in (ALL, entry.name)]
    if found := chosen or [entry for entry in entries if entry.paper.lower() == name.lower()]:
        return tuple(found)
    names = [*(entry.name for entry in entries), ALL]
    hint = suggestion(name, names) or f": {', '.join(names)}"
    raise InputError([f"NAME must be an entry or all{hint}; crowdveil reproduce --list shows them; got {name!r}"])
