"""The plots of one run: map, errors, growth, privacy, attacks and traffic, on axes that compose."""

import math
import textwrap
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from simulator.charts import Axis, Chart, Series, Style
from simulator.charts.matplotlib import draw
from simulator.charts.styles import PLAIN
from simulator.plots.city_map import chosen, draw_map, projected, shape_of, values_of
from simulator.plots.looks import new_axes
from simulator.reporting.attacks_section import findings_in_order
from simulator.reporting.claims_section import ViewClaim, view_claims, worth_reading
from simulator.reporting.run_charts import growth, style
from simulator.reporting.traffic_section import over_time
from simulator.results.compare import paired_difference
from simulator.results.run import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Quantity = Literal["truth", "estimate", "error"]


class NothingToDrawError(ValueError):
    """The run has nothing that this plot shows."""


class Mark(NamedTuple):
    """A value of one mechanism in a row, with its interval and what theory expects, NaN where there is none."""

    name: str
    style: Style
    value: float
    low: float = math.nan
    high: float = math.nan
    theory: float = math.nan
    bound: bool = False


class Row(NamedTuple):
    """A row: its group, its label, its marks, and the success of a guess without any observation, NaN if none."""

    group: str
    label: str
    marks: Sequence[Mark]
    prior: float = math.nan

    @property
    def lines(self) -> float:
        """Its height, in lines of text."""
        return max(1.2, 1.0 + wrapped(self.label).count("\n"), 0.7 * len(self.marks))


