"""Report sections: messages sent, and the scenario."""

from simulator.reporting.run_reader import FinishedRun

ROUND_COUNTS = ("asked", "answered", "counted", "late", "lost", "rejected", "unpaired", "duplicates")
ANSWERED = ("counted", "late", "lost", "rejected", "unpaired")
"""What became of each answer."""


def rounds_section(run: FinishedRun) -> dict[str, object]:
    """
    Tabulate the devices asked, answered and counted, by mechanism and round.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    values
        Values for the section's template.
    """
    keys = ["campaign", "mechanism", "round"]
    counts = [column for column in (*ROUND_COUNTS, "bytes_up") if column in run.rounds]
    totals = run.rounds.groupby(keys, sort=False, observed=True)[counts].sum().reset_index()
    fates = totals[[column for column in ANSWERED if column in totals]].sum(axis=1)
    return {
        "columns": ROUND_COUNTS,
        "several": run.rounds["campaign"].nunique() > 1,
        "rows": totals.to_dict("records"),
        "balanced": bool((fates == totals["answered"]).all()),
    }


def scenario_section(run: FinishedRun) -> dict[str, object]:
    """
    Check that at each query every vehicle is in one state.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    values
        Values for the section's template, which states what was simulated, with which software, and how long it took.
    """
    queries = [
        (query, query.departed == query.waiting + query.on_road + query.arrived + query.absent)
        for query in run.record.traffic_at_queries
    ]
    return {"queries": queries, "unbalanced": sum(not balanced for _, balanced in queries)}
