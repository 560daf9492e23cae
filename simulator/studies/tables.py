"""Tables of studies and evaluations: as shown on a page, as CSV and as LaTeX; targets, winners, views and errors."""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mechanisms.planning.target import RELEASED, Target
from mechanisms.privacy.claim import Claim
from scenarios.field_types import number as exact
from simulator.pages.document import (
    FORMATS,
    Document,
    PageGroup,
    PageSection,
    ShownTable,
    marked,
    render,
    write_document,
)
from simulator.results.claims import claims_in
from simulator.results.formatting import MISSING, claimed, number, percent, related, whole
from simulator.results.names import statistic_of
from simulator.studies.charts import acting
from simulator.studies.summary import HALF, HIGH, LOW, SHOWN, is_numeric, means, stated_leaks, value_text

TABLES = "tables"
"""Folder of the files."""
MOST_ROWS = 1000
"""Largest number of rows of a table on the page; files have all."""


_LATEX = str.maketrans({"ε": r"$\varepsilon$", "±": r"$\pm$", "∞": r"$\infty$", "–": "--", "−": "$-$"})


def write_tables(directory: str | Path, tables: Mapping[str, pd.DataFrame]) -> None:
    """Write tables, given by name, as ``NAME.csv`` with all digits into a directory, created if it is missing."""
    for name, table in tables.items():
        write_document(table.to_csv(index=False, lineterminator="\n"), Path(directory) / f"{name}.csv")


def error_latex(own: pd.DataFrame, leaks: pd.DataFrame | None, titles: Mapping[str, str]) -> str:
    """Return the errors of one campaign as a LaTeX table that fits a column, for the package booktabs.

    A row has a mechanism, the values that its error depends on, the error with half the width of its interval, and ε
    where the values do not state it; exact estimates are left out.

    Parameters
    ----------
    own, leaks
        Rows of `settings_table`, and `leaks_table`.
    titles
        Titles of the factors.
    """
    unit = f"RMSE ({statistic_of(str(own['statistic'].iloc[0])).unit})"
    own = own[own["rmse"] > 0]
    own = own.assign(claim=stated_leaks(own, leaks, [*titles])["epsilon"].map(claimed))
    parts = []
    for name, mine in own.groupby("mechanism", sort=False):
        acts = acting(mine, titles, ("rmse", "claim"))
        cells = {title: mine[path].map(value_text) if path in acts else "all" for path, title in titles.items()}
        halves = mine[f"rmse{HALF}"]
        cells[unit] = mine["rmse"].map(number) + halves.map(number).radd(" ± ").where(halves.notna(), "")
        parts.append(pd.DataFrame({"Mechanism": str(name), **cells, "claim": mine["claim"]}).drop_duplicates())
    table = pd.concat(parts)
    stated = "ε" in table and ((table["claim"] == table["ε"]) | (table["claim"] == MISSING)).all()
    table = table.drop(columns="claim") if stated else table.rename(columns={"claim": "ε claimed"})
    table["Mechanism"] = table["Mechanism"].mask(table["Mechanism"].duplicated(), "")
    latex = table.to_latex(index=False, escape=True, column_format="l" + "r" * (len(table.columns) - 1))
    runs = f"mean over {own['n'].max()} runs, ± the larger distance to an end of its 95 % interval"
    return f"% \\usepackage{{booktabs}}; {runs}\n{latex.translate(_LATEX)}"


def rendered(
    page: str, heading: str, groups: Mapping[str, Sequence[PageGroup]], values: Mapping[str, object], **facts: object
) -> str:
    """Return a page with those of its sections that have charts or tables, and with its texts in ``tables.toml``.

    Parameters
    ----------
    page
        ``study``, ``evaluation`` or ``participation``.
    heading
        What it is about.
    groups
        The charts and tables of each section, by its name.
    values
        Values of its header.
    **facts
        What the texts of its sections name in braces.
    """
    sections = []
    for name, texts in SHOWN["sections"][page].items():
        about = [texts["about"].format(**facts)] if "about" in texts else []
        if groups[name]:
            sections.append(PageSection(name, texts["title"], texts.get("heading", ""), about, groups[name]))
    texts = {name: text.format(heading=heading) for name, text in SHOWN["pages"][page].items()}
    header = "study_header" if page == "study" else "verdict_header"
    return render(Document(**texts, heading=heading, header=header, sections=sections, values=values))


