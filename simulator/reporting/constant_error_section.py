"""Report section: Sampling Privacy's constant error and its cost in privacy, and the effect of lost reports."""

import math
from collections.abc import Mapping
from typing import Any

from simulator.reporting import figures
from simulator.reporting.campaign_text import RELEASED_BY, UNMATCHED
from simulator.reporting.claims_text import ViewClaim, view_claims
from simulator.reporting.figures import measured
from simulator.reporting.formatting import SUPERSCRIPTS, listed, number, parameter, percent, related, whole
from simulator.reporting.markup import Safe, element, figure, finite, text
from simulator.reporting.run_reader import FinishedRun, MechanismFacts

FLAT = 1.02


def sampling_mechanisms(run: FinishedRun) -> list[MechanismFacts]:
    """
    Find the run's Sampling Privacy mechanisms.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    facts
        In the scenario's order.
    """
    return [facts for facts in run.facts.values() if facts.kind == "sampling_privacy"]


def growth_sentence(run: FinishedRun, facts: MechanismFacts) -> str | None:
    """
    State how one mechanism's error grows with the number of devices asked.

    Parameters
    ----------
    run
        The finished run.
    facts
        The mechanism.

    Returns
    -------
    sentence
        Gives the ends of the curve, its power of N and the errors measured in this run; None without a curve.
    """
    scaling: dict[str, Any] = facts.record.get("scaling") or {}
    asked, sigma = scaling.get("asked") or [], scaling.get("std_error") or []
    pairs = [(float(n), float(s)) for n, s in zip(asked, sigma, strict=False) if s is not None and math.isfinite(s)]
    if len(pairs) < 2:
        return None
    (n_low, low), (n_high, high) = pairs[0], pairs[-1]
    ends = f"from {whole(n_low)} devices asked to {whole(n_high)}"
    if high == 0:
        sentence = f"{facts.label} has no error at any number of devices: it hides nothing."
    elif low > 0 and high / low <= FLAT:
        sentence = (
            f"{facts.label}’s error stays the same, {number(low)} {run.called.many}, {ends}: it does not depend on "
            "how many devices are asked."
        )
    elif low > 0:
        # The power of N is taken at the far end, where terms that do not depend on N are negligible.
        (n_before, before) = pairs[-2]
        power = math.log(high / before) / math.log(n_high / n_before)
        law = "as √N" if abs(power - 0.5) < 0.02 else f"in the end about as N to the power {power:.2f}"
        sentence = f"{facts.label}’s error grows from {number(low)} to {number(high)} {run.called.many} {ends}, {law}."
    else:
        sentence = f"{facts.label}’s error grows from nothing to {number(high)} {run.called.many} {ends}."
    lost = any(record["mechanism"] == facts.name for record in run.run.get("loss") or [])
    if lost:
        sentence = f"Where every report arrives, {sentence}"
    points = measured(run, facts.name)
    if points:
        each = [f"{number(rmse)} with {whole(n)} asked" for n, rmse in points]
        sentence += f" This run{', which lost reports,' if lost else ''} measured {listed(each)}."
    return sentence


def cost_paragraphs(run: FinishedRun, facts: MechanismFacts) -> list[Safe]:
    """
    Explain what the paper's leakage equation does not cover, for one mechanism.

    Parameters
    ----------
    run
        The finished run.
    facts
        A Sampling Privacy mechanism.

    Returns
    -------
    items
        Four paragraphs: round two alone, linked reports, published differences, the repair.
    """
    claims = [claim for claim in view_claims(run.claims) if claim.mechanism == facts.name and claim.queries == 1]
    sampling = (facts.record.get("parameters") or {}).get("sampling")
    chance = float(sampling) if isinstance(sampling, int | float) else _linked_delta(claims)
    return [
        _round_two(facts, claims, chance),
        _linked(claims, chance),
        _differences(claims, chance),
        _repair(claims),
    ]


def _linked_delta(claims: list[ViewClaim]) -> float | None:
    return next((claim.constant_delta for claim in claims if claim.view == "linked_reports"), None)


def _item(title: str, body: str) -> Safe:
    return element("li", element("strong", title), " ", text(body))


def equation(facts: MechanismFacts) -> str:
    """
    Name the equation of the ε published in the paper.

    Parameters
    ----------
    facts
        A Sampling Privacy mechanism.

    Returns
    -------
    name
        As the run recorded it.
    """
    return str((facts.record.get("printed") or {}).get("equation") or "SP eq 29")


