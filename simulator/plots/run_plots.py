"""The plots of one run: map, errors, growth, privacy, attacks and traffic, on axes that compose."""

import math
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from simulator.experiment.comparison import paired_difference
from simulator.experiment.provenance import attributions
from simulator.experiment.result import RunData
from simulator.experiment.run_directory import TABLES
from simulator.plots.city_map import chosen, draw_map, projected, shape_of, values_of
from simulator.plots.looks import DASHES, add_legend, marked, new_axes, plain
from simulator.plots.rows import Mark, Row, draw_rows, height_of
from simulator.reporting.attacks_section import findings
from simulator.reporting.claims_section import ViewClaim, view_claims, worth_reading
from simulator.reporting.figures import measured, numbered_style, style
from simulator.reporting.formatting import counted
from simulator.reporting.run_reader import FinishedRun
from simulator.reporting.traffic_section import RECORDINGS, EngineTraffic

if TYPE_CHECKING:
    import geopandas as gpd
    from matplotlib.axes import Axes

Quantity = Literal["truth", "estimate", "error"]


class NothingToDrawError(ValueError):
    """The run has nothing that this plot shows."""


def finished_run(data: RunData) -> FinishedRun:
    """Return a run in memory as the report reads it."""
    tables = {name: getattr(data, name) for name in ("cells", *TABLES)}
    return FinishedRun(Path(), record=data.record, tables=tables)