def view_table(
    name: str, caption: str, table: pd.DataFrame, *, formats: Mapping[str, str] = {}, titles: Mapping[str, str] = {}
) -> ShownTable:
    """Prepare any table for the page.

    Parameters
    ----------
    name, caption
        Of the file, and above the table.
    table
        The table; a column with others of its name and `HALF`, `LOW`, `HIGH` is shown with these, as
        `interval_text`.
    formats
        Names of formats of columns, as in `simulator.pages.document.FORMATS`, beside the formats in ``tables.toml``; by
        default `whole` for integers and `number` for other numbers.
    titles
        Titles of columns, beside the titles in ``tables.toml``; others are shown by their names.
    """
    content = base64.b64encode(table.to_csv(index=False, lineterminator="\n").encode()).decode("ascii")
    left_out = ""
    if len(table) > MOST_ROWS:
        left_out = f"{whole(len(table) - MOST_ROWS)} more rows are in {name}.csv"
        caption += f" (the first {whole(MOST_ROWS)} of {whole(len(table))} rows)"
        table = table.head(MOST_ROWS)
    formats, titles = {**SHOWN["formats"], **formats}, {**SHOWN["titles"], **titles}
    records = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    shown = [column for column in table if not str(column).endswith((HALF, LOW, HIGH))]
    columns = []
    for column in shown:
        integers = pd.api.types.is_integer_dtype(table[column])
        chosen = formats.get(str(column), "whole" if integers else "number")
        columns.append([_cell(row, str(column), chosen) for row in records])
    heads = [(titles.get(str(column), str(column)), is_numeric(table[column])) for column in shown]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return ShownTable(caption, heads, rows, f"{name}.csv", f"data:text/csv;base64,{content}", left_out)


def _cell(row: Mapping[str, Any], column: str, format_name: str) -> str:
    value = row[column]
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return marked(None, format_name)
    return marked(value, format_name, shown=interval_text(row, column, format_name))


def interval_text(row: Mapping[str, Any] | pd.Series, column: str, format_name: str = "number") -> str:
    """Return a mean of `means` with the ends of its interval, or ± half the width of one without stated ends."""
    written = FORMATS[format_name]
    text = written(row[column])
    low, high, half = (row.get(f"{column}{suffix}", math.nan) for suffix in (LOW, HIGH, HALF))
    if math.isfinite(high):
        return f"{text} [{written(low)}, {written(high)}]"
    return f"{text.removesuffix(' %')} ± {written(half)}" if math.isfinite(half) else text


class Size(NamedTuple):
    """Size of a data set.

    Attributes
    ----------
    cells
        V.
    population, batch
        Median and least number of devices whose reports are counted in a query.
    occupancy
        Mean number of devices in a cell.
    """

    cells: int
    population: int
    batch: int
    occupancy: int


@dataclass(frozen=True)
class Goal:
    """The target of an evaluation, for every data set.

    Attributes
    ----------
    view
        A view of `mechanisms.planning.target.VIEWS`.
    epsilon, delta, error
        The privacy required of the view, or, with `error`, the root mean square error allowed for a cell.
    adjacency, queries, k
        As in `mechanisms.planning.Target`.
    """

    view: str = "linked_reports"
    epsilon: float | None = None
    delta: float = 0.0
    error: float | None = None
    adjacency: Any = "move"
    queries: int = 1
    k: int | None = None

    @property
    def over(self) -> str:
        """The queries that the target is over, in words."""
        return "in one query" if self.queries == 1 else f"over {self.queries} queries"

    def words(self) -> str:
        """Return the target in one sentence."""
        change = self.adjacency.replace("_", " or ")
        privacy = f"ε = {exact(self.epsilon or 0.0)} and δ = {exact(self.delta)} for a device's {change}"
        wanted = privacy if self.error is None else f"an error of at most {self.error:g} vehicles in a cell"
        return f"Target: {self.view} {self.over} with {wanted}."

    def target(self, size: Size) -> Target:
        """Return the target for a data set of this size."""
        return Target(**size._asdict(), **vars(self))