def _round_two(facts: MechanismFacts, claims: list[ViewClaim], chance: float | None) -> Safe:
    printed: dict[str, Any] = facts.record.get("printed") or {}
    binary = (facts.record.get("parameters") or {}).get("form") == "binary"
    body = (
        f"Heard alone, the second answer is the truth with probability {percent(chance)} and otherwise whatever "
        f"the die showed: {'' if binary else 'k-ary '}randomized response. The first answer adds no protection. It "
        "repeats the same noise, so that the noise cancels in the difference; that is where the constant error "
        "comes from, and also the leak."
    )
    epsilon = printed.get("epsilon")
    alone = next((claim for claim in claims if claim.view == "report_round_2"), None)
    worked_out = None if alone is None else alone.epsilon
    if isinstance(epsilon, int | float):
        body += f" {equation(facts)} prints ε = {parameter(epsilon)}, and it is a statement about this one view only."
    else:
        body += f" {equation(facts)} is a statement about this one view only."
    if alone is not None and worked_out is not None:
        same = isinstance(epsilon, int | float) and math.isclose(worked_out, epsilon, rel_tol=1e-6)
        word = "bounding" if alone.kind == "bound" else "exact"
        body += f" The {word} value is {'the same' if same else f'ε = {parameter(worked_out)}'}."
    note = str(printed.get("note") or "").strip().rstrip(".")
    if note:
        body += f" ({note[0].upper()}{note[1:]}.)"
    return _item("Round two alone is what the equation covers.", body)


def _linked(claims: list[ViewClaim], chance: float | None) -> Safe:
    linked = next((claim for claim in claims if claim.view == "linked_reports"), None)
    known = None if linked is None else linked.constant_delta
    if linked is not None and known is None:
        pairs = [f"{parameter(delta)} at ε = {parameter(epsilon)}" for epsilon, delta in linked.deltas]
        finite = linked.epsilon is not None and math.isfinite(linked.epsilon)
        body = (
            f"Whoever puts one device’s two answers side by side has δ = {listed(pairs)}"
            if pairs
            else "Whoever links them learns more"
        )
        body += f"; ε = {parameter(linked.epsilon)} holds always." if finite else "; no finite ε holds always."
    else:
        value = known if known is not None else chance
        body = (
            "Whoever puts one device’s two answers side by side learns its true cell with probability "
            f"{percent(value)}: "
            f"{related('δ', '=', value)}, whatever ε is. A first answer of “nothing” followed by a cell can "
            "only come from a device in that cell. "
            "So two aggregators that collude undo the protection, and so does one that hears both rounds."
        )
    return _item("Linked reports are not covered.", body)


def _differences(claims: list[ViewClaim], chance: float | None) -> Safe:
    rows = [
        claim
        for claim in claims
        if claim.view == "released_differences" and not claim.basis.startswith(RELEASED_BY) and claim.deltas
    ]
    if rows and all(claim.basis.startswith(UNMATCHED) for claim in rows):
        body = (
            f"{UNMATCHED} in this run, so their noise does not cancel. What is claimed of the published estimates is "
            "what is claimed of linked reports, whatever the crowd."
        )
        return _item("Publishing the estimates is not covered.", body)
    body = (
        f"The published difference of a cell, multiplied by the sampling probability {parameter(chance)}, "
        "is exactly the number of sampled "
        "devices in that cell, whatever the other answers were: a binomial draw from the true count. "
    )
    parts = []
    for claim in rows:
        crowd = "alone in a cell" if claim.crowd == 1 else f"in a crowd of {whole(claim.crowd)}"
        chosen = min(claim.deltas, key=lambda pair: abs(pair[0] - 1))
        flat = claim.constant_delta
        at = "at every ε" if flat is not None else f"at ε = {parameter(chosen[0])}"
        parts.append(f"{crowd} it is {related('δ', '≤' if claim.delta_kind == 'bound' else '=', chosen[1])} {at}")
    if parts:
        body += f"For a device {listed(parts)}. A quoted ε with a small δ therefore needs a minimum crowd."
    else:
        body += f"A device alone in its cell is seen with probability {percent(chance)}, whatever ε is."
    return _item("Publishing the estimates is not covered.", body)


def _repair(claims: list[ViewClaim]) -> Safe:
    rows = [
        claim
        for claim in claims
        if claim.k is not None and claim.deltas and claim.basis.startswith(f"{RELEASED_BY}suppress")
    ]
    body = (
        "If only the differences are published, and every cell with fewer than k sampled devices is left "
        "out, a small δ at a finite ε "
        "becomes provable (Li, Qardaji and Su, theorem 5). "
    )
    if rows:
        claim = rows[0]
        epsilon, delta = min(claim.deltas, key=lambda pair: abs(pair[0] - 1))
        body += f"In this run k = {whole(claim.k)} gives {related('δ', '=', delta)} at ε = {parameter(epsilon)}."
    else:
        body += "This run did not do so: what it published is as the item above says."
    return _item("Suppressing small cells repairs the last one.", body)


GROWS = 1.2
_LINES = (
    ("unpaired", "each round as heard", "solid"),
    ("paired", "only devices heard in every round", "dash"),
    ("ideal", "nothing lost", "dot"),
)


