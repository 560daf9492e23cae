"""Report sections: errors by occupancy and by mechanism."""

from typing import Any

from pandas import DataFrame

from simulator.pages.charts.spec import with_shared_ends
from simulator.pages.document import PageGroup, PageSection
from simulator.pages.run_charts import occupancy
from simulator.results.formatting import listed, whole
from simulator.results.names import COUNT
from simulator.results.record import OccupancyTheory
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
    about += " Refined estimates are biased, and have no band." if run.record.refined else ""
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
            release = run.record.release_of(campaign, mechanism)
            if release is not None:
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
