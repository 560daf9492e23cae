"""Report sections: errors by occupancy and by mechanism, against the number of devices asked, and with lost reports."""

import math
from typing import Any

from pandas import DataFrame

from mechanisms.privacy.claim import Claim, Reason
from simulator.pages.charts import Axis, Chart, Series
from simulator.pages.charts.spec import with_shared_ends
from simulator.pages.charts.styles import PLAIN
from simulator.pages.document import PageGroup, PageSection
from simulator.pages.run_charts import growth, measured, occupancy, style
from simulator.results.formatting import listed, parameter, whole
from simulator.results.names import COUNT
from simulator.results.record import LossRecord, MechanismRecord, OccupancyTheory, PublishedLeakage
from simulator.results.run import RunResult


def occupancy_section(run: RunResult) -> PageSection | None:
    """
    Show the errors against the number of vehicles in the cell.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where no campaign estimates counts.
    """
    charts = [
        occupancy(run, name, label, campaigns=campaigns, theory=theory)
        for name, campaigns, label, theory in _published_alike(run)
    ]
    if not charts:
        return None
    theories = [mechanism.theory for mechanism in run.record.mechanisms]
    asked = {whole(theory.asked) for theory in theories if theory is not None and theory.asked}
    about = "Each point is one cell in one query. The grey band is where theory puts 95 % of the points (±1.96 σ"
    about += f" with {listed(sorted(asked))} devices asked)." if asked else ")."
    about += " Suppressed or merged counts have no band." if run.record.releases else ""
    about += (
        " Refined estimates are biased, and have no band." if any(one.biased for one in run.record.refinements) else ""
    )
    return PageSection(
        "occupancy",
        "Error by occupancy",
        heading="Error by occupancy of the cell",
        about=[about],
        same_scale="occupancy",
        groups=[PageGroup(charts=with_shared_ends(charts, "occupancy"))],
    )


def _published_alike(run: RunResult) -> list[tuple[str, list[str], str, OccupancyTheory | None]]:
    """Return each mechanism's count campaigns grouped by how they were published, with a label and theory."""
    groups: list[tuple[str, list[str], str, OccupancyTheory | None]] = []
    for mechanism in dict.fromkeys(map(str, run.estimates["mechanism"])):
        own = run.estimates.loc[run.estimates["mechanism"] == mechanism, "campaign"]
        campaigns = [name for name in dict.fromkeys(map(str, own)) if run.statistics[name] is COUNT]
        unreleased = [
            campaign
            for campaign in campaigns
            if run.record.release_of(campaign, mechanism) is None and campaign not in run.budgeted
        ]
        if unreleased:
            recorded = run.record.mechanisms_by_name.get(mechanism)
            theory = None if recorded is None else recorded.theory
            groups.append((mechanism, unreleased, run.record.label(mechanism), theory))
        for campaign in campaigns:
            if (release := run.record.release_of(campaign, mechanism)) is not None:
                label = f"{run.record.published_label(campaign, mechanism)}, campaign {campaign}"
                groups.append((mechanism, [campaign], label, release.theory.get(mechanism)))
            elif campaign in run.budgeted:
                groups.append((mechanism, [campaign], f"{run.record.label(mechanism)}, campaign {campaign}", None))
    return groups


def scores_section(run: RunResult) -> PageSection:
    """
    Tabulate the errors by mechanism, one table for each unit.

    Parameters
    ----------
    run
        The finished run.
    """
    values = {
        "several": run.scores["campaign"].nunique() > 1,
        "tables": {unit: _rows_with_bars(scores) for unit, scores in run.errors_by_unit.items()},
    }
    return PageSection("scores", "Error by mechanism", template="scores", values=values)


def _rows_with_bars(scores: DataFrame) -> list[dict[Any, Any]]:
    """Return the rows, each with the length of its bar as a percentage of the largest error."""
    largest = scores["rmse"].max()
    bars = 100 * scores["rmse"].fillna(0) / largest if largest > 0 else 0.0
    return scores.assign(bar=bars).to_dict("records")


FLAT = 1.02
"""Largest ratio of two errors that are reported as equal."""
GROWS = 1.2
"""Smallest ratio of two errors at which the second is reported to have grown."""


def growth_section(run: RunResult) -> PageSection | None:
    """
    Show how the error grows with the devices asked and what Sampling Privacy's constant error costs in privacy.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where there is nothing to draw.
    """
    chart = growth(run)
    sampled = [mechanism for mechanism in run.record.mechanisms if mechanism.kind == "sampling_privacy"]
    if chart is None and not sampled:
        return None
    scalings = [mechanism.scaling for mechanism in run.record.private.values() if mechanism.scaling is not None]
    values = {
        "drawn": chart,
        "occupancies": sorted({parameter(scaling.occupancy) for scaling in scalings}),
        "curves": [curve for mechanism in run.record.private.values() if (curve := _curve(run, mechanism))],
        "costs": [_cost(run, each) for each in sampled],
    }
    return PageSection("growth", "Growth and cost", template="growth", values=values)


