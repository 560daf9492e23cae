"""Report section: which parties add up the reports of each campaign, and what each learns about a device."""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.reporting.formatting import listed, parameter, real, related, whole
from simulator.reporting.markup import Safe, data, details, element, table
from simulator.reporting.run_reader import FinishedRun

MOST_ROWS = 12
"""A table of costs with more rows than this is collapsed at first."""
_KINDS = {
    "trusted": "one trusted server",
    "per_round": "a server for each round",
    "shuffled": "a server behind a mixer",
}
_PARTIES = {"mixer": "The mixer", "network": "Somebody who watches the network"}


def deployment_records(run: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """
    Gather the records in `run.json` of which parties add up each campaign's reports.

    Parameters
    ----------
    run
        The content of `run.json`.

    Returns
    -------
    records
        By campaign; empty for a run without such records.
    """
    return {str(record["campaign"]): record for record in run.get("deployments") or []}


def deployment_words(record: Mapping[str, Any]) -> str:
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
    kind = str(record["kind"])
    shared = kind == "secret_shared"
    words = [f"shares among {record['servers']} servers" if shared else _KINDS.get(kind, kind.replace("_", " "))]
    if record.get("paired"):
        words.append("paired")
    elif record.get("handles") == "query":
        words.append("one-time pseudonyms")
    if record.get("robust") and shared:
        words.append("with range proofs")
    return ", ".join(words)


def campaign_words(run: FinishedRun, campaign: str) -> str:
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
    record = deployment_records(run.run).get(campaign)
    return campaign if record is None else f"{campaign}: {deployment_words(record)}"


def coalition_words(coalition: Sequence[str], record: Mapping[str, Any]) -> str:
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
        For example ``Any 2 of the 3 servers``, ``Servers 1 and 2``, ``Mixer and server``.
    """
    servers = [party.rpartition(":")[2] for party in coalition if party.startswith("server:")]
    if len(coalition) == 1 and coalition[0] in _PARTIES:
        return _PARTIES[coalition[0]]
    every = int(record["servers"])
    if record["kind"] == "secret_shared" and len(servers) == len(coalition):
        return f"All {every} servers" if len(servers) == every else f"Any {len(servers)} of the {every} servers"
    if every == 1:
        return (
            "The server" if len(coalition) == 1 else f"The server and {listed([p for p in coalition if ':' not in p])}"
        )
    return f"Server {servers[0]}" if len(servers) == 1 else f"Servers {listed(servers)}"


def deployments_section(run: FinishedRun) -> Safe:
    """
    Show what each party learns about a device in each deployment, and the cost of each deployment.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        The section; empty where one trusted server receives everything and the run has no attacks.
    """
    records = deployment_records(run.run)
    if run.attacks.empty and all(deployment_words(record) == _KINDS["trusted"] for record in records.values()):
        return Safe("")
    blocks: list[Safe] = []
    for alike in _alike(records).values():
        names = listed(list(alike))
        record = next(iter(alike.values()))
        words = deployment_words(record)
        blocks.append(element("h3", f"{words[0].upper()}{words[1:]} ({names})"))
        blocks.append(_matrix(run, record))
    notes = list(
        dict.fromkeys(
            note for record in records.values() for one in record["mechanisms"] for note in one["cost"]["notes"]
        )
    )
    return element(
        "section",
        element("h2", "Who holds what, and what it tells"),
        element(
            "p",
            "Rows are who looks, alone or together; what they can compute about one device follows from what they "
            "stored. A mechanism’s column says what it claims of that view over one query: the ε that holds always, if "
            "one does, and below it δ at ε = 1, for a device alone in its cell where others would hide it. What is "
            "published is another view, and everybody’s.",
        ),
        *blocks,
        element("h3", "What it costs"),
        _costs(run, records),
        element("ul", *(element("li", note) for note in notes), class_="note") if notes else "",
        id="deployments",
    )


def _alike(records: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Group campaigns whose deployment records are the same."""
    groups: dict[str, dict[str, Mapping[str, Any]]] = {}
    for campaign, record in records.items():
        key = repr({name: value for name, value in record.items() if name != "campaign"})
        groups.setdefault(key, {})[campaign] = record
    return groups


def _matrix(run: FinishedRun, record: Mapping[str, Any]) -> Safe:
    """Tabulate coalitions against mechanisms, with one row for each statement about a coalition."""
    names = [str(one["mechanism"]) for one in record["mechanisms"]]
    rows: dict[tuple[tuple[str, ...], str], dict[str, Mapping[str, Any]]] = {}
    for one in record["mechanisms"]:
        for learnt in one["learns"]:
            rows.setdefault((tuple(learnt["coalition"]), str(learnt["words"])), {})[str(one["mechanism"])] = learnt
    order = list(dict.fromkeys(coalition for coalition, _ in rows))
    body = [
        [
            coalition_words(coalition, record),
            words,
            *(_claim(by_mechanism.get(name)) for name in names),
        ]
        for (coalition, words), by_mechanism in sorted(rows.items(), key=lambda row: order.index(row[0][0]))
    ]
    heads = ["Who", "Can compute", *(run.label(name) for name in names)]
    return table("What each coalition can compute about one device", heads, body, class_="learns")


def _claim(learnt: Mapping[str, Any] | None) -> Safe | str:
    """Format the claim about a view in a few characters."""
    if learnt is None:
        return "–"
    if learnt["kind"] == "unknown":
        return "not known"
    epsilon, delta = real(learnt["epsilon"]), real(learnt["delta"])
    if learnt["view"] is None or epsilon == 0:
        return data(0.0, "nothing")
    sign = "≤" if "bound" in {learnt["kind"], learnt["delta_kind"]} else "="
    if delta is not None and delta >= 1:
        return data(delta, "everything")
    always = data(epsilon, "no ε" if epsilon is None else f"ε {sign} {parameter(epsilon)}")
    if delta is None:
        return always
    letter = related("δ", "≤" if learnt["delta_kind"] == "bound" else "=", delta)
    return Safe(always + element("span", data(delta, letter), class_="second"))


def _costs(run: FinishedRun, records: Mapping[str, Mapping[str, Any]]) -> Safe:
    rows = []
    for campaign, record in records.items():
        for one in record["mechanisms"]:
            cost = one["cost"]
            rows.append(
                [
                    f"{campaign}, {run.label(str(one['mechanism']))}",
                    data(cost["bytes_up"], whole(cost["bytes_up"])),
                    data(cost["bytes_down"], whole(cost["bytes_down"])),
                    _stored(cost["stored_bytes"]) or "–",
                    data(cost["between_servers"], whole(cost["between_servers"])),
                ]
            )
    heads = ["Campaign and mechanism", "Sent up", "Sent down", "Stored of a report", "Between servers, a report"]
    caption = "Bytes that a device sends and receives a round, and that parties keep of a report"
    whole_table = table(caption, heads, rows, class_="bytes")
    return details(f"{caption}, by campaign and mechanism", whole_table) if len(rows) > MOST_ROWS else whole_table


def _stored(sizes: Mapping[str, int]) -> str:
    """Format the bytes each party stores: ``server:1 and server:2: 24 each; server:3: 321``."""
    groups: dict[int, list[str]] = {}
    for party, size in sizes.items():
        groups.setdefault(int(size), []).append(party)
    parts = []
    for size, parties in groups.items():
        who = f"{parties[0]} to {parties[-1]}" if len(parties) > 2 else listed(parties)
        parts.append(f"{who}: {whole(size)}" + (" each" if len(parties) > 1 else ""))
    return "; ".join(parts)
