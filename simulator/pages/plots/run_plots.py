"""The plots of one run: map, errors, growth, privacy, attacks, traffic and links, on axes that compose."""

import math
import textwrap
from typing import TYPE_CHECKING, Literal

import pandas as pd

from mechanisms.privacy.claim import Claim
from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.matplotlib import draw
from simulator.pages.charts.spec import open_axis
from simulator.pages.charts.styles import PLAIN
from simulator.pages.plots.city_map import Values, chosen, draw_map, projected, shape_of, values_of
from simulator.pages.plots.looks import new_axes
from simulator.pages.run_charts import growth, style
from simulator.pages.traffic_section import fundamental_diagram, over_time, time_space
from simulator.results.run import RunResult

if TYPE_CHECKING:
    import geopandas as gpd
    from matplotlib.axes import Axes

Quantity = Literal["truth", "estimate", "error"]


class NothingToDrawError(ValueError):
    """The run has nothing that this plot shows."""


class RunPlots:
    """The plots of a run: `result.plot`.

    Each method draws on the axes given as `ax`, or on the axes of a new figure, and returns the axes. A mechanism has
    the same colour in all of them as in the report.

    Parameters
    ----------
    run
        The run.
    shown
        Whether new figures are pyplot's, which notebooks show.
    """

    def __init__(self, run: RunResult, *, shown: bool = True) -> None:
        self._run, self._shown = run.leading, shown

    def __repr__(self) -> str:
        names = "map, errors, growth, privacy, attacks, traffic, links, fundamental_diagram, time_space"
        return f"<RunPlots of {self._run.record.scenario}: {names}>"

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
        return list(self._run.errors_by_unit)

    @property
    def has_links(self) -> bool:
        """Whether the run has links by interval."""
        return self._run.links is not None and not self._run.links.empty

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
        return self._mapped(ax, values._replace(cells=cells), self._run.roads if roads else None)

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
        The 95 % interval of a campaign with several queries is the report's interval, `error_intervals`.
        """
        every = self._run.errors_by_unit
        scores = every[chosen(unit, every, "unit")]
        rows = scores.rename(columns={"campaign": "group", "rmse": "value", "theory_rmse": "theory"}).assign(name="")
        values = [value for column in ("value", "high", "theory") for value in rows[column] if math.isfinite(value)]
        x = Axis(f"RMSE of a cell, {scores['unit'].iloc[0]}", ends=(0.0, 1.1 * max(values, default=0.0) or 1.0))
        shown = rows if rows["value"].notna().any() else rows.iloc[:0]
        return self._rows(ax, shown, x, "no mechanism of this run has an error")

    def _axes(self, ax: "Axes | None", height: float) -> "Axes":
        return new_axes(shown=self._shown, height=height) if ax is None else ax

    def _drawn(self, ax: "Axes | None", chart: Chart | None, height: float, without: str = "") -> "Axes":
        """Draw a chart; without one, raise an error with the words `without`."""
        if chart is None:
            raise NothingToDrawError(without)
        ax = self._axes(ax, height)
        draw(chart, ax)
        return ax

    def _mapped(self, ax: "Axes | None", values: Values, roads: "gpd.GeoDataFrame | None") -> "Axes":
        ax = self._axes(ax, 0.7 * shape_of(values.cells) + 0.12)
        draw_map(ax, values, roads, "; ".join(self._run.attributions), scale=self._run.record.city.on_earth)
        return ax

    def _rows(self, ax: "Axes | None", rows: pd.DataFrame, x: Axis, without: str) -> "Axes":
        """Draw rows, each with a `mechanism`; without any, raise an error with the words `without`."""
        rows = rows.assign(style=rows["mechanism"].map(lambda name: style(self._run, name)))
        chart, height = rows_chart(rows, x)
        return self._drawn(ax, None if rows.empty else chart, height, without)

    def growth(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the error in a cell against the number of devices asked: theory as lines, this run as symbols.

        Raises
        ------
        NothingToDrawError
            If no mechanism has an error above 0.
        """
        without = "no mechanism of this run has an error above 0"
        return self._drawn(ax, growth(self._run), 0.68 + 0.04 * len(self._run.record.mechanisms), without)

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
        values: dict[str, dict[str, tuple[float, bool]]] = {}
        for name, claims in self._run.claims_by_mechanism.items():
            for claim in (claim for claim in claims if claim.queries == queries):
                row = values.setdefault(_view_words(claim, with_crowd=by_delta), {})
                new, weakest = _claimed(claim, by_delta=by_delta), row.get(name, (-1.0, False))
                # What is not known, NaN, is weaker than any value.
                row[name] = weakest if math.isnan(weakest[0]) or new[0] < weakest[0] else new
        columns = ["group", "label", "mechanism", "name", "value", "bound"]
        records = [
            ("", words, name, self._run.record.label(name), *claimed)
            for words, row in values.items()
            for name, claimed in row.items()
        ]
        rows = pd.DataFrame(records, columns=columns)
        x, places = open_axis("δ at the ε nearest to 1" if by_delta else "ε at δ = 0", rows["value"].tolist())
        return self._rows(ax, rows.assign(value=places), x, f"this run has no claims about {_queries(queries)}")

    def attacks(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the success of guesses, by coalition: with 95 % intervals, theory, and a guess without observation.

        Raises
        ------
        NothingToDrawError
            If no attack of the run guesses.
        """
        found = self._run.findings.dropna(subset=["success", "prior"])
        found = found[found["metric"].isin(["", "queries"])]
        after = ["" if math.isnan(value) else f", {_queries(int(value))}" for value in found["value"]]
        rows = found.assign(
            group=found["campaign"].replace("", "all campaigns together"),
            label=found["name"] + ": " + found["coalition"].replace("", "any reader") + after,
            name=found["mechanism"].map(self._run.record.label),
            value=found["success"],
            low=found["prior"] + found["gain_low"],
            high=found["prior"] + found["gain_high"],
        )
        x = Axis("probability of a right guess", ends=(-0.02, 1.02))
        return self._rows(ax, rows, x, "no attack of this run guesses")

    def traffic(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the vehicles on the road, waiting to enter it, and arrived, over time; each engine has one colour.

        Raises
        ------
        NothingToDrawError
            If the run kept no log of its traffic.
        """
        chart = over_time(self._run, arrived=True) if self._run.record.traffic.times_s else None
        return self._drawn(ax, chart, 0.7, "this run kept no log of its traffic")

    def links(self, quantity: Literal["volume", "speed"] = "volume", ax: "Axes | None" = None) -> "Axes":
        """Draw the links by their volume, vehicles an hour that left them, or their mean speed, of the whole run.

        Raises
        ------
        NothingToDrawError
            If the run has no links by interval.
        """
        table, roads = self._run.links, self._run.roads
        if table is None or table.empty or roads is None:
            raise NothingToDrawError(WITHOUT_LINKS)
        hours = (table["to_s"].max() - table["from_s"].min()) / 3600.0
        sums = table.assign(driven_m=table["mean_speed_mps"] * table["occupied_s"]).groupby("link").sum()
        values = sums["left"] / hours if quantity == "volume" else sums["driven_m"] / sums["occupied_s"]
        lines = projected(roads.assign(value=roads["link"].map(values)), self._run.record.city.crs)
        lines = lines[lines["value"].notna()].sort_values("value")
        words = {"volume": ("Volumes of links", "vehicles/h"), "speed": ("Mean speeds on links", "m/s")}[quantity]
        return self._mapped(ax, Values(lines, *words, 0.0, float(lines["value"].max())), roads)

    def fundamental_diagram(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the network's fundamental diagram: mean flow against mean density of all links, by interval.

        Raises
        ------
        NothingToDrawError
            If the run has no links by interval.
        """
        return self._drawn(ax, fundamental_diagram(self._run), 0.7, WITHOUT_LINKS)

    def time_space(self, vehicle: int | None = None, ax: "Axes | None" = None) -> "Axes":
        """Draw the vehicles on the links of a route: distance along it against time.

        Parameters
        ----------
        vehicle
            Number of the vehicle whose route it is; by default one on the route that most vehicles drove.
        ax
            The axes.

        Raises
        ------
        NothingToDrawError
            If the run kept no link entries, as runs of engines other than ``fleet`` and ``agents``, or none of this
            vehicle.
        """
        return self._drawn(ax, time_space(self._run, vehicle), 0.7, "this run kept no link entries of such a vehicle")


WITHOUT_LINKS = "this run has no links by interval: its scenario needs [report] link_interval_s"


_BAND = 0.6
"""Share of a row's height over which its marks are distributed."""
_HEADING = 1.2
"""Height of the heading of a group of rows, in lines of text."""
_LINE_LENGTH = 24


def rows_chart(rows: pd.DataFrame, x: Axis) -> tuple[Chart, float]:
    """
    Draw rows from top to bottom, under a heading for each group if there are several.

    Parameters
    ----------
    rows
        A value a row: its `group`; the `label` beside it, which several may share; its `name` in the legend, "" for
        none; its `style` and `value`; and, NaN where there is none, `low` and `high`, `theory`, `bound`, and `prior`,
        the success of a guess without any observation.
    x
        The axis of their values.

    Returns
    -------
    chart
        Values of several mechanisms by campaign, view or coalition.
    height
        Of a figure, in units of its width: 0.14 inches a line in a single column.
    """
    rows = rows.reindex(columns=[*rows, *{"low", "high", "theory", "prior", "bound"}.difference(rows)])
    series: list[Series] = []
    ticks: dict[float, str] = {}
    headings: dict[float, str] = {}
    top = 0.0
    for group, of_group in rows.groupby("group", sort=False):
        if rows["group"].nunique() > 1:
            headings[top + _HEADING / 2] = str(group)
            top += _HEADING
        for label, own in of_group.groupby("label", sort=False):
            words = textwrap.fill(str(label), _LINE_LENGTH)
            lines = max(1.2, 1.0 + words.count("\n"), 0.7 * len(own))
            ticks[top + lines / 2] = words
            series += _row(own, top + lines / 2, _BAND * lines)
            top += lines
    y = Axis("", ends=(top, 0.0), ticks=ticks, names=True, headings=headings)
    return Chart(series, x, y, sideways=True), 0.2 + 0.041 * (top + rows["name"].nunique())


def _row(own: pd.DataFrame, middle: float, band: float) -> list[Series]:
    """Return the values of a row, one below the other around its middle, with values of theory and of the prior."""
    series = []
    prior, width = own["prior"].mean(), band / len(own)
    if not math.isnan(prior):
        dotted = PLAIN._replace(dash="dot")
        series.append(Series("guess without any observation", [prior], [middle], "dashes", dotted, width=band))
    for number, mark in enumerate(own.to_dict("records")):
        y = [middle - band / 2 + width * (number + 0.5)]
        if not math.isnan(mark["theory"]):
            series.append(Series("theory", [mark["theory"]], y, "dashes", PLAIN, width=width, thin=True))
        ends, bounds = ([mark["low"]], [mark["high"]]), [mark["bound"] is True]
        series.append(Series(mark["name"], [mark["value"]], y, "points", mark["style"], *ends, bounds=bounds))
    return series


def _queries(count: int) -> str:
    return f"{count} {'query' if count == 1 else 'queries'}"


def _claimed(claim: Claim, *, by_delta: bool) -> tuple[float, bool]:
    """Return a claim's ε at δ = 0, or its δ at the ε nearest to 1, NaN if not known; and whether it is a bound."""
    if not by_delta:
        return math.nan if claim.kind == "unknown" else claim.epsilon, claim.kind == "bound"
    if claim.nearest_one is None:
        return math.nan, False
    return claim.nearest_one[1], claim.delta_kind == "bound"


def _view_words(claim: Claim, *, with_crowd: bool) -> str:
    """Return the label of a claim's view: "shares, 2 of 3 servers"."""
    parts = {
        f"{claim.colluding or 0} of {claim.servers} servers": claim.servers,
        f"below {claim.k} left out": claim.k,
        f"campaign {claim.campaign}": claim.campaign,
        f"crowd {claim.crowd}": claim.crowd and with_crowd,
    }
    return ", ".join([claim.view.replace("_", " "), *(words for words, stated in parts.items() if stated)])