def _curve(run: RunResult, mechanism: MechanismRecord) -> dict[str, object] | None:
    """Return the ends of one mechanism's error against devices asked, its power of N and the errors measured."""
    asked, errors = ([], []) if mechanism.scaling is None else (mechanism.scaling.asked, mechanism.scaling.std_error)
    known = [(n, error) for n, error in zip(asked, errors, strict=True) if error is not None]
    if len(known) < 2:
        return None
    (n_low, low), (n_before, before), (n_high, high) = known[0], known[-2], known[-1]
    return {
        "label": run.record.label(mechanism.name),
        "lost": any(record.mechanism == mechanism.name for record in run.record.loss),
        "asked": (n_low, n_high),
        "ends": (low, high),
        "flat": high <= FLAT * low,
        # The power of N is taken at the far end, where terms that do not depend on N are negligible.
        "power": math.log(high / before) / math.log(n_high / n_before) if min(before, high) > 0 else 0.0,
        "measured": _measured(run, mechanism.name),
    }


def _measured(run: RunResult, mechanism: str) -> dict[str, list[float]]:
    """Return the measured errors of the campaigns that asked equally many devices, by that number."""
    by_asked: dict[str, list[float]] = {}
    for asked, rmse in measured(run, mechanism):
        by_asked.setdefault(whole(asked), []).append(rmse)
    return by_asked


def _cost(run: RunResult, mechanism: MechanismRecord) -> dict[str, object]:
    """Return the claims of a Sampling Privacy mechanism about what its paper's leakage equation does not cover."""
    claims = [claim for claim in run.privacy if claim.mechanism == mechanism.name and claim.queries == 1]
    linked = next((claim for claim in claims if claim.view == "linked_reports"), None)
    constant, sampling = None if linked is None else linked.constant_delta, mechanism.parameters.get("sampling")
    refresh = mechanism.parameters.get("refresh")
    printed = mechanism.printed or PublishedLeakage(epsilon=None, equation=None, note=None)
    # The equation depends on the number of cells: of several partitions it has several values.
    epsilon = printed.epsilon if run.cells["partition"].nunique() == 1 else None
    # Each with the ε nearest to 1 and its δ.
    released = [(claim, *claim.nearest_one) for claim in claims if claim.nearest_one]
    views = [row for row in released if row[0].view == "released_differences"]
    differences = [row for row in views if not row[0].release]
    # A move bounds an entry into the cell too.
    differences = [row for row in differences if row[0].adjacency == "move"] or differences
    alone = next((claim for claim in claims if claim.view == "report_round_2" and claim.kind != "unknown"), None)
    return {
        "label": run.record.label(mechanism.name),
        "equation": printed.equation or "SP eq 29",
        "epsilon": epsilon,
        "note": (printed.note or "").strip().rstrip("."),
        "refresh": float(refresh) if isinstance(refresh, int | float) else 0.0,
        "binary": mechanism.parameters.get("form") == "binary",
        "chance": float(sampling) if isinstance(sampling, int | float) else constant,
        "alone": alone,
        "alike": alone is not None and math.isclose(alone.epsilon, epsilon or math.nan, rel_tol=1e-6),
        "linked": linked,
        "differences": differences,
        "unmatched": bool(differences) and all(claim.reason is Reason.ROUNDS_DIFFER for claim, _, _ in differences),
        "suppressed": next((row for row in released if row[0].release and _is_suppressed(run, row[0])), None),
    }


def _is_suppressed(run: RunResult, claim: Claim) -> bool:
    release = run.record.release_of(str(claim.campaign), claim.mechanism)
    return release is not None and release.release["kind"] == "suppress"


def loss_section(run: RunResult) -> PageSection | None:
    """
    Show the theoretical error under this run's report losses against the devices asked, and the measured error.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where no report was lost.
    """
    records = [record for record in run.record.loss if record.mechanism in run.record.private]
    if not records:
        return None
    several = len({record.campaign for record in records}) > 1
    labels = [run.record.label(each.mechanism) + (f", campaign {each.campaign}" if several else "") for each in records]
    ends = [(_ends(record.unpaired), _ends(record.paired or [])) for record in records]
    independent = all(record.independent for record in records)
    drawn = [_draw_loss(run, record, label) for record, label in zip(records, labels, strict=True)]
    rows = list(zip(records, labels, ends, drawn, strict=True))
    values = {"records": rows, "independent": independent, "grows": GROWS}
    return PageSection("loss", "Lost reports", template="loss", values=values)


def _ends(errors: list[float | None]) -> tuple[float, float] | None:
    known = [error for error in errors if error is not None]
    return (known[0], known[-1]) if known else None


def _draw_loss(run: RunResult, record: LossRecord, label: str) -> Chart:
    look = style(run, record.mechanism)
    series: list[Series] = []
    for errors, words, drawn in (
        (record.unpaired, "each round as received", look._replace(dash="solid")),
        (record.paired, "only devices received in every round", look._replace(dash="dash")),
        (record.ideal, "nothing lost", PLAIN._replace(dash="dot")),
    ):
        # A logarithmic axis cannot show an error of 0.
        if errors is not None and any(errors):
            series.append(Series(words, record.asked, [error or None for error in errors], style=drawn))
    scores = run.asked.scores
    rmse = scores[(scores["mechanism"] == record.mechanism) & (scores["campaign"] == record.campaign)]["rmse"].max()
    asked = run.mean_asked.get((record.campaign, record.mechanism))
    if asked and rmse > 0:
        words = "this run, paired" if record.pairs and record.rounds > 1 else "this run"
        series.append(Series(words, [asked], [rmse], "points", look))
    x, y = Axis("devices asked", log=True), Axis("error per cell, vehicles", log=True)
    return Chart(series, x, y, title=label, about="Error against devices asked.", height=400)
