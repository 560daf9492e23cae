"""Report sections: what observers can learn about a driver, and which parties add up the reports."""

from collections.abc import Sequence

from scenarios.kinds import is_capable, title
from simulator.pages.document import PageSection
from simulator.results.claims import by_crowd
from simulator.results.formatting import duration, inner_case, listed, sentence_case
from simulator.results.record import DeploymentRecord, ViewRecord
from simulator.results.run import RunResult
from simulator.results.statements import row_words, share_holders

_PARTIES = {"mixer": "The mixer", "network": "An observer of the network"}


def deployment_words(record: DeploymentRecord) -> str:
    """
    Describe a deployment in a few words.

    Parameters
    ----------
    record
        Its record in `run.json`.

    Returns
    -------
    words
        For example ``shares among 3 servers, paired``.
    """
    kind = record.kind
    shared = is_capable("deployment", kind, "shares")
    words = [f"shares among {record.servers} servers" if shared else title("deployment", kind, f"aggregator {kind}")]
    if record.needed not in {None, record.servers}:
        words.append(f"any {record.needed} suffice")
    if record.paired:
        words.append("paired")
    elif record.handles == "query":
        words.append("one-time pseudonyms")
    if record.robust and shared:
        words.append("with range proofs")
    if record.min_batch > 1:
        words.append(f"sums of {record.min_batch} reports or more")
    if record.min_gap_s:
        words.append(f"answers {duration(record.min_gap_s)} apart")
    if record.committed:
        words.append("committed questions")
    return ", ".join(words)


def campaign_words(run: RunResult, campaign: str) -> str:
    """
    Describe a campaign by its name and the parties that add up its reports.

    Parameters
    ----------
    run
        The finished run.
    campaign
        Its name.

    Returns
    -------
    words
        For example ``shared: shares among 3 servers``; the name alone where the run recorded no more.
    """
    record = run.record.deployments_by_campaign.get(campaign)
    return campaign if record is None else f"{campaign}: {deployment_words(record)}"


def coalition_words(coalition: Sequence[str], record: DeploymentRecord) -> str:
    """
    Name the parties that pool what they stored.

    Parameters
    ----------
    coalition
        Their names.
    record
        The record of their deployment.

    Returns
    -------
    words
        For example ``Any 2 of the 3 servers``, ``Servers 1 and 2``, ``Operator A: the mixer``.
    """
    if record.operator is not None and coalition[0] != "network":
        own = [party.rpartition("/")[2] for party in coalition]
        words = coalition_words(own, record.model_copy(update={"operator": None}))
        return f"Operator {record.operator}: {inner_case(words)}"
    servers = [party.rpartition(":")[2] for party in coalition if party.startswith("server:")]
    if len(coalition) == 1 and coalition[0] in _PARTIES:
        return _PARTIES[coalition[0]]
    every = record.servers
    if is_capable("deployment", record.kind, "shares") and len(servers) == len(coalition):
        return f"{'Any ' * (len(servers) < every)}{share_holders(len(servers), every)}".capitalize()
    others = [party for party in coalition if ":" not in party]
    named = "The server" if every == 1 else f"Server{'s' * (len(servers) > 1)} {listed(servers)}"
    return listed([named, *others])


def deployments_section(run: RunResult) -> PageSection | None:
    """
    Show what each party learns about a device in each deployment, and the cost of each deployment.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None where one trusted server receives everything and the run has no
        attacks.
    """
    records = run.record.deployments_by_campaign.values()
    if run.attacks.empty and all(deployment_words(record) == title("deployment", "trusted") for record in records):
        return None
    costs = [(record.campaign, one.mechanism, one.cost) for record in records for one in record.mechanisms]
    groups: dict[str, list[DeploymentRecord]] = {}
    for record in records:  # campaigns with the same deployment share a table
        groups.setdefault(record.model_dump_json(exclude={"campaign"}), []).append(record)
    tables = []
    for alike in groups.values():
        heading = f"{sentence_case(deployment_words(alike[0]))} ({listed([record.campaign for record in alike])})"
        names = [one.mechanism for one in alike[0].mechanisms]
        tables.append((heading, names, _matrix(alike[0], names)))
    notes = list(dict.fromkeys(note for _, _, cost in costs for note in cost.notes))
    values = {"tables": tables, "costs": costs, "notes": notes}
    return PageSection("deployments", "Parties", template="deployments", values=values)


def _matrix(record: DeploymentRecord, names: Sequence[str]) -> list[tuple[str, str, list[ViewRecord | None]]]:
    """Return coalitions against mechanisms, with one row for each statement about a coalition."""
    rows: dict[tuple[tuple[str, ...], int | str], dict[str, ViewRecord]] = {}
    for one in record.mechanisms:
        for view in one.learns:
            rows.setdefault((tuple(view.coalition), view.statement), {})[one.mechanism] = view
    order = list(dict.fromkeys(coalition for coalition, _ in rows))
    return [
        (coalition_words(coalition, record), next(iter(views.values())).words, [views.get(name) for name in names])
        for (coalition, _), views in sorted(rows.items(), key=lambda row: order.index(row[0][0]))
    ]


def ledger_section(run: RunResult) -> PageSection | None:
    """
    State who spent what of the budgets of ledgers, by period.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        None without a ledger.
    """
    if run.ledger is None:
        return None
    keys, entries = ["ledger", "mechanism", "period", "campaign"], run.ledger.fillna({"operator": ""})
    each = entries.assign(asked=entries["outcome"] == "asked").groupby(keys)
    spent = {name: (name, "last") for name in ("operator", "spent", "budget", "delta", "time", "time_s")}
    rows = each.agg(queries=("query", "size"), asked=("asked", "sum"), own=("spent_by_query", "sum"), **spent)
    rows = rows.reset_index().sort_values([*keys[:3], "time_s"], kind="stable")
    return PageSection("ledger", "Ledger", template="ledger", values={"rows": rows.to_dict("records")})


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
        epsilons = sorted(
            {epsilon for claim in claims for epsilon, _ in claim.points if epsilon}
        )  # of 0: the statement
        rows = [
            (row_words(alike), alike, [[dict(claim.points).get(at) for claim in alike] for at in epsilons])
            for alike in by_crowd(claims)
        ]
        tables.append((run.record.label(name), epsilons, rows))
    return PageSection("claims", "Privacy claims", template="claims", values={"tables": tables})
