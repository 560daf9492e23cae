"""Report section: claims, messages sent, and the scenario."""

from typing import Any

from simulator.reporting.claims_text import KIND_WORDS, ViewClaim, sentence, view_claims, worth_reading
from simulator.reporting.formatting import clock, duration, number, parameter, real, size, whole
from simulator.reporting.markup import Safe, data, definitions, details, element, table
from simulator.reporting.run_reader import FinishedRun, called

ROUND_COUNTS = ("asked", "answered", "counted", "late", "lost", "rejected", "unpaired", "duplicates")
MISSED = ("late", "lost", "rejected", "unpaired")


def claims_section(run: FinishedRun) -> Safe:
    """
    State in words what each observer can learn, for each mechanism.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        The section.
    """
    claims = view_claims(run.claims)
    blocks: list[object] = []
    for name in dict.fromkeys(claim.mechanism for claim in claims):
        blocks.append(element("h3", run.label(name)))
        blocks.append(_claims_table(run, [claim for claim in claims if claim.mechanism == name]))
    if not claims:
        blocks.append(element("p", "This run makes no claim, which is not the same as claiming safety."))
    key = definitions(
        [
            (
                "ε, always",
                "the logarithm of how many-fold the odds can shift, without exception (δ = 0)",
            ),
            ("δ at ε", "how far reality may exceed that ε: about the probability that the limit fails"),
            (_badge("exact"), "worked out exactly: an onlooker can reach it"),
            (_badge("bound"), "proved not to be exceeded; the truth may be better"),
            (_badge("infinite"), "proved that no finite ε holds without exception; read δ"),
            (_badge("unknown"), "nobody has proved a limit: read it as none"),
        ],
        class_="terms",
    )
    return element(
        "section", element("h2", f"Who can learn what about {run.called.who_pays}"), *blocks, key, id="claims"
    )


def _badge(kind: str) -> Safe:
    return element("span", KIND_WORDS.get(kind, kind), class_=f"badge {kind if kind in KIND_WORDS else 'unknown'}")


def _claims_table(run: FinishedRun, claims: list[ViewClaim]) -> Safe:
    name = claims[0].mechanism
    rounds = run.facts[name].rounds if name in run.facts else 2
    claims = worth_reading(claims, rounds=rounds)
    epsilons = sorted({epsilon for claim in claims for epsilon, _ in claim.deltas})
    heads = [
        "What is seen, and what it tells",
        "ε, always",
        *(f"δ at ε = {parameter(value)}" for value in epsilons),
        "Kind",
        "Basis",
    ]
    rows = []
    for claim in claims:
        deltas = dict(claim.deltas)
        kinds = [_badge(claim.kind)]
        if claim.delta_kind != claim.kind:
            kinds.append(element("span", "δ: ", _badge(claim.delta_kind), class_="second"))
        always = "not known" if claim.epsilon is None else parameter(claim.epsilon)
        rows.append(
            [
                sentence(claim, rounds=rounds),
                data(claim.epsilon, always),
                *(data(deltas.get(epsilon), parameter(deltas.get(epsilon))) for epsilon in epsilons),
                Safe(" ".join(kinds)),
                element("small", claim.basis),
            ]
        )
    return table(f"Claims for {run.label(name)}", heads, rows, class_="claims")


def rounds_section(run: FinishedRun) -> Safe:
    """
    Tabulate the devices asked, answered and counted, by mechanism and round.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        The section.
    """
    several = run.rounds["campaign"].nunique() > 1
    keys = ["campaign", "mechanism", "round"]
    counts = [column for column in (*ROUND_COUNTS, "bytes_up") if column in run.rounds]
    totals = run.rounds.groupby(keys, sort=False, observed=True)[counts].sum().reset_index()
    rows = []
    for row in totals.to_dict("records"):
        label = run.label(str(row["mechanism"]))
        cells: list[object] = [f"{label} ({row['campaign']})" if several else label, row["round"]]
        cells += [data(real(row.get(column)), whole(real(row.get(column)))) for column in ROUND_COUNTS]
        cells.append(data(real(row.get("bytes_up")), size(real(row.get("bytes_up")))))
        rows.append(cells)
    counted = totals["counted"] + sum(totals[column] for column in MISSED if column in totals)
    balance = "Every answer is accounted for: answered = counted + late + lost + rejected + unpaired."
    if not bool((counted == totals["answered"]).all()):
        balance = "The rows do not balance: answered differs from counted + late + lost + rejected + unpaired."
    heads = ["Mechanism", "Round", *(name.capitalize() for name in ROUND_COUNTS), "Sent up"]
    return element(
        "section",
        element("h2", "What was asked and what arrived"),
        table("Answers by mechanism and round, all queries together", heads, rows),
        element("p", balance, class_="note"),
        id="rounds",
    )