class RunPlots:
    """The plots of a run: `result.plot`.

    Each method draws on the axes given as `ax`, or on those of a new figure, and returns the axes. A mechanism has the
    same colour in all of them as in the report.

    Parameters
    ----------
    data
        The run.
    shown
        Whether new figures are those of pyplot, which notebooks show.
    """

    def __init__(self, data: RunData, *, shown: bool = True) -> None:
        self._data, self._shown = data, shown
        self._run = finished_run(data)

    def __repr__(self) -> str:
        return f"<RunPlots of {self._run.record.scenario}: map, errors, growth, privacy, attacks, traffic>"

    @cached_property
    def _roads(self) -> "gpd.GeoDataFrame | None":
        return self._data.road_lines()

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
            Whether roads are drawn beneath the cells; they are made or read again as the scenario states, and left out
            if its files are gone.
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
        ax = new_axes(shown=self._shown, height=0.7 * shape_of(cells) + 0.12) if ax is None else ax
        lines = self._roads if roads else None
        credit = "; ".join(attributions(self._data.scenario, self._run.record.data))
        draw_map(ax, values._replace(cells=cells), lines, credit)
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
        rows = []
        for score in every[unit].to_dict("records"):
            campaign, name = str(score["campaign"]), str(score["mechanism"])
            low, high = self._interval(campaign, name)
            look = style(self._run, name)
            mark = Mark("", look, float(score["rmse"]), low, high, float(score["theory_rmse"]))
            rows.append(Row(campaign, self._run.published_label(campaign, name), [mark]))
        if not any(math.isfinite(row.marks[0].value) for row in rows):
            raise NothingToDrawError("no mechanism of this run has an error")
        ax = new_axes(shown=self._shown, height=height_of(rows)) if ax is None else ax
        draw_rows(ax, rows, f"RMSE of a cell, {unit}")
        ax.set_xlim(0, 1.04 * ax.get_xlim()[1])
        return ax

    def _interval(self, campaign: str, mechanism: str) -> tuple[float, float]:
        """Return the ends of the 95 % interval of a root mean square error, NaN for a single query."""
        frame = self._run.estimates
        rows = frame[(frame["campaign"] == campaign) & (frame["mechanism"] == mechanism)]
        square = np.square((rows["estimate"] - rows["truth"]).to_numpy(np.float64))
        if not len(rows):
            return math.nan, math.nan
        query = np.unique(rows["query"], return_inverse=True)[1]
        found = paired_difference(query, np.zeros(len(rows)), square, root=True)
        return max(found["lower"], 0.0) if math.isfinite(found["lower"]) else math.nan, found["upper"]

    def growth(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the error in a cell against the number of devices asked: theory as lines, this run as symbols.

        Raises
        ------
        NothingToDrawError
            If no mechanism has an error above 0.
        """
        curves = {
            name: [(n, error) for n, error in zip(one.scaling.asked, one.scaling.std_error, strict=True) if error]
            for name, one in self._run.mechanisms.items()
            if one.scaling is not None
        }
        points = {name: measured(self._run, name) for name in self._run.mechanisms}
        names = [name for name in self._run.mechanisms if curves.get(name) or points[name]]
        if not names:
            raise NothingToDrawError("no mechanism of this run has an error above 0")
        ax = new_axes(shown=self._shown, height=0.8) if ax is None else ax
        for name in names:
            look, label = style(self._run, name), plain(self._run.label(name))
            if curve := curves.get(name):
                ax.plot(*zip(*curve, strict=True), color=look.colour, linestyle=DASHES[look.dash], label=label)
            if points[name]:
                ax.plot(*zip(*points[name], strict=True), **marked(look), label=label if not curve else None)
        ax.set(xscale="log", yscale="log", xlabel="devices asked")
        ax.set_ylabel(plain(f"error of a cell, {self._run.owners.many}"))
        ax.grid(color="0.9")
        add_legend(ax)
        return ax

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
        Open symbols are upper bounds. What is not known stands right of ∞.
        """
        by_delta = chosen(quantity, ("epsilon", "delta"), "quantity") == "delta"
        every = [claim for claim in view_claims(self._run.claims) if claim.queries == queries]
        claims = [
            claim
            for name in dict.fromkeys(claim.mechanism for claim in every)
            for claim in worth_reading(
                [one for one in every if one.mechanism == name], rounds=self._run.rounds_of(name)
            )
        ]
        values: dict[str, dict[str, tuple[float, bool]]] = {}
        for claim in claims:
            value, bound = _claimed(claim, by_delta=by_delta)
            own = values.setdefault(_view_words(claim, every_crowd=not by_delta), {})
            weakest = own.get(claim.mechanism, (-1.0, False))
            # What is not known, NaN, is weaker than any value.
            own[claim.mechanism] = weakest if math.isnan(weakest[0]) or value < weakest[0] else (value, bound)
        if not values:
            raise NothingToDrawError(f"this run has no claims about {_queries(queries)}")
        axis = _ClaimAxis([value for own in values.values() for value, _ in own.values()])
        rows = [
            Row(
                "",
                words,
                [
                    Mark(self._run.label(name), style(self._run, name), axis.at(value), hollow=bound)
                    for name, (value, bound) in own.items()
                ],
            )
            for words, own in values.items()
        ]
        ax = new_axes(shown=self._shown, height=height_of(rows)) if ax is None else ax
        draw_rows(ax, rows, "δ at the ε nearest to 1" if by_delta else "ε at δ = 0")
        ax.set_xticks(*axis.ticks)
        ax.set_xlim(*axis.ends)
        return ax

    def attacks(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the success of guesses, by coalition: with 95 % intervals, theory, and a guess without observation.

        Raises
        ------
        NothingToDrawError
            If no attack of the run guesses.
        """
        found = findings(self._run.attacks).dropna(subset=["success", "prior"])
        found = found[found["metric"].isin(["", "queries"])]
        if found.empty:
            raise NothingToDrawError("no attack of this run guesses")
        order = {campaign: place for place, campaign in enumerate(self._run.deployments)}
        found = found.sort_values("campaign", key=lambda names: names.map(order).fillna(len(order)), kind="stable")
        rows = []
        keys = ["campaign", "name", "coalition", "value"]
        for (campaign, name, coalition, _), own in found.groupby(keys, sort=False, dropna=False):
            seen = float(own["value"].iloc[0])
            after = "" if math.isnan(seen) else f", {_queries(int(seen))}"
            marks = [
                Mark(
                    self._run.label(one["mechanism"]),
                    style(self._run, one["mechanism"]),
                    one["success"],
                    one["prior"] + one["gain_low"],
                    one["prior"] + one["gain_high"],
                    one["theory"],
                )
                for one in own.to_dict("records")
            ]
            words = f"{name}: {coalition or 'any reader'}{after}"
            rows.append(Row(str(campaign) or "all campaigns together", words, marks, float(own["prior"].mean())))
        ax = new_axes(shown=self._shown, height=height_of(rows)) if ax is None else ax
        draw_rows(ax, rows, "probability of a right guess")
        ax.set_xlim(-0.02, 1.02)
        return ax

    def traffic(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the vehicles on the road, waiting to enter it, and arrived, over time; each engine has one colour.

        Raises
        ------
        NothingToDrawError
            If the run kept no log of its traffic.
        """
        record = self._run.record.traffic
        if not record.times_s:
            raise NothingToDrawError("this run kept no log of its traffic")
        ax = new_axes(shown=self._shown, height=0.7) if ax is None else ax
        engines = [EngineTraffic(one) for one in (record, *record.beside)]
        for place, one in enumerate(engines):
            recorded = one.record.engine in RECORDINGS
            states = [(one.record.on_road, "present" if recorded else "on the road", "-")]
            if not recorded:
                states += [(one.record.waiting, "waiting to enter", ":"), (one.record.arrived, "arrived", "--")]
            for counts, words, dash in states:
                label = f"{one.label}, {words}" if len(engines) > 1 else words
                minutes, paint = np.array(one.record.times_s) / 60, numbered_style(place).colour
                ax.plot(minutes, counts, color=paint, linestyle=dash, label=plain(label))
        ax.set_xlabel("minutes from the start")
        ax.set_ylabel(plain(self._run.owners.many))
        ax.set_ylim(bottom=0)
        ax.grid(color="0.9")
        add_legend(ax)
        return ax


def _queries(count: int) -> str:
    return f"{count} {'query' if count == 1 else 'queries'}"


def _claimed(claim: ViewClaim, *, by_delta: bool) -> tuple[float, bool]:
    """Return a claim's ε at δ = 0, or its δ at the ε nearest to 1, NaN if not known; and whether it is a bound."""
    if not by_delta:
        return math.nan if claim.epsilon is None else claim.epsilon, claim.kind == "bound"
    if not claim.deltas:
        return math.nan, False
    value = min(claim.deltas, key=lambda pair: abs(pair[0] - 1.0))[1]
    return math.nan if value is None else value, claim.delta_kind == "bound"


def _view_words(claim: ViewClaim, *, every_crowd: bool) -> str:
    """Return the label of a claim's view: "shares, 2 of 3 servers"."""
    words = [claim.view.replace("_", " ")]
    if claim.servers:
        words.append(f"{claim.colluding or 0} of {counted(claim.servers, 'server')}")
    words += [f"below {claim.k} left out"] if claim.k is not None else []
    words += [f"campaign {claim.campaign}"] if claim.campaign else []
    words += [f"crowd {claim.crowd:,}"] if claim.crowd and not every_crowd else []
    return ", ".join(words)


_SMALLEST = 1e-12
"""Values below it are shown as 0."""


class _ClaimAxis:
    """Logarithmic axis on which 0, ∞ and what is not known have places of their own, where they occur."""

    def __init__(self, values: list[float]) -> None:
        powers = [math.log10(value) for value in values if _SMALLEST <= value < math.inf] or [0.0]
        low, high = math.floor(min(powers)), max(math.ceil(max(powers)), math.floor(min(powers)) + 1)
        gap = 0.15 * (high - low)
        zero = "0" if all(value == 0 or not value < _SMALLEST for value in values) else "<$10^{-12}$"
        self._special = {zero: low - 1.7 * gap, "∞": high + gap, "unknown": high + 2 * gap}
        self._zero = zero
        places = [self.at(value) for value in values]
        kept = {words: place for words, place in self._special.items() if place in places}
        step = -(-(high - low) // 4)
        scale = {_power(power): float(power) for power in range(low, high + 1, step)}
        if high - low <= 2:
            between = [digit * 10.0**power for power in range(low, high) for digit in (2, 5)]
            scale |= {f"{value:g}": math.log10(value) for value in between}
        every = dict(sorted((scale | kept).items(), key=lambda item: item[1]))
        self.ticks = list(every.values()), list(every)
        self.ends = min(every.values()) - 0.4 * gap, max(high, *every.values()) + 0.4 * gap

    def at(self, value: float) -> float:
        """Return the place of a value."""
        if math.isnan(value):
            return self._special["unknown"]
        if value < _SMALLEST or math.isinf(value):
            return self._special["∞" if value > 1 else self._zero]
        return math.log10(value)


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"$10^{{{power}}}$"
