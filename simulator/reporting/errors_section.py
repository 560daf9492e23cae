"""Report sections: errors by occupancy and by mechanism."""

from typing import Any

from pandas import DataFrame

from simulator.charts.page import Page
from simulator.charts.spec import with_shared_ends
from simulator.reporting.run_charts import occupancy
from simulator.results.formatting import whole
from simulator.results.names import COUNT
from simulator.results.record import OccupancyTheory
from simulator.results.run import RunResult
from simulator.results.tables import records


def occupancy_section(run: RunResult, page: Page) -> dict[str, object] | None:
    """
    Show the errors against the number of vehicles in the cell.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the charts are added to it.

    Returns
    -------
    values
        Values for the section's template; None where no campaign estimates counts.
    """
    charts = [
        occupancy(run, name, label, campaigns=campaigns, theory=theory)
        for name, campaigns, label, theory in _published_alike(run)
    ]
    if not charts:
        return None
    drawn = [page.add("occupancy", chart) for chart in with_shared_ends(charts, "occupancy")]
    theories = [mechanism.theory for mechanism in run.record.mechanisms]
    asked = {whole(theory.asked) for theory in theories if theory is not None and theory.asked}
    return {"charts": drawn, "asked": sorted(asked)}


def _published_alike(run: RunResult) -> list[tuple[str, list[str], str, OccupancyTheory | None]]:
    """Return each mechanism's count campaigns grouped by how they were published, with a label and theory."""
    groups: list[tuple[str, list[str], str, OccupancyTheory | None]] = []
    for mechanism in dict.fromkeys(map(str, run.estimates["mechanism"])):
        own = run.estimates.loc[run.estimates["mechanism"] == mechanism, "campaign"]
        campaigns = [name for name in dict.fromkeys(map(str, own)) if run.statistics[name] is COUNT]
        unreleased = [
            campaign
            for campaign in campaigns
            if run.release_of(campaign, mechanism) is None and campaign not in run.budgeted
        ]
        if unreleased:
            theory = run.mechanisms[mechanism].theory if mechanism in run.mechanisms else None
            groups.append((mechanism, unreleased, run.label(mechanism), theory))
        for campaign in campaigns:
            release = run.release_of(campaign, mechanism)
            if release is not None:
                label = f"{run.published_label(campaign, mechanism)}, campaign {campaign}"
                groups.append((mechanism, [campaign], label, release.theory.get(mechanism)))
            elif campaign in run.budgeted:
                groups.append((mechanism, [campaign], f"{run.label(mechanism)}, campaign {campaign}", None))
    return groups


def scores_section(run: RunResult, _page: Page) -> dict[str, object]:
    """
    Tabulate the errors by mechanism, one table for each unit.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    values
        Values for the section's template; no `distributions` where no row has these scores.
    """
    with_overlap = run.scores[run.scores["top_n_overlap"].notna()]
    return {
        "several": run.scores["campaign"].nunique() > 1,
        "tables": {unit: _rows_with_bars(scores) for unit, scores in run.scores_by_unit.items()},
        "distributions": records(with_overlap),
    }


def _rows_with_bars(scores: DataFrame) -> list[dict[Any, Any]]:
    """Return the rows, each with the length of its bar as a percentage of the largest error."""
    largest = scores["rmse"].max()
    bars = 100 * scores["rmse"].fillna(0) / largest if largest > 0 else 0.0
    return scores.assign(bar=bars).to_dict("records")
