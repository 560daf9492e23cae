"""Report sections: the error against the number of devices asked, what a constant error costs, and lost reports."""

import math

from simulator.experiment.run_record import LossRecord, MechanismRecord, PublishedLeakage
from simulator.reporting import figures
from simulator.reporting.claims_section import ViewClaim, view_claims
from simulator.reporting.figures import Drawn, Figure, Page
from simulator.reporting.formatting import SUPERSCRIPTS, listed, number, parameter, percent, related, whole
from simulator.reporting.run_reader import RELEASED_BY, UNMATCHED, FinishedRun

FLAT = 1.02
"""Largest ratio of two errors that are reported as equal."""
GROWS = 1.2
"""Smallest ratio of two errors of which the second is reported to have grown."""
PRINTED = PublishedLeakage(epsilon=None, equation=None, note=None)


def growth_section(run: FinishedRun, page: Page) -> dict[str, object] | None:
    """
    Show how the error grows with the devices asked and what Sampling Privacy's constant error costs in privacy.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figure is added to it.

    Returns
    -------
    values
        Values for the section's template; None where there is nothing to draw.
    """
    figure = figures.growth(run)
    sampled = [mechanism for mechanism in run.record.mechanisms if mechanism.kind == "sampling_privacy"]
    if figure is None and not sampled:
        return None
    sentences = [text for mechanism in run.private.values() if (text := growth_sentence(run, mechanism))]
    drawn: Drawn | None = None
    if figure is not None:
        described = " ".join(["Error per cell against the number of devices asked.", *sentences])
        drawn = page.add("growth", figure, _growth_caption(run), described)
    costs = [(run.label(each.name), equation(each), cost_paragraphs(run, each)) for each in sampled]
    return {"figure": drawn, "sentences": sentences, "costs": costs}


def _growth_caption(run: FinishedRun) -> str:
    scalings = [mechanism.scaling for mechanism in run.private.values()]
    occupancies = {parameter(scaling.occupancy) for scaling in scalings if scaling is not None}
    owners = run.owners.one if occupancies == {parameter(1)} else run.owners.many
    held = f" for a cell with {listed(sorted(occupancies))} {owners} in it" if occupancies else ""
    ideal = ", where every report arrives" if run.record.loss else ""
    caption = f"Lines: the standard error in theory{held}{ideal}. Points: this run. Both axes are logarithmic."
    if len(run.private) < len(run.mechanisms):
        caption += " An estimate without privacy has no error, which a logarithmic axis cannot show."
    return caption


def growth_sentence(run: FinishedRun, mechanism: MechanismRecord) -> str | None:
    """
    State how one mechanism's error grows with the number of devices asked.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        The mechanism.

    Returns
    -------
    sentence
        Gives the ends of the curve, its power of N and the errors measured in this run; None without a curve.
    """
    scaling = mechanism.scaling
    pairs = [] if scaling is None else [(n, s) for n, s in zip(scaling.asked, scaling.std_error, strict=True)]
    known = [(n, s) for n, s in pairs if s is not None]
    if len(known) < 2:
        return None
    (n_low, low), (n_before, before), (n_high, high) = known[0], known[-2], known[-1]
    label, many = run.label(mechanism.name), run.owners.many
    ends = f"from {whole(n_low)} devices asked to {whole(n_high)}"
    if high == 0:
        sentence = f"{label} has no error at any number of devices: it hides nothing."
    elif low == 0:
        sentence = f"{label}’s error grows from nothing to {number(high)} {many} {ends}."
    elif high / low <= FLAT:
        sentence = (
            f"{label}’s error stays the same, {number(low)} {many}, {ends}: it does not depend on how many devices "
            "are asked."
        )
    else:
        # The power of N is taken at the far end, where terms that do not depend on N are negligible.
        power = math.log(high / before) / math.log(n_high / n_before)
        growth = "as √N" if abs(power - 0.5) < 0.02 else f"in the end about as N to the power {power:.2f}"
        sentence = f"{label}’s error grows from {number(low)} to {number(high)} {many} {ends}, {growth}."
    lost = any(record.mechanism == mechanism.name for record in run.record.loss)
    if lost:
        sentence = f"Where every report arrives, {sentence}"
    if points := figures.measured(run, mechanism.name):
        each = [f"{number(rmse)} with {whole(n)} asked" for n, rmse in points]
        sentence += f" This run{', which lost reports,' if lost else ''} measured {listed(each)}."
    return sentence