def scenario_section(run: FinishedRun) -> Safe:
    """
    State what was simulated, with which software, and how long it took.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        The section.
    """
    facts = run.run
    city = facts.get("city") or {}
    memory = facts.get("memory_bytes") or {}
    roads = f"{whole(city.get('nodes'))} nodes, {whole(city.get('links'))} links, {number(city.get('length_km'))} km"
    pairs: list[tuple[object, object]] = [
        ("Scenario", facts.get("scenario", "")),
        ("Seed", facts.get("seed", "–")),
        ("crowdveil", facts.get("version", "–")),
        ("Scenario’s SHA-256", element("code", str(facts.get("scenario_sha256", "–")))),
        ("Roads", roads),
        ("Cells", whole(city.get("cells"))),
        ("Coordinates", city.get("crs") or "–"),
        ("Link crossings", whole(facts.get("link_crossings"))),
        ("Memory", ", ".join(f"{name} {size(value)}" for name, value in memory.items()) or "–"),
    ]
    notes = [str(note) for note in city.get("notes") or []]
    return element(
        "section",
        element("h2", "What the scenario was"),
        definitions(pairs, class_="facts"),
        element("h3", "Notes on the city") if notes else "",
        element("ul", *(element("li", note) for note in notes)) if notes else "",
        _wall(facts),
        _conservation(facts),
        details("Scenario file, as resolved", element("pre", run.scenario_toml, tabindex="0")),
        details("Packages and data", _versions(facts)),
        id="scenario",
    )


def _wall(facts: dict[str, Any]) -> Safe:
    wall = facts.get("wall_s") or {}
    if not wall:
        return Safe("")
    rows = [[name.capitalize(), data(real(value), duration(real(value)))] for name, value in wall.items()]
    return table("Time it took", ["Phase", "Wall time"], rows, class_="narrow")


def _versions(facts: dict[str, Any]) -> Safe:
    packages = [[name, version] for name, version in (facts.get("packages") or {}).items()]
    checksums = [[name, element("code", str(value))] for name, value in (facts.get("data") or {}).items()]
    tables = [table("Packages", ["Package", "Version"], packages, class_="narrow")]
    if checksums:
        tables.append(table("Data files", ["File", "SHA-256"], checksums))
    return Safe("".join(tables))


def _conservation(facts: dict[str, Any]) -> Safe:
    records = facts.get("traffic_at_queries") or []
    if not records:
        return Safe("")
    rows, lost = [], 0
    for record in records:
        parts = [int(record.get(name) or 0) for name in ("waiting", "on_road", "arrived", "absent")]
        holds = int(record.get("departed") or 0) == sum(parts)
        lost += not holds
        rows.append(
            [
                f"{record.get('campaign', '')} {record.get('query', '')}",
                clock(record.get("time_s")),
                *(whole(record.get(name) or 0) for name in ("departed", "waiting", "on_road", "arrived", "absent")),
                "yes" if holds else "NO",
                whole(record.get("stuck_released")),
            ]
        )
    heads = [
        "Query",
        "Time",
        "Departed",
        "Waiting to enter",
        "On the road",
        "Arrived",
        "Not known where",
        "Adds up",
        "Let through when stuck",
    ]
    words = called(facts)
    begins = words.many[:1].upper() + words.many[1:]
    caption = f"{begins} at each query: departed = waiting + on the road + arrived + not known where"
    verdict = (
        f"At all {len(rows)} queries no {words.one} was lost or made up."
        if not lost
        else f"At {lost} of {len(rows)} queries the {words.many} do not add up."
    )
    body = table(caption, heads, rows)
    return Safe(
        element("p", verdict, class_="note") + (details("Vehicles at each query", body) if len(rows) > 12 else body)
    )
