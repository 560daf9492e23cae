"""The report's section of claims: what each observer can learn about a driver."""

from simulator.pages.document import PageSection
from simulator.results.claims import by_crowd
from simulator.results.run import RunResult
from simulator.results.statements import row_words


def claims_section(run: RunResult) -> PageSection:
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
    for name, of_campaign in run.claims_by_mechanism.items():
        claims = [*run.whole_run.get(name, []), *of_campaign]
        epsilons = sorted({epsilon for claim in claims for epsilon, _ in claim.points})
        rows = [
            (row_words(alike), alike, [[dict(claim.points).get(at) for claim in alike] for at in epsilons])
            for alike in by_crowd(claims)
        ]
        tables.append((run.record.label(name), epsilons, rows))
    return PageSection("claims", "Privacy claims", template="claims", values={"tables": tables})