def cost_paragraphs(run: FinishedRun, mechanism: MechanismRecord) -> list[tuple[str, str]]:
    """
    Explain what the paper's leakage equation does not cover, for one mechanism.

    Parameters
    ----------
    run
        The finished run.
    mechanism
        A Sampling Privacy mechanism.

    Returns
    -------
    items
        Titles and texts: round two alone, linked reports, published differences, the repair.
    """
    claims = [claim for claim in view_claims(run.claims) if claim.mechanism == mechanism.name and claim.queries == 1]
    linked = next((claim for claim in claims if claim.view == "linked_reports"), None)
    sampling = mechanism.parameters.get("sampling")
    if isinstance(sampling, int | float):
        chance: float | None = float(sampling)
    else:
        chance = None if linked is None else linked.constant_delta
    return [
        ("Round two alone is what the equation covers.", _round_two(mechanism, claims, chance)),
        ("Linked reports are not covered.", _linked(linked, chance)),
        ("Publishing the estimates is not covered.", _differences(claims, chance)),
        ("Suppressing small cells repairs the last one.", _repair(claims)),
    ]


def equation(mechanism: MechanismRecord) -> str:
    """Return the name of the equation of the ε that a Sampling Privacy mechanism's paper states."""
    return (mechanism.printed or PRINTED).equation or "SP eq 29"


def _round_two(mechanism: MechanismRecord, claims: list[ViewClaim], chance: float | None) -> str:
    printed = mechanism.printed or PRINTED
    k_ary = "" if mechanism.parameters.get("form") == "binary" else "k-ary "
    body = (
        f"On its own, the second answer is the truth with probability {percent(chance)} and otherwise a random value: "
        f"{k_ary}randomized response. The first answer adds no protection. It repeats the same noise, so that the "
        "noise cancels in the difference. This makes the error constant, and it is also the leak."
    )
    stated = "" if printed.epsilon is None else f" states ε = {parameter(printed.epsilon)}. It"
    body += f" {equation(mechanism)}{stated} covers this view only."
    alone = next((claim for claim in claims if claim.view == "report_round_2"), None)
    if alone is not None and alone.epsilon is not None:
        same = printed.epsilon is not None and math.isclose(alone.epsilon, printed.epsilon, rel_tol=1e-6)
        kind = "upper bound" if alone.kind == "bound" else "exact value"
        body += f" The {kind} is {'the same' if same else f'ε = {parameter(alone.epsilon)}'}."
    note = (printed.note or "").strip().rstrip(".")
    return f"{body} ({note[0].upper()}{note[1:]}.)" if note else body


def _linked(linked: ViewClaim | None, chance: float | None) -> str:
    known = None if linked is None else linked.constant_delta
    if linked is not None and known is None:
        pairs = [f"{parameter(delta)} at ε = {parameter(epsilon)}" for epsilon, delta in linked.deltas]
        observer = "An observer that links one device’s two answers"
        body = f"{observer} has δ = {listed(pairs)}" if pairs else f"{observer} learns more"
        finite = linked.epsilon is not None and math.isfinite(linked.epsilon)
        return f"{body}; {f'ε = {parameter(linked.epsilon)} always holds' if finite else 'no finite ε always holds'}."
    value = chance if known is None else known
    return (
        "An observer that links one device’s two answers learns its true cell with probability "
        f"{percent(value)}: {related('δ', '=', value)}, whatever ε is. A first answer of “nothing” followed by a cell "
        "can only come from a device in that cell. So two aggregators that collude undo the protection, and so does "
        "one that receives both rounds."
    )


def _differences(claims: list[ViewClaim], chance: float | None) -> str:
    views = [claim for claim in claims if claim.view == "released_differences" and claim.deltas]
    rows = [claim for claim in views if not claim.basis.startswith(RELEASED_BY)]
    if rows and all(claim.basis.startswith(UNMATCHED) for claim in rows):
        return (
            f"{UNMATCHED} in this run, so their noise does not cancel. The claim for the published estimates is the "
            "claim for linked reports, whatever the crowd."
        )
    body = (
        f"The published difference of a cell, multiplied by the sampling probability {parameter(chance)}, is exactly "
        "the number of sampled devices in that cell, whatever the other answers were: a binomial draw from the true "
        "count. "
    )
    parts = []
    for claim in rows:
        crowd = "alone in a cell" if claim.crowd == 1 else f"in a crowd of {whole(claim.crowd)}"
        epsilon, delta = min(claim.deltas, key=lambda pair: abs(pair[0] - 1))
        at = f"at ε = {parameter(epsilon)}" if claim.constant_delta is None else "at every ε"
        parts.append(f"{crowd} it is {related('δ', '≤' if claim.delta_kind == 'bound' else '=', delta)} {at}")
    if not parts:
        return f"{body}A device alone in its cell is detected with probability {percent(chance)}, whatever ε is."
    return f"{body}For a device {listed(parts)}. A stated ε with a small δ therefore needs a minimum crowd."