def sentences(tables: Mapping[str, pd.DataFrame], view: str) -> list[str]:
    """Return who wins where: a sentence per data set, and the data sets that were left out.

    Where the target's view is of one round alone, it says what the rounds of the best mechanism reveal together.
    """
    said = []
    table, differences = tables["evaluation"], tables["differences"]
    for data, rows in table.groupby("data", sort=False):
        if not (best := best_of(rows, differences[differences["data"] == data])):
            why = next(iter(rows["reason"].dropna()), "no mechanism meets the target")
            said.append(f"{data}: {why}")
            continue
        winner = rows[rows["mechanism"] == best[0]].iloc[0]
        share = winner["participation"]
        whose = "" if share == 1.0 else f" (of all vehicles; {percent(share)} of them take part)"
        least = f"{number(winner['rmse'])} vehicles{whose}, {number(winner['relative_rmse'])} times the mean occupancy"
        also = f"; not distinguishable from it: {', '.join(best[1:])}" if len(best) > 1 else ""
        none = "" if winner["beats_zero"] else "no mechanism errs less than an estimate of 0 everywhere; "
        linked = _linked(tables["leaks"], data, best[0]) if view.startswith(("report", "shuffled")) else ""
        said.append(f"{data}: {none}{best[0]} has the least error, {least}{linked}{also}")
    return said


def _linked(leaks: pd.DataFrame, data: Any, mechanism: str) -> str:
    """Return what a mechanism's rounds reveal together over the campaign; empty for a mechanism of one round."""
    of_mechanism = leaks[(leaks["data"] == data) & (leaks["mechanism"] == mechanism)]
    if "report_round_2" not in set(of_mechanism["view"]):
        return ""
    linked = of_mechanism[of_mechanism["view"] == "linked_reports"].sort_values("queries").iloc[-1]
    pure = related("ε", "=", linked["epsilon"]) if math.isfinite(linked["epsilon"]) else "no finite ε"
    over = "" if linked["queries"] == 1 else f", over {linked['queries']} queries,"
    delta = related("δ", "=", linked["delta"])
    return f"; each round alone: whoever links its rounds{over} has {pure} and {delta} at the target's ε"


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Return the ends of the 95 % interval of a mean error, and the mean between them; NaN ends for a single value."""
    row = means(pd.DataFrame({"of": 0, "rmse": values}), ["of"], ["rmse"]).iloc[0]
    return float(row[f"rmse{LOW}"]), float(row["rmse"]), float(row[f"rmse{HIGH}"])


def best_of(rows: pd.DataFrame, differences: pd.DataFrame) -> list[str]:
    """Return the mechanism of least error that meets the target on a data set, then the mechanisms that are as good.

    As good are those whose difference from it has a 95 % interval that includes 0.
    """
    meeting = rows[rows["meets"].isin([True])].sort_values("rmse", kind="stable")
    if not len(meeting):
        return []
    first = str(meeting["mechanism"].iloc[0])
    against = differences[differences["against"] == first].set_index("mechanism")["lower"]
    return [first, *(name for name in meeting["mechanism"].iloc[1:] if name in against and not against[name] > 0)]


def leak_of(claims: Sequence[Claim], goal: Goal, crowd: int | None) -> tuple[float, float]:
    """Return ε at δ = 0, and δ at the goal's ε, of the goal's view: the weakest claim of all runs, NaN if not known.

    `crowd` is the number of devices in the cell that a released view relies on; None for any.
    """
    asked = (None, goal.queries, goal.adjacency)
    wanted = [claim for claim in claims if (claim.campaigns, claim.queries, claim.adjacency) == asked]
    names = _view_names(goal.view, {claim.view for claim in wanted})
    wanted = [claim for claim in wanted if claim.view in names]
    if goal.view.startswith("released"):
        wanted = [claim for claim in wanted if claim.crowd == crowd] or wanted
    weakest = Claim.weakest(wanted or [Claim.unknown("No run claims it.")])
    if weakest.kind == "unknown":
        return math.nan, math.nan
    return weakest.epsilon, weakest.delta(goal.epsilon or 1.0)


def _view_names(view: str, claimed: set[str]) -> set[str]:
    """Return the views claimed that a target's view stands for, as `Target.views` has them."""
    if view in RELEASED:
        differences = "released_differences" in claimed and view != "released_counts"
        return {"released_differences" if differences else "released_counts"}
    kind, _, round_ = view.partition("_round_")
    rounds = {name for name in claimed if name.startswith(f"{kind}_round_")}
    if view in claimed or (round_ and len(rounds) > 1):
        return {view}
    return rounds  # a mechanism of one round has only that one


