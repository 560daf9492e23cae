"""All mechanisms compared at one (ε, δ) in one view: planned parameters, simulated errors and a verdict.

The comparison is one table, a row per view, number of devices asked N, number of cells V and mechanism. Each cell holds
100 vehicles; all other devices asked are outside.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.central import SampleThenSuppress
from mechanisms.central.grid_noise import draw_noise
from mechanisms.planning import FAMILIES, Plan, Target, plan
from mechanisms.planning.error_distribution import error_interval
from mechanisms.planning.planned_mechanisms import NoisyServers, TrustedServer
from simulator.pages.charts import Series
from simulator.papers.published_results import Reproduction

EPSILON, DELTA = 1.0, 1e-6
OCCUPANCY = 100
SIZES = {
    "population": [(population, 100) for population in (10**4, 10**5, 10**6, 10**7)],
    "cells": [(10**6, cells) for cells in (10, 100, 1000, 10_000)],
}
"""(N, V) of each panel, named by what varies in it."""
VIEWS = {
    "report": "one report, whichever round's, and a device that moves",
    "linked_reports": "all of a device's reports and a device that moves",
    "released": "what is published, with nothing seen behind it, and a device that moves",
    "released, enter_leave": "what is published, with nothing seen behind it, and a device that enters or leaves",
}
"""What is compared: a view, and the adjacency where it is not a move."""
SETTING = ["view", "population", "cells"]
# The papers' first attempts reduce to randomized response at their best parameters (their plans state so), and so does
# the three-answer form wherever its linked reports must be private; a search over its many parameters would take most
# of the time.
LEFT_OUT = {"sampled_response", "sampling_and_noise", "anonymized_deniable"}
# In the view "released" the first three equal randomized response or Sampling Privacy at their best parameters; and a
# server that samples publishes with the same distribution as devices that sample themselves.
LEFT_OUT_RELEASED = {
    "sampling_privacy_refreshed",
    "anonymized_first_attempt",
    "anonymized_local",
    "sample_then_suppress",
}
SIMULATED = 1000
# Probability that any simulation of one run falls outside its interval although theory holds.
FAMILY, MOST_ROWS = 1e-4, 500


def target_of(view: str, population: int, cells: int) -> Target:
    """Return the target that plans must meet in a view, a key of `VIEWS`, for N devices asked and V cells."""
    view, _, adjacency = view.partition(", ")
    return Target(
        cells=cells,
        population=population,
        occupancy=OCCUPANCY,
        view=view,
        epsilon=EPSILON,
        delta=DELTA,
        adjacency="enter_leave" if adjacency else "move",
    )


def compare_in(view: str, population: int, cells: int, *, rng: np.random.Generator) -> pd.DataFrame:
    """Plan every mechanism for a setting, and simulate each plan.

    Returns
    -------
    DataFrame
        A row per mechanism: `SETTING`, ``name``, ``meets``, ``theory`` (standard error, vehicles; NaN without a plan),
        ``simulated`` (root mean square error of the simulated cells), ``low`` and ``high`` (the interval that theory
        gives for it; over all simulations of a run, the probability that any falls outside is one in ten thousand),
        ``words`` (the parameters, or why there is no plan). Those that meet the target come first, by their error.
    """
    target = target_of(view, population, cells)
    left_out = LEFT_OUT | (LEFT_OUT_RELEASED if target.view == "released" else set())
    plans = plan(target, [family.name for family in FAMILIES if family.name not in left_out], claims=False).plans
    rows = []
    for made in plans:
        row = {"view": view, "population": population, "cells": cells, "name": made.name, "meets": made.meets}
        row["words"] = _parameters(made) if made.meets else made.reason or "No plan."
        rows.append(row | (_simulate(made, target, rng) if made.meets else {}))
    columns = [*SETTING, "name", "meets", "words", "theory", "simulated", "low", "high"]
    return pd.DataFrame(rows, columns=columns).sort_values("theory", kind="stable", ignore_index=True)


def _simulate(made: Plan, target: Target, rng: np.random.Generator) -> dict[str, float]:
    """Return a plan's error by theory, and by a simulation of at least 1,000 cells with its interval."""
    truth = np.full(target.cells + 1, OCCUPANCY, dtype=np.int64)
    truth[0] = target.population - OCCUPANCY * target.cells
    repeats = math.ceil(SIMULATED / target.cells)
    errors = np.concatenate([_estimates(made, truth, rng) - truth[1:] for _ in range(repeats)])
    low, high = error_interval(
        made.std_error, cells=len(errors), excess=made.excess_kurtosis, level=1.0 - FAMILY / MOST_ROWS
    )
    simulated = math.sqrt(float(np.mean(errors**2)))
    return {"theory": made.std_error, "simulated": simulated, "low": low, "high": high}