def _repair(claims: list[ViewClaim]) -> str:
    body = (
        "If only the differences are published, and every cell with fewer than k sampled devices is left out, a small "
        "δ at a finite ε becomes provable (Li, Qardaji and Su, theorem 5). "
    )
    for claim in claims:
        if claim.k is not None and claim.deltas and claim.basis.startswith(f"{RELEASED_BY}suppress"):
            epsilon, delta = min(claim.deltas, key=lambda pair: abs(pair[0] - 1))
            return (
                f"{body}In this run k = {whole(claim.k)} gives {related('δ', '=', delta)} at ε = {parameter(epsilon)}."
            )
    return f"{body}This run did not do so: the item above holds for what it published."


def loss_section(run: FinishedRun, page: Page) -> dict[str, object] | None:
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
    values
        Values for the section's template; None where no report was lost.
    """
    records = [record for record in run.record.loss if record.mechanism in run.private]
    if not records:
        return None
    several = len({record.campaign for record in records}) > 1
    sentences: list[str] = []
    drawn: list[Drawn] = []
    for record in records:
        label = run.label(record.mechanism) + (f", campaign {record.campaign}" if several else "")
        sentences.append(_loss_sentence(record, label))
        described = f"Error against devices asked. {sentences[-1]}"
        drawn.append(page.add(f"loss-{len(drawn)}", _draw_loss(run, record), label, described))
    independent = all(record.independent for record in records)
    return {"sentences": sentences, "figures": drawn, "independent": independent}


def _loss_sentence(record: LossRecord, label: str) -> str:
    rounds = "" if record.rounds == 1 else " in its rounds"
    received = f"{label}: {listed([percent(share) for share in record.heard])} of the reports were received{rounds}. "
    across = f"from {whole(record.asked[0])} to {whole(record.asked[-1])} devices asked"
    ends, paired = _ends(record.unpaired), _ends(record.paired or [])
    if ends is None:
        return f"{received}Its error is not known."
    low, high = ends
    if record.rounds == 1:
        return f"{received}One round has nothing to pair: its error goes from {number(low)} to {number(high)} {across}."
    grows = "grows" if high > GROWS * low else "goes"
    unpaired = f"{received}Unpaired, its error {grows} from {number(low)} to {number(high)} vehicles {across}"
    if paired is None:
        return f"{unpaired}."
    low, high = paired
    if high > GROWS * low:
        return f"{unpaired}; paired, from {number(low)} to {number(high)}."
    return f"{unpaired}; paired it stays at {number(high)}."


def _ends(errors: list[float | None]) -> tuple[float, float] | None:
    known = [error for error in errors if error is not None]
    return (known[0], known[-1]) if known else None


def _draw_loss(run: FinishedRun, record: LossRecord) -> Figure:
    paint = figures.colour(run, record.mechanism)
    traces: list[Figure] = []
    for errors, words, dash, line in (
        (record.unpaired, "each round as received", "solid", paint),
        (record.paired, "only devices received in every round", "dash", paint),
        (record.ideal, "nothing lost", "dot", figures.INK),
    ):
        # A logarithmic axis cannot show an error of 0.
        if errors is not None and any(errors):
            hover = f"{words}: %{{x:,}} asked, σ = %{{y:,.1f}}"
            shown = [error or math.nan for error in errors]
            traces.append(figures.curve(record.asked, shown, words, hover, line, dash=dash))
    scores = run.scores
    rmse = scores[(scores["mechanism"] == record.mechanism) & (scores["campaign"] == record.campaign)]["rmse"].max()
    asked = run.mean_asked.get((record.campaign, record.mechanism))
    if asked and rmse > 0:
        words = "this run, paired" if record.pairs and record.rounds > 1 else "this run"
        hover, edge = f"{words}: %{{x:,}} asked, RMSE %{{y:,.1f}}", {"color": "#fff", "width": 1.5}
        traces.append(figures.markers([asked], [rmse], words, hover, paint, size=12, symbol="circle", line=edge))
    powers = range(round(math.log10(record.asked[0])), round(math.log10(record.asked[-1])) + 1)
    ticks = [f"10{str(power).translate(SUPERSCRIPTS)}" for power in powers]
    x = figures.log_axis("devices asked", tickvals=[10**power for power in powers], ticktext=ticks)
    return figures.plot(
        traces, x, figures.log_axis("error per cell, vehicles"), height=400, left=70, right=30, legend=True
    )