def loss_section(run: FinishedRun, page: dict[str, Any]) -> Safe:
    """
    Show the theoretical error under this run's report losses against the devices asked, and the measured error.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figures are added to it.

    Returns
    -------
    html
        The section; empty where no report was lost.
    """
    records = [
        record
        for record in run.run.get("loss") or []
        if (facts := run.facts.get(str(record["mechanism"]))) is not None and facts.kind != "no_privacy"
    ]
    if not records:
        return Safe("")
    several = len({record["campaign"] for record in records}) > 1
    sentences: list[str] = []
    drawn: list[Safe] = []
    for record in records:
        label = run.label(str(record["mechanism"])) + (f", campaign {record['campaign']}" if several else "")
        sentences.append(_sentence(record, label))
        key = f"loss-{len(drawn)}"
        page["figures"][key] = _draw(run, record)
        drawn.append(figure(key, label, described=f"Error against devices asked. {sentences[-1]}"))
    dependent = any(not record["independent"] for record in records)
    return element(
        "section",
        element("h2", "Error when reports are lost"),
        element(
            "p",
            "Two rounds carry the same noise, which cancels in their difference. A report that is lost in one round "
            "leaves its noise in the other. Counting only devices heard in every round repairs that, if servers can "
            "tell who those are. Lines are theory at this run’s losses, the point is what this run measured; both axes "
            "are logarithmic."
            + (" Theory takes the losses of a device’s rounds to be independent; here they are not." * dependent),
        ),
        element("ul", *(element("li", sentence) for sentence in sentences)),
        element("div", *drawn, class_="grid"),
        id="loss",
    )


def _sentence(record: Mapping[str, Any], label: str) -> str:
    heard = listed([percent(share) for share in record["heard"]])
    rounds = "" if record["rounds"] == 1 else " in its rounds"
    said = f"{label}: {heard} of the devices asked were heard{rounds}. "
    ends = {name: _ends(record, name) for name in ("unpaired", "paired")}
    (first, last) = record["asked"][0], record["asked"][-1]
    across = f"from {whole(first)} to {whole(last)} devices asked"
    if ends["unpaired"] is None:
        return said + "Its error is not known."
    low, high = ends["unpaired"]
    if record["rounds"] == 1:
        return said + f"One round has nothing to pair: its error goes from {number(low)} to {number(high)} {across}."
    grows = "grows" if high > GROWS * low else "goes"
    said += f"Unpaired, its error {grows} from {number(low)} to {number(high)} vehicles {across}"
    if ends["paired"] is None:
        return said + "."
    low, high = ends["paired"]
    if high > GROWS * low:
        return said + f"; paired, from {number(low)} to {number(high)}."
    return said + f"; paired it stays at {number(high)}."


def _ends(record: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    known = [value for value in record[name] or [] if value is not None and math.isfinite(value)]
    return (known[0], known[-1]) if known else None


def _draw(run: FinishedRun, record: Mapping[str, Any]) -> dict[str, Any]:
    mechanism, campaign = str(record["mechanism"]), str(record["campaign"])
    paint = figures.colour(run, mechanism)
    traces: list[dict[str, Any]] = []
    for name, words, dash in _LINES:
        values = record[name]
        # A logarithmic axis cannot show an error of 0.
        if values is None or not any(values):
            continue
        traces.append(
            {
                "x": list(record["asked"]),
                "y": finite(value or math.nan for value in values),
                "mode": "lines",
                "name": words,
                "line": {"color": figures.INK if name == "ideal" else paint, "width": 2.5, "dash": dash},
                "hovertemplate": f"{words}: %{{x:,}} asked, σ = %{{y:,.1f}}<extra></extra>",
            }
        )
    rows = run.scores[(run.scores["mechanism"] == mechanism) & (run.scores["campaign"] == campaign)]
    rmse, asked = rows["rmse"].max(), run.mean_asked.get((campaign, mechanism))
    if asked and rmse > 0:
        words = "this run, paired" if record["pairs"] and record["rounds"] > 1 else "this run"
        traces.append(
            {
                "x": [asked],
                "y": [float(rmse)],
                "mode": "markers",
                "name": words,
                "marker": {"color": paint, "size": 12, "symbol": "circle", "line": {"color": "#fff", "width": 1.5}},
                "hovertemplate": f"{text(words)}: %{{x:,}} asked, RMSE %{{y:,.1f}}<extra></extra>",
            }
        )
    first, last = (round(math.log10(record["asked"][place])) for place in (0, -1))
    powers = range(first, last + 1)
    layout = {
        "xaxis": {
            "type": "log",
            "tickvals": [10**power for power in powers],
            "ticktext": [f"10{str(power).translate(SUPERSCRIPTS)}" for power in powers],
            "title": {"text": "devices asked"},
        },
        "yaxis": {"type": "log", "dtick": 1, "tickformat": ",", "title": {"text": "error per cell, vehicles"}},
        "height": 400,
        "margin": {"l": 70, "r": 30, "t": 12, "b": 48},
        "showlegend": True,
    }
    return {"data": traces, "layout": layout}