def leaks_by_view(claims: pd.DataFrame, goal: Goal, crowds: Mapping[Any, int | None]) -> pd.DataFrame:
    """Return, per data set, mechanism and view, ε at δ = 0 and δ at the goal's ε, the worst of all runs."""
    columns = ["data", "mechanism", "view", "adjacency", "queries"]
    if not len(claims):
        return pd.DataFrame(columns=[*columns, "epsilon", "delta"])
    rows = []
    for key, group in claims.groupby(columns, sort=False, observed=True):
        of_group: dict[str, Any] = dict(zip(columns[2:], key[2:], strict=True))
        leak = leak_of(claims_in(group), replace(goal, **of_group), crowds.get(key[:2]))
        rows.append({**dict(zip(columns, key, strict=True)), "epsilon": leak[0], "delta": leak[1]})
    return pd.DataFrame(rows)


def decile_table(deciles: pd.DataFrame) -> pd.DataFrame:
    """Return the mean relative error of each decile over the runs."""
    if not len(deciles):
        return pd.DataFrame(columns=["data", "mechanism", "decile", "cells", "occupancy", "rmse", "relative_error"])
    grouped = deciles.groupby(["data", "mechanism", "decile"], sort=False, observed=True)
    return grouped[["cells", "occupancy", "rmse", "relative_error"]].mean().reset_index()


def error_differences(scores: pd.DataFrame) -> pd.DataFrame:
    """Return each mechanism's error relative to each other one's on the same data set, paired by seed.

    `difference` of the root mean square errors in vehicles, `lower` and `upper` of its 95 % t-interval; `ratio`, the
    geometric mean of their ratios, `ratio_lower` and `ratio_upper` from the t-interval of its logarithm.
    """
    columns = ["data", "mechanism", "against", "difference", "lower", "upper", "ratio_lower", "ratio", "ratio_upper"]
    if not len(scores):
        return pd.DataFrame(columns=[*columns, "runs"])
    pairs = scores.merge(scores, on=["data", "replicate"], suffixes=("", "_other"))
    pairs = pairs[pairs["mechanism"] != pairs["mechanism_other"]].rename(columns={"mechanism_other": "against"})
    with np.errstate(divide="ignore", invalid="ignore"):  # exact counts have no error
        log = np.log(pairs["rmse"]) - np.log(pairs["rmse_other"])
    pairs = pairs.assign(difference=pairs["rmse"] - pairs["rmse_other"], log=log)
    made = means(pairs, ["data", "mechanism", "against"], ["difference", "log"])
    half, log_half = made[f"difference{HALF}"], made[f"log{HALF}"]
    made["lower"], made["upper"] = made["difference"] - half, made["difference"] + half
    made["ratio"] = np.exp(made["log"])
    made["ratio_lower"], made["ratio_upper"] = np.exp(made["log"] - log_half), np.exp(made["log"] + log_half)
    return made.rename(columns={"n": "runs"})[[*columns, "runs"]]
