"""The report's section of claims: what each observer can learn about a driver."""

from dataclasses import replace

from simulator.reporting.document import Section
from simulator.results.claims import by_crowd, worth_reading
from simulator.results.run import RunResult
from simulator.results.statements import row_words


def claims_section(run: RunResult) -> Section:
    """
    State in words what each observer can learn, for each mechanism.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        The section.
    """
    tables = []
    for name in dict.fromkeys(claim.mechanism for claim in run.privacy):
        views = run.views_seen(name)
        own = [
            replace(claim, seen=views is None or claim.view in views or not claim.of_reports)
            for claim in worth_reading(claim for claim in run.privacy if claim.mechanism == name)
        ]
        epsilons = sorted({epsilon for claim in own for epsilon, _ in claim.curve})
        rows = [
            (row_words(alike), alike, [[dict(claim.curve).get(at) for claim in alike] for at in epsilons])
            for alike in by_crowd(own)
        ]
        tables.append((run.label(name), epsilons, rows))
    return Section("claims", "Privacy claims", template="claims", values={"tables": tables})