class RunPlots:
    """The plots of a run: `result.plot`.

    Each method draws on the axes given as `ax`, or on those of a new figure, and returns the axes. A mechanism has the
    same colour in all of them as in the report.

    Parameters
    ----------
    run
        The run.
    shown
        Whether new figures are those of pyplot, which notebooks show.
    """

    def __init__(self, run: RunResult, *, shown: bool = True) -> None:
        self._run, self._shown = run.leading, shown

    def __repr__(self) -> str:
        return f"<RunPlots of {self._run.record.scenario}: map, errors, growth, privacy, attacks, traffic>"

    @property
    def maps(self) -> list[tuple[str, str, Quantity]]:
        """What `map` can show: campaign, mechanism and quantity; the truth of a campaign once."""
        shown: list[tuple[str, str, Quantity]] = []
        pairs = self._run.estimates[["campaign", "mechanism"]].drop_duplicates()
        for campaign, rows in pairs.groupby("campaign", sort=False):
            names = [str(name) for name in rows["mechanism"]]
            shown.append((str(campaign), names[0], "truth"))
            both: tuple[Quantity, ...] = ("estimate", "error")
            shown += [(str(campaign), name, quantity) for name in names for quantity in both]
        return shown

    @property
    def units(self) -> list[str]:
        """Units of the errors that `errors` can show."""
        return list(self._run.scores_by_unit)

    def map(
        self,
        mechanism: str | None = None,
        *,
        campaign: str | None = None,
        query: int | None = None,
        quantity: Quantity = "estimate",
        roads: bool = True,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Draw the cells by their value at one query, with a colour bar and a scale bar; north is up.

        Parameters
        ----------
        mechanism
            Whose estimate or error; by default the first other than no privacy.
        campaign, query
            By default the first of either.
        quantity
            ``truth``, ``estimate`` or ``error``, the estimate minus the truth, where cells below 0 are hatched.
        roads
            Whether roads, if the run has any, are drawn beneath the cells.
        ax
            The axes.

        Raises
        ------
        InputError
            If the run has no such mechanism, campaign, query or quantity, or matplotlib is not installed.
        NothingToDrawError
            If the run published no estimate.
        """
        if self._run.estimates.empty:
            raise NothingToDrawError("no estimate of any cell was published in this run")
        values = values_of(self._run, mechanism=mechanism, campaign=campaign, query=query, quantity=quantity)
        cells = projected(values.cells, self._run.record.city.crs)
        ax = self._axes(ax, 0.7 * shape_of(cells) + 0.12)
        credit = "; ".join(self._run.attributions)
        draw_map(ax, values._replace(cells=cells), self._run.roads if roads else None, credit, scale=self._run.on_earth)
        return ax

    def errors(self, *, unit: str | None = None, ax: "Axes | None" = None) -> "Axes":
        """Draw the root mean square error of each mechanism, by campaign, beside the theoretical one.

        Parameters
        ----------
        unit
            Unit of the errors, ``vehicles`` or ``m/s``; by default the first that the run has.
        ax
            The axes.

        Raises
        ------
        NothingToDrawError
            If no mechanism has an error.

        Notes
        -----
        The 95 % interval of a campaign with several queries is that of `compare`: a t-interval of the queries' mean
        square errors, which assumes that errors of different queries are independent.
        """
        every = self._run.scores_by_unit
        unit = chosen(unit, every, "unit")
        rows = list[Row]()
        for score in every[unit].to_dict("records"):
            campaign, name = str(score["campaign"]), str(score["mechanism"])
            ends = self._interval(campaign, name)
            mark = Mark("", style(self._run, name), score["rmse"], *ends, theory=score["theory_rmse"])
            rows.append(Row(campaign, self._run.published_label(campaign, name), [mark]))
        values = [value for row in rows for mark in row.marks for value in (mark.value, mark.high, mark.theory)]
        ends = 0.0, 1.1 * max([0.0, *(value for value in values if math.isfinite(value))]) or 1.0
        known = any(math.isfinite(row.marks[0].value) for row in rows)
        x = Axis(f"RMSE of a cell, {unit}", ends=ends)
        return self._rows(ax, rows if known else [], x, "no mechanism of this run has an error")

    def _interval(self, campaign: str, mechanism: str) -> tuple[float, float]:
        """Return the ends of the 95 % interval of a root mean square error, NaN for a single query."""
        frame = self._run.estimates
        rows = frame[(frame["campaign"] == campaign) & (frame["mechanism"] == mechanism)]
        square = np.square((rows["estimate"] - rows["truth"]).to_numpy(np.float64))
        if rows["query"].nunique() < 2:
            return math.nan, math.nan
        query = np.unique(rows["query"], return_inverse=True)[1]
        found = paired_difference(query, np.zeros(len(rows)), square, root=True)
        return max(found["lower"], 0.0), found["upper"]

    def _axes(self, ax: "Axes | None", height: float) -> "Axes":
        return new_axes(shown=self._shown, height=height) if ax is None else ax

    def _drawn(self, ax: "Axes | None", chart: Chart, height: float) -> "Axes":
        ax = self._axes(ax, height)
        draw(chart, ax)
        return ax

    def _rows(self, ax: "Axes | None", rows: Sequence[Row], x: Axis, without: str) -> "Axes":
        """Draw rows; without any, raise an error with the words `without`."""
        if not rows:
            raise NothingToDrawError(without)
        return self._drawn(ax, rows_chart(rows, x), height_of(rows))

    def growth(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the error in a cell against the number of devices asked: theory as lines, this run as symbols.

        Raises
        ------
        NothingToDrawError
            If no mechanism has an error above 0.
        """
        chart = growth(self._run)
        if chart is None:
            raise NothingToDrawError("no mechanism of this run has an error above 0")
        return self._drawn(ax, chart, 0.68 + 0.04 * len(self._run.mechanisms))

    def privacy(
        self, quantity: Literal["epsilon", "delta"] = "epsilon", *, queries: int = 1, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw what is claimed of each mechanism, by view: the largest ε at δ = 0, or δ at the ε nearest to 1.

        Parameters
        ----------
        quantity
            ``epsilon``: the largest for any crowd, release and adjacency; where no finite ε holds, it stands at ∞.
            ``delta``: by crowd; the largest for any release and adjacency; below 1e-12 it stands at the left end.
        queries
            Number of queries that are observed together.
        ax
            The axes.

        Raises
        ------
        NothingToDrawError
            If the run claims nothing about this number of queries.

        Notes
        -----
        An upper bound has a ≤ before it. What is not known stands right of ∞.
        """
        by_delta = chosen(quantity, ("epsilon", "delta"), "quantity") == "delta"
        claims = [claim for claim in view_claims(self._run.claims) if claim.queries == queries]
        values: dict[str, dict[str, tuple[float, bool]]] = {}
        for name in dict.fromkeys(claim.mechanism for claim in claims):
            own = [claim for claim in claims if claim.mechanism == name]
            for claim in worth_reading(own, rounds=self._run.rounds_of(name)):
                row = values.setdefault(_view_words(claim, with_crowd=by_delta), {})
                new, weakest = _claimed(claim, by_delta=by_delta), row.get(name, (-1.0, False))
                # What is not known, NaN, is weaker than any value.
                row[name] = weakest if math.isnan(weakest[0]) or new[0] < weakest[0] else new
        place, ticks = _claim_axis([value for row in values.values() for value, _ in row.values()])
        rows = []
        for words, row in values.items():
            looks = {name: (self._run.label(name), style(self._run, name)) for name in row}
            marks = [Mark(*looks[name], place(value), bound=bound) for name, (value, bound) in row.items()]
            rows.append(Row("", words, marks))
        air = (max(ticks) / min(ticks)) ** 0.07
        unit = "δ at the ε nearest to 1" if by_delta else "ε at δ = 0"
        x = Axis(unit, log=True, ticks=ticks, ends=(min(ticks) / air, max(ticks) * air))
        return self._rows(ax, rows, x, f"this run has no claims about {_queries(queries)}")

    def attacks(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the success of guesses, by coalition: with 95 % intervals, theory, and a guess without observation.

        Raises
        ------
        NothingToDrawError
            If no attack of the run guesses.
        """
        found = findings_in_order(self._run).dropna(subset=["success", "prior"])
        found = found[found["metric"].isin(["", "queries"])]
        rows = []
        for _, own in found.groupby(["campaign", "name", "coalition", "value"], sort=False, dropna=False):
            first = own.iloc[0]
            after = "" if math.isnan(first["value"]) else f", {_queries(int(first['value']))}"
            marks = []
            for one in own.to_dict("records"):
                label, look = self._run.label(one["mechanism"]), style(self._run, one["mechanism"])
                ends = one["prior"] + one["gain_low"], one["prior"] + one["gain_high"]
                marks.append(Mark(label, look, one["success"], *ends, theory=one["theory"]))
            words = f"{first['name']}: {first['coalition'] or 'any reader'}{after}"
            rows.append(Row(first["campaign"] or "all campaigns together", words, marks, own["prior"].mean()))
        x = Axis("probability of a right guess", ends=(-0.02, 1.02))
        return self._rows(ax, rows, x, "no attack of this run guesses")

    def traffic(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the vehicles on the road, waiting to enter it, and arrived, over time; each engine has one colour.

        Raises
        ------
        NothingToDrawError
            If the run kept no log of its traffic.
        """
        if not self._run.record.traffic.times_s:
            raise NothingToDrawError("this run kept no log of its traffic")
        return self._drawn(ax, over_time(self._run, arrived=True), 0.7)


_BAND = 0.6
"""Share of a row's height over which its marks are distributed."""
_HEADING = 1.2
"""Height of the heading of a group of rows, in lines of text."""
_LINE_LENGTH = 24


def wrapped(words: str) -> str:
    """Return the label of a row in lines of limited length."""
    return textwrap.fill(words, _LINE_LENGTH)


def height_of(rows: Sequence[Row]) -> float:
    """Return the height of a figure for the rows, in units of its width: 0.14 inches a line in a single column."""
    groups, names = {row.group for row in rows}, {mark.name for row in rows for mark in row.marks}
    return 0.2 + 0.041 * (sum(row.lines for row in rows) + len(names) + (_HEADING * len(groups) * (len(groups) > 1)))


def rows_chart(rows: Sequence[Row], x: Axis) -> Chart:
    """
    Draw rows from top to bottom, under a heading for each group if there are several.

    Parameters
    ----------
    rows
        The rows, in order; those of a group are neighbours.
    x
        The axis of their values.

    Returns
    -------
    chart
        Values of several mechanisms by campaign, view or coalition, with intervals and theory.
    """
    several = len({row.group for row in rows}) > 1
    series: list[Series] = []
    ticks: dict[float, str] = {}
    headings: dict[float, str] = {}
    top = 0.0
    for group, own in groupby(rows, key=lambda row: row.group):
        if several:
            headings[top + _HEADING / 2] = group
            top += _HEADING
        for row in own:
            middle = top + row.lines / 2
            ticks[middle] = wrapped(row.label)
            series += _row(row, middle)
            top += row.lines
    y = Axis("", ends=(top, 0.0), ticks=ticks, names=True, headings=headings)
    return Chart(series, x, y, sideways=True)


def _row(row: Row, middle: float) -> list[Series]:
    """Return the marks of a row, one below the other around its middle, with those of theory and of the prior."""
    band = _BAND * row.lines
    series = []
    if math.isfinite(row.prior):
        dotted = PLAIN._replace(dash="dot")
        series.append(Series("guess without any observation", [row.prior], [middle], "dashes", dotted, width=band))
    for number, mark in enumerate(row.marks):
        y = [middle + band * ((number + 0.5) / len(row.marks) - 0.5)]
        if math.isfinite(mark.theory):
            width = band / len(row.marks)
            series.append(Series("theory", [mark.theory], y, "dashes", PLAIN, width=width, thin=True))
        interval = [mark.low], [mark.high]
        series.append(Series(mark.name, [mark.value], y, "points", mark.style, *interval, bounds=[mark.bound]))
    return series


def _queries(count: int) -> str:
    return f"{count} {'query' if count == 1 else 'queries'}"


def _claimed(claim: ViewClaim, *, by_delta: bool) -> tuple[float, bool]:
    """Return a claim's ε at δ = 0, or its δ at the ε nearest to 1, NaN if not known; and whether it is a bound."""
    if not by_delta:
        return math.nan if claim.epsilon is None else claim.epsilon, claim.kind == "bound"
    if claim.nearest_one is None:
        return math.nan, False
    _, value = claim.nearest_one
    return math.nan if value is None else value, claim.delta_kind == "bound"


def _view_words(claim: ViewClaim, *, with_crowd: bool) -> str:
    """Return the label of a claim's view: "shares, 2 of 3 servers"."""
    parts = {
        f"{claim.colluding or 0} of {claim.servers} servers": claim.servers,
        f"below {claim.k} left out": claim.k,
        f"campaign {claim.campaign}": claim.campaign,
        f"crowd {claim.crowd}": claim.crowd and with_crowd,
    }
    return ", ".join([claim.view.replace("_", " "), *(words for words, stated in parts.items() if stated)])


_SMALLEST, _LARGEST = 1e-12, 1e100
"""Values below the first are shown as 0, and above the second as infinite ones are."""


def _claim_axis(values: Sequence[float]) -> tuple[Callable[[float], float], dict[float, str]]:
    """Return the place of a value on a logarithmic axis, and the axis's ticks.

    0, ∞ and what is not known, NaN, have places beside the others, and ticks where they occur.
    """
    finite = [value for value in values if _SMALLEST <= value <= _LARGEST] or [1.0]
    low = math.floor(math.log10(min(finite)))
    high = max(math.ceil(math.log10(max(finite))), low + 1)
    gap = 0.15 * (high - low)
    zero, infinite, unknown = (math.pow(10.0, at) for at in (low - 1.7 * gap, high + gap, high + 2.0 * gap))

    def place(value: float) -> float:
        if math.isnan(value):
            return unknown
        return infinite if value > _LARGEST else value if value >= _SMALLEST else zero

    digits = (1, 2, 5) if high - low < 3 else (1,)
    scale = [*(digit * 10.0**power for power in range(low, high) for digit in digits), 10.0**high]
    names = {
        zero: "<1e-12" if any(0 < value < _SMALLEST for value in values) else "0",
        infinite: ">1e100" if any(_LARGEST < value < math.inf for value in values) else "∞",
    }
    used = {place(value) for value in values}
    special = {at: words for at, words in {**names, unknown: "unknown"}.items() if at in used}
    return place, special | {value: f"{value:g}" for value in scale[:: -(-len(scale) // 5)]}
