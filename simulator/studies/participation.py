"""How many vehicles must take part: error of counts, flows and speeds against participation, with what they send."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import scenarios
from scenarios import Scenario
from simulator.cells import RoadSegments
from simulator.experiment.components import RunComponents
from simulator.files.errors import InputError
from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.matplotlib import draw
from simulator.pages.charts.spec import open_axis
from simulator.pages.charts.styles import styles_of
from simulator.pages.document import PageGroup, write_document
from simulator.pages.plots.files import FORMATS
from simulator.pages.plots.looks import COLUMN_IN, paper_style, pyplot
from simulator.results.costs import ENERGY, costs_of
from simulator.results.formatting import listed, percent
from simulator.studies.design import Design
from simulator.studies.evaluate import base_tables
from simulator.studies.report import FILE_NAME, OF_MEANS
from simulator.studies.store import StudyDirectory
from simulator.studies.summary import HALF, HIGH, LOW, SHOWN, means
from simulator.studies.tables import TABLES, rendered, view_table, write_tables

COSTS = ("campaign", "mechanism", "rounds", "bytes_up", "bytes_down", "joules", "connected_joules")
LEVEL = "population.participation"
ALL, BUSIEST = "all cells", "busiest tenth of cells"
BUSIEST_SHARE = 0.1
KEYS = ("statistic", "group", "participation", "mechanism")
KNOWN_SHARE = 0.9
"""Share of the cells and queries that must be within the relative error so that a statistic counts as known."""
MOST_GROUPS = 6
"""Groups of cells that are drawn beside all cells and the busiest; the table has all."""
_KEPT = ("mechanisms", "refinements", "release", "aggregation")
_SPEEDS = {"name": "mean-speeds", "statistic": "mean_speed"}
_EXACT = {"kind": "none"}
_FASTEST_MPS = 70.0
"""Bound of speeds where no roads bound them."""


def participation_design(
    scenario: Scenario | str | Path, levels: Sequence[Any], *, replicates: int, **options: Any
) -> Design:
    """Return the design of a study of participation: a campaign of counts and one of mean speeds at the same times.

    Parameters
    ----------
    scenario
        Its first campaign of counts is run. The campaign of speeds has the release, bounds and `min_vehicles` of the
        scenario's first campaign of mean speeds; without one, exact means of two vehicles or more are published. Data
        owners that do not move have no speeds.
    levels
        Values of `population.participation`. 1 is added: true speeds come from the run of the same seed in which all
        vehicles take part.
    replicates, **options
        As in `design_of`.

    Raises
    ------
    ScenarioError
        If the scenario has no campaign of counts, or a fault with any of the levels.
    """
    loaded = scenarios.load(scenario, **options)
    given, tables = loaded.tables(), base_tables(loaded)
    tables |= {name: given[name] for name in _KEPT if name in given}
    (times,) = tables["campaigns"]
    counting = next(each for each in given["campaigns"] if each["name"] == times["name"])
    own = next((each for each in given["campaigns"] if each.get("statistic") == "mean_speed"), {"release": _EXACT})
    bound = {"upper_mps": _FASTEST_MPS} if tables["roads"]["source"] == "none" else {}
    measuring = {**bound, **own, **times, "aggregation": {"kind": "trusted"}, **_SPEEDS}
    tables["campaigns"] = [counting, *([measuring] if tables["traffic"].get("engine") != "static" else [])]
    if not any(each["kind"] == "no_privacy" for each in tables["mechanisms"]):
        tables["mechanisms"] = [*tables["mechanisms"], {"name": "trusted", "kind": "no_privacy"}]
    options = {"source": loaded.name, "seed": None, "permissions": loaded.permissions}
    made = Scenario.from_tables(tables, loaded.folder, (), **options)
    return Design.of_values(made, [{LEVEL: level} for level in dict.fromkeys([*levels, 1.0])], replicates=replicates)


def cell_groups(scenario: Scenario, by: str | None) -> "pd.Series[str]":
    """Return the group of each cell about which a scenario's first campaign asks, by number of the cell in tables.

    Parameters
    ----------
    scenario
        The scenario.
    by
        ``class``, the class of the road where cells are roads; or the name of a partition, with its cell that the
        middle of each cell is in; ``zone`` is the last one. None for no groups.

    Raises
    ------
    InputError
        If the city has no such partition, or its cells are not roads with classes.
    """
    if by is None:
        return pd.Series(dtype="str")
    components = RunComponents.build(scenario)
    city, name = components.city, components.campaigns[0].partition
    cells, names = city.partitions[name], [*city.partitions]
    if by == "class":
        cell_of_links = cells.cell_of_links.tolist() if isinstance(cells, RoadSegments) else []
        edges = city.roads.edges if cell_of_links else ()
        of_link = {data["link"]: data["class"] for *_, data in edges if data.get("class")}
        if not of_link:
            raise InputError(['by (--by): class needs cells.kind = "roads", and roads that have classes'])
        of_cell = {cell: of_link.get(link) for link, cell in enumerate(cell_of_links)}
        found = [of_cell[cell] for cell in range(1, cells.count + 1)]
    elif by not in ("zone", *names):
        raise InputError([f"by (--by): must be class, zone or a partition: {', '.join(names)}; got {by!r}"])
    else:
        zones = city.partitions[names[-1] if by == "zone" else by]
        middles = cells.polygons().to_crs(zones.crs).representative_point().get_coordinates()
        found = [["outside", *zones.names][zone] for zone in zones.cell_of(middles)]
    return pd.Series(found, city.cells_before[name] + 1 + np.arange(cells.count), dtype="str")


def participation_tables(
    directory: StudyDirectory, scenario: Scenario, groups: "pd.Series[str]", *, within: float = 0.2
) -> dict[str, pd.DataFrame]:
    """Return the tables of a finished study.

    Parameters
    ----------
    directory
        The study, which keeps ``participation``.
    scenario
        Of any of its points.
    groups
        As of `cell_groups`.
    within
        The relative error that is asked for.

    Returns
    -------
    dict of DataFrame
        ``participation``, a row per `statistic` (counts, flows, speeds), `group` of cells, `participation` and
        `mechanism`: `rmse_over_mean`, the root mean square error over the mean of the true values of all vehicles,
        with the ends of its interval, `rmse_over_mean_low` and `…_high`; `theory`, the same of counts of all cells in
        theory; `beats_zero`, whether the error is less than the error of 0 everywhere; `within` and `published`, the
        shares, of the cells and queries published at full participation, of those within the error, and published;
        `true`, the mean of the true values, of flows in vehicles · m/s; `n` runs. ``costs``, a row per campaign
        and mechanism, of `costs_of`.
    """
    counting, *measuring = (campaign.name for campaign in scenario.campaigns)
    scores, estimates, rounds = (directory.read_table(name) for name in ("scores", "estimates", "rounds"))
    estimates = estimates.rename(columns={LEVEL: "participation"})
    counts, speeds = (estimates[estimates["campaign"].isin(names)] for names in ([counting], measuring))
    counts = counts.assign(true=counts["vehicles"], value=counts["scaled_estimate"])
    at, of_run = ["replicate", "query", "cell"], ["participation", "replicate", "mechanism"]
    true = speeds[speeds["participation"] == 1.0].drop_duplicates(at).rename(columns={"truth": "true"})
    speeds = speeds.assign(value=speeds["estimate"]).merge(true[[*at, "true"]], on=at)
    trusted = speeds[speeds["mechanism"] == speeds["mechanism"].iloc[0]] if len(speeds) else speeds
    flows = counts.merge(trusted[["key", "query", "cell", "value", "true"]], on=["key", "query", "cell"])
    flows = flows.assign(value=flows["value_x"] * flows["value_y"], true=flows["true_x"] * flows["true_y"])

    mean = counts[counts["participation"] == 1.0].groupby(["replicate", "cell"])["true"].mean()
    rank = mean.groupby("replicate").rank(method="first", ascending=False)
    busy = rank[rank <= max(1.0, BUSIEST_SHARE * counts["cell"].nunique())].rename("rank")
    tables = []
    for statistic, rows in {"counts": counts, "flows": flows, "speeds": speeds}.items():
        if rows.empty:  # data owners that do not move, or no cell with enough vehicles
            continue
        busiest = rows.join(busy, on=["replicate", "cell"], how="inner").assign(group=BUSIEST)
        grouped = rows.assign(group=rows["cell"].map(groups)).dropna(subset="group")
        every = pd.concat([rows.assign(group=ALL), busiest, grouped])
        square, zero = (every["value"] - every["true"]) ** 2, every["true"] ** 2
        every = every.assign(square=square, zero=zero, within=square <= within**2 * zero, published=1)
        runs = every.groupby(["group", *of_run], sort=False)
        found = runs.agg({"square": "mean", "zero": "mean", "true": "mean", "published": "sum", "within": "sum"})
        # Where nothing is published in a run, its shares are 0.
        counted = found[["published", "within"]].unstack("participation", fill_value=0)
        shares = counted.div(counted["published"][1.0], axis=0).stack("participation", future_stack=True)
        found = shares.join(found[["square", "zero", "true"]])
        found["rmse_over_mean"] = np.sqrt(found["square"]) / found["true"].where(found["true"] > 0)
        tables.append(found.reset_index().assign(statistic=statistic))
    found = pd.concat(tables, ignore_index=True)
    theory = scores[scores["campaign"] == counting].set_index(of_run)["scaled_theory_rmse"].rename("theory")
    found = found.join(theory, on=of_run)
    drawn = (found["statistic"] == "counts") & (found["group"] == ALL)
    found["theory"] = (found["theory"] / found["true"]).where(drawn)
    plain = ["theory", "within", "published", "true", "square", "zero"]
    found = means(found, KEYS, ["rmse_over_mean", *plain])
    found["beats_zero"] = found.pop("square") < found.pop("zero")
    found = found.drop(columns=[f"{name}{end}" for name in plain for end in (HALF, LOW, HIGH)], errors="ignore")
    found = found.sort_values("participation", kind="stable", ignore_index=True)

    return {"participation": found, "costs": costs_of(rounds, ("key", "query"))[[*COSTS]]}


def needed_share(levels: Sequence[float], errors: Sequence[float], within: float) -> float | None:
    """Return the participation from which on errors are within a bound, interpolated between levels in logarithms.

    Levels ascend. At the lowest level if that suffices; None if the highest does not.
    """
    above = np.flatnonzero(~(np.asarray(errors) <= within))
    if not len(above):
        return levels[0]
    if above[-1] == len(levels) - 1:
        return None
    place = slice(above[-1], above[-1] + 2)
    low, high = (math.log(max(error / within, 0.01)) for error in errors[place])
    return math.exp(np.interp(0.0, [high, low], np.log(levels[place])[::-1]))


def needed_sentences(found: pd.DataFrame, within: float) -> Iterator[str]:
    """Yield, for each statistic, from which participation on nine in ten of the busiest cells are within a bound."""
    for statistic, rows in found[found["group"] == BUSIEST].groupby("statistic", sort=False):
        enough, lacking = list[str](), list[str]()
        for mechanism, mine in rows.groupby("mechanism", sort=False):
            levels, beyond = mine["participation"].tolist(), (1.0 - mine["within"]).tolist()
            useless = "" if mine["beats_zero"].iloc[-1] else ", which errs no less than an estimate of 0 everywhere"
            if (share := needed_share(levels, beyond, 1.0 - KNOWN_SHARE)) is None:
                lacking.append(f"{percent(1.0 - beyond[-1])} with {mechanism}{useless}")
            else:
                enough.append(f"{'at most ' if share == levels[0] else ''}{percent(share)} with {mechanism}{useless}")
        near = f"{statistic} of the {BUSIEST} are within {percent(within)} of the truth"
        if enough:
            yield f"Nine in ten {near} once this share of the vehicles takes part: {listed(enough)}."
        if lacking:
            yield f"Even if all vehicles take part, fewer {near}: {listed(lacking)}."


def participation_charts(found: pd.DataFrame) -> dict[str, list[Chart]]:
    """Return the charts of each group of cells: counts, flows and speeds, a line per mechanism."""
    styles = styles_of(found["mechanism"])
    ticks = {level: percent(level) for level in sorted(found["participation"].unique())}
    groups = [*dict.fromkeys(found["group"])]
    charts: dict[str, list[Chart]] = {group: [] for group in groups[: 2 + MOST_GROUPS]}
    for group, drawn in charts.items():
        for statistic, rows in found[found["group"] == group].groupby("statistic", sort=False):
            known = rows.dropna(subset="rmse_over_mean")
            values = [*known["rmse_over_mean"], *known["theory"].dropna()]
            y, places = open_axis(f"{statistic}: RMSE / true mean", values)
            place, series = dict(zip(values, places, strict=True)), []
            for name, mine in known.groupby("mechanism", sort=False):
                error, theory = mine["rmse_over_mean"].map(place), mine["theory"].map(place)
                x, look = mine["participation"], styles[str(name)]
                low, high = (mine[f"rmse_over_mean{end}"] for end in (LOW, HIGH))
                series.append(Series(str(name), x, error, "linked", look, low, high))
                if theory.notna().any():
                    look = look._replace(dash="solid")
                    series.append(Series(f"{name}, theory", x, theory, "line", look, thin=True, legend="theory"))
            across, title = Axis(f"take part ({group})", log=True, ticks=ticks), f"Error of {statistic}, {group}"
            drawn.append(Chart(series, across, y, title, f"{title}, against the share of the vehicles that take part."))
    return charts


def write_participation(
    directory: StudyDirectory, scenario: Scenario, groups: "pd.Series[str]", *, within: float
) -> tuple[list[str], list[str]]:
    """Write the page, its tables, and the figure as ``participation.svg``, ``.pdf`` and ``.png``, of a finished study.

    Parameters
    ----------
    directory, scenario, groups
        As for `participation_tables`.
    within
        The relative error that the sentences are about.

    Returns
    -------
    sentences
        For each statistic which share of the vehicles must take part, in words.
    notes
        That the figure is not written, if matplotlib is not installed.
    """
    tables = participation_tables(directory, scenario, groups, within=within)
    found = tables["participation"]
    sentences, charts = list(needed_sentences(found, within)), participation_charts(found)
    write_tables(directory.path / TABLES, tables)
    formats = {"rmse_over_mean": "percent"}  # no share: `means` would give a share other intervals
    views = {name: view_table(name, SHOWN["captions"][name], table, formats=formats) for name, table in tables.items()}
    drawn = [PageGroup(group, each) for group, each in charts.items()]
    costs, table = (PageGroup(table=views[name]) for name in ("costs", "participation"))
    parts = {"curves": drawn[:2], "groups": drawn[2:], "costs": [costs], "tables": [table]}
    values: dict[str, object] = {"sentences": sentences, "question": "How many vehicles must take part"}
    values["described"] = f"Runs of each level: {found['n'].max()}."
    html = rendered("participation", scenario.name, parts, values, points=OF_MEANS, energy=ENERGY)
    write_document(html, directory.path / FILE_NAME)
    try:
        plt = pyplot()
    except InputError as error:
        return sentences, [f"participation.{', .'.join(FORMATS)}: not written: {error}"]
    with plt.rc_context(paper_style(COLUMN_IN["double"])):
        figure = plt.Figure(figsize=(COLUMN_IN["double"], 3.0 * len(charts)), layout="constrained")
        for row, panels in enumerate(charts.values()):
            for column, chart in enumerate(panels, start=1):
                draw(chart, figure.add_subplot(len(charts), 3, 3 * row + column))
        for suffix, metadata in FORMATS.items():
            figure.savefig(directory.path / f"participation.{suffix}", metadata=metadata)
    return sentences, []