def _estimates(made: Plan, truth: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return one query's published counts, (V,) float64, for the devices outside and in each cell, (V + 1,)."""
    if isinstance(made.mechanism, NoisyServers):
        servers = made.mechanism.servers
        noise = draw_noise(made.mechanism.noise, servers * (len(truth) - 1), rng=rng).reshape(servers, -1)
        return np.asarray(truth[1:] + noise.sum(axis=0), dtype=np.float64)
    if isinstance(made.mechanism, TrustedServer):
        return made.mechanism.release.publish(truth[1:], rng=rng).count
    if made.release is not None:
        first, second = made.mechanism.sample_counts(truth, rng=rng)
        # Counts of values from 0, or of No and Yes about each cell.
        sampled = (second - first)[1:] if second.ndim == 1 else (second - first)[:, 1]
        release = SampleThenSuppress(k=made.release["k"], sampling=made.mechanism.sampling)
        return release.publish_sampled(sampled).count
    asked = (int(truth.sum()),) * made.mechanism.rounds
    counts = made.mechanism.sample_counts(truth, rng=rng)
    return np.asarray(made.mechanism.estimate(counts, counted=asked, asked=asked).count)


def _parameters(made: Plan) -> str:
    """Return the parameters of a plan, and the devices it relies on, in words."""
    chosen = {**made.parameters, **(made.release or {})}
    parameters = ", ".join(f"{name}={_short(value)}" for name, value in chosen.items())
    return parameters if made.crowd is None else f"{parameters}, if at least {made.crowd} devices are in the cell"


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "/".join(_short(part) for part in value)
    return str(value)


def compare(results: Reproduction, seed: int) -> None:
    """Plan and simulate every mechanism for every view and setting, and find the one with the smallest error."""
    rng = np.random.default_rng(seed)
    sizes = dict.fromkeys(size for panel in SIZES.values() for size in panel)
    table = pd.concat([compare_in(view, *size, rng=rng) for view in VIEWS for size in sizes], ignore_index=True)
    errors = by_mechanism(table, "theory")
    add_answer(results, errors)
    for view, rows in table.groupby("view", sort=False):
        add_rows(results, rows)
        draw(results, str(view), rows)
        of_view: Any = errors.loc[view]
        add_findings(results, str(view), of_view)


def add_rows(results: Reproduction, table: pd.DataFrame) -> None:
    """Add, for each setting, the row of the best mechanism, then one row per mechanism."""
    row: Any
    for (view, population, cells), rows in table.groupby(SETTING, sort=False):
        key = f"{view}, N={population:,}, V={cells:,}"
        meeting = rows[rows["meets"]]
        if len(meeting):
            best, following = meeting.iloc[0], meeting.iloc[1:2]
            next_best = "".join(f"; next {row.name}, {row.theory:.4g}" for row in following.itertuples(index=False))
            results.add_row("winner", best["name"], key=key, error=best["theory"], next=next_best)
        for row in rows.itertuples(index=False):
            if row.meets:
                agrees = row.low <= row.simulated <= row.high
                values = {"published": row.theory, "parameters": row.words}
                results.add_row("plan", row.simulated, agrees, key=key, name=row.name, **values)
            else:
                results.add_row("no_plan", None, key=key, name=row.name, reason=row.words)


def draw(results: Reproduction, view: str, table: pd.DataFrame) -> None:
    """Draw two panels of a view, over the devices asked and over the cells: lines are theory, points are simulation."""
    theory: Any = by_mechanism(table, "theory").loc[view]
    simulated: Any = by_mechanism(table, "simulated").loc[view]
    simulated = simulated.replace(0.0, math.nan)  # a logarithmic axis cannot show it
    for panel, sizes in SIZES.items():
        x = [size[SETTING.index(panel) - 1] for size in sizes]
        curves = []
        for name in theory.columns[theory.loc[sizes].notna().any()]:
            curves.append(Series(name, x, theory.loc[sizes, name].to_numpy()))
            curves.append(Series(f"{name}, simulated", x, simulated.loc[sizes, name].to_numpy(), "points"))
        results.add_panel(panel, curves, view=VIEWS[view][0].upper() + VIEWS[view][1:])


ALIKE = 1.001
FORMS = ["sampling_privacy", "sampling_privacy_refreshed", "sampling_privacy_suppressed", "sampling_privacy_binary"]
SHUFFLED_ONLY = ["k_randomized_response", "olh", "subset_selection", "hadamard_response"]
"""Mechanisms whose claim about what is published holds where a server sees all reports in random order."""


def by_mechanism(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a column of the comparison, a row per setting and a column per mechanism; NaN where it has no plan."""
    settings = pd.MultiIndex.from_frame(table[SETTING].drop_duplicates())
    order = [family.name for family in FAMILIES]
    return table.pivot(index=SETTING, columns="name", values=column).reindex(settings, columns=order)


def add_answer(results: Reproduction, errors: pd.DataFrame) -> None:
    """Add the answer to whether one should use Sampling Privacy, counted over every view and setting."""
    least, forms = errors.min(axis=1), errors[FORMS].min(axis=1)
    planned: Any = least.notna()
    won: Any = forms <= least * ALIKE
    views = [str(view) for view, met in planned.groupby("view", sort=False).any().items() if met]
    by_view = ", ".join(f"{won[view].sum()} of {len(won[view])} for {VIEWS[view]}" for view in views)
    values = {"views": by_view, "won": won.sum(), "settings": planned.sum(), "useful": (forms < OCCUPANCY).sum()}
    results.add_findings("answer", epsilon=EPSILON, delta=DELTA, occupancy=OCCUPANCY, **values)


def add_findings(results: Reproduction, view: str, errors: pd.DataFrame) -> None:
    """Add sentences about one view from the errors of its settings, a row per (N, V)."""
    values = {"where": f"At ε = {EPSILON:g}, δ = {DELTA:g} for {VIEWS[view]}", "occupancy": OCCUPANCY}
    results.add_findings("winners", winners=_winners(errors), **values)
    results.add_findings("distance", distance=_distance(errors), **values)
    if view.startswith("released"):
        results.add_findings("shuffled", winners=_winners(errors[SHUFFLED_ONLY]), **values)
    if useless := (errors.min(axis=1) >= OCCUPANCY).sum():
        results.add_findings("useless", useless=useless, settings=len(errors), **values)
    results.add_findings("growth", **_growth(errors), **values)


def _winners(errors: pd.DataFrame) -> str:
    won = Counter(errors.dropna(how="all").idxmin(axis=1))
    winners = [f"{name} has the least error in {count} of {len(errors)} settings" for name, count in won.items()]
    return "; ".join(winners) + "." if winners else "no mechanism meets it."


def _distance(errors: pd.DataFrame) -> str:
    """Return the ratio of the error of Sampling Privacy's best form to the smallest error, in words."""
    ratios = (errors[FORMS].min(axis=1) / errors.min(axis=1)).dropna()
    if ratios.empty:
        return "meets it in no form and no setting."
    low, high, where = ratios.min(), ratios.max(), f"{len(ratios)} settings where it has a plan."
    if high <= ALIKE:
        return f"in the best of its forms has no larger error than any other in all {where}"
    times = f"{high:.3g}" if high - low < 0.01 * high else f"{low:.3g} to {high:.3g}"
    return f"in the best of its forms has {times} times the least error, over {where}"


def _growth(errors: pd.DataFrame) -> dict[str, str]:
    """Return the mechanisms whose error stays constant with the devices asked, and those whose error grows."""
    first: Any = errors.loc[SIZES["population"][0]]
    last: Any = errors.loc[SIZES["population"][-1]]
    ordered = last[last.notna() & first.notna()].sort_values(kind="stable")
    constant = ordered <= 1.1 * first[ordered.index]
    names = {kept: ", ".join(ordered.index[constant == kept]) for kept in (True, False)}
    growing = f", that of {names[False]} grows." if names[False] else "."
    times = SIZES["population"][-1][0] // SIZES["population"][0][0]
    return {"times": f"{times:,}", "constant": names[True] or "no mechanism", "growing": growing}
