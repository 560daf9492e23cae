"""Privacy claims of a run: every mechanism and release in every view, as a table."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pandas as pd

from mechanisms.local import LocalMechanism, NoPrivacy
from mechanisms.privacy import (
    Claim,
    LinkedReports,
    LocatedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    View,
)
from mechanisms.privacy.claim import SUBJECT, subject_of_view
from mechanisms.privacy.rounding import NEGLIGIBLE, rounded_up
from mechanisms.privacy.view import ADJACENCIES, possible_adjacency
from scenarios.field_types import number
from scenarios.general import Claims
from simulator.aggregation.server_noise import noisy_claim
from simulator.experiment.deployment_record import Coalition, CountedReports, deployment_views
from simulator.experiment.whole_run_claims import whole_run_claims
from simulator.files.messages import Note, warning
from simulator.results.schema import TABLES
from simulator.sensing.campaign import Campaign, WindowBudget
from simulator.sensing.query import Query, answers_of_devices, keeps_randomness

RELEASED_VALUES = "released_values"
"""The view of a published statistic of values. Neighbours differ in one device's value (bounded, HDK 2.1). It does not
depend on a device's location, and so is not a view of a mechanism that hides locations."""

SMALL_EPSILON = 0.1
"""The ε at which two claims are compared."""

STATISTICS = {"mean_speed": "mean speeds", "median_speed": "median speeds"}

ADD_REMOVE = "add_remove"
"""The adjacency of one device more or less: it takes part, in one cell, or it does not take part at all."""


def add_remove_claim(entering: Claim) -> Iterator[Claim]:
    """Yield the claim about a device that takes part or not, from the claim about entering, if that limits anything.

    The counts of the cells depend on the devices in them and on independent coins. So a device that is added to a cell
    changes them as one that enters it from outside, provided that every device was counted, since counts are scaled
    otherwise. The numbers of devices asked and of reports counted would reveal it; here they are not published.
    """
    if entering.delta(1.0) < 1.0:
        why = "If no number of devices is published, an added device changes what one that enters does."
        yield entering.about(adjacency=ADD_REMOVE, basis=f"{why} {entering.basis}")


def released_claims(
    name: str, campaign: Campaign, queries: int, crowds: Sequence[int], *, complete: bool
) -> Iterator[Claim]:
    """Yield the claims about what one campaign publishes of one mechanism through a release.

    Parameters
    ----------
    name
        The mechanism whose counts or speeds are released.
    campaign
        The campaign. What several campaigns reveal together is stated by `whole_run_claims`.
    queries
        Number of queries under the release.
    crowds
        Numbers of devices in the cell, in addition to the claim for any number.
    complete
        Whether every device asked was counted.
    """
    release, speeds, mechanism = campaign.release_words, campaign.speeds, campaign.mechanisms[name]
    origin = f"Released by {release}, campaign {campaign.name}: "
    subject = {"mechanism": name, "release": release, "campaign": campaign.name, "queries": queries}
    if speeds is not None and speeds.mechanism == name:
        claim = speeds.release.claim(queries=queries)
        basis = f"{origin}{STATISTICS[speeds.statistic]}. {claim.basis}"
        yield claim.about(**subject, view=RELEASED_VALUES, adjacency="one_value", basis=basis)
    if name not in campaign.publications:
        return
    view = ReleasedDifferences(1) if mechanism.rounds > 1 else ReleasedCounts(1)
    subject |= {"view": view.name, "k": campaign.release.get("k")}
    for adjacency in ADJACENCIES:
        for crowd in (None, *crowds):
            change = possible_adjacency(adjacency, cells=mechanism.cells)
            claim = campaign.publications[name].release.claim(crowd=crowd, queries=queries, adjacency=change)
            claim = claim.about(**subject, adjacency=adjacency, crowd=crowd, basis=f"{origin}{claim.basis}")
            yield claim
            if adjacency == "enter_leave" and crowd is None and complete:
                yield from add_remove_claim(claim)


KEY = (*SUBJECT, "epsilon")
"""Columns whose values differ between any two rows of the table."""


def _gathered(campaigns: Sequence[Campaign], queries: Sequence[Query]) -> Iterator[tuple[list[Campaign], list[Query]]]:
    """Yield the campaigns that ask the same mechanisms, and so have the same claims, together, and their queries.

    Those without a budget come first; each with one is alone, since its mechanisms are its own.
    """
    gathered: dict[int, list[Campaign]] = {}
    for campaign in sorted(campaigns, key=lambda campaign: campaign.budget is not None):
        gathered.setdefault(id(campaign.mechanisms), []).append(campaign)
    for alike in gathered.values():
        names = {campaign.name for campaign in alike}
        yield alike, [query for query in queries if query.campaign in names]


def tabulate_claims(
    section: Claims, campaigns: Sequence[Campaign], queries: Sequence[Query], coalitions: Iterable[Coalition] = ()
) -> pd.DataFrame:
    """Return the table of the claims of every mechanism for every view, and of every release.

    Claims for released and shuffled reports are computed from the reports that were counted in the run.

    Values published through a release have that release's claim, in rows of each campaign that publishes through it:
    `released_counts` for a mechanism whose server holds exact counts, `released_differences` for Sampling Privacy,
    and `released_values` for a statistic of speeds, whose neighbours differ in one device's speed and not in its
    location. A crowd of null means any crowd. A release does not limit what the server itself sees of reports.

    Parameters
    ----------
    section
        Values of ε for which δ is reported, numbers of queries that a device answers, and numbers of devices counted in
        the cell for views of released counts; of numbers above the fewest counted in a query, which are left out, this
        one takes the place if no other is given. There are always rows for the number of queries of each campaign, and
        of a campaign with a budget for those that the budget covers, which longer campaigns without one have too.
    campaigns
        The campaigns of the run. The views that their deployments create, shares and shuffled reports, have rows too.
    queries
        Closed queries. For a round of shuffled reports `crowd` is the fewest reports counted in a query of the
        campaign; queries that counted none are left out.
    coalitions
        Coalitions of operators' parties with a claim of their own.

    Returns
    -------
    pandas.DataFrame
        The columns of `claims.parquet`: per view one row at δ = 0, which `at_delta_zero` marks (ε = inf and kind
        "infinite" if no ε is finite, and kind "bound" if none is known to be), and one for ε = 0 and for each other of
        `epsilons` with its δ. Parameters that a view lacks, and unknown values, are
        null. `adjacency` is the change of one device that the claim hides (`mechanisms.privacy.view`); published
        values have rows for both. `campaign` is the campaign with a budget, whose schedule the basis states, or the
        one that publishes through a release or with servers' noise; null for claims that hold in all campaigns
        without a budget, whatever their partition, and for claims of the whole run, where `campaigns` names all
        campaigns together (`whole_run_claims`). `release` is the release in words, null for views of none. `reason` is
        the code of a `Reason` why there is no better claim, null where there is none. No two rows have the same `KEY`.
    """
    # Of campaigns over several partitions, each with a claim about one view, the weakest claim holds in all.
    made: dict[tuple[object, ...], list[Claim]] = {}
    # A budget is compared with what campaigns without one reveal over as many queries.
    windows = {campaign.budget.window for campaign in campaigns if campaign.budget is not None}
    for alike, closed in _gathered(campaigns, queries):
        for claim in _group_claims(section, alike, closed, windows):
            basis = f"{_schedule_words(alike[0].budget, claim.mechanism)}{claim.basis}"
            stated = claim.about(campaign=claim.campaign or _only(alike), basis=basis)
            made.setdefault(tuple(stated.subject.values()), []).append(stated)
    weakest = [*map(Claim.weakest, made.values()), *whole_run_claims(campaigns, queries, coalitions)]
    return TABLES["claims"].frame(row for claim in weakest for row in claim.rows((0.0, *section.epsilons)))


_BUDGET_WORDS = {
    "uniform": "Uniform budget (LBU): ε = {epsilon} for any {w} consecutive queries, ε/{w} at each. ",
    "population_uniform": (
        "Uniform population (LPU): each device answers exactly once, with ε = {epsilon}, in any {w} consecutive "
        "queries. "
    ),
    "absorption": "Budget absorption (LBA): ε = {epsilon} for any {w} consecutive queries. ",
    "population_absorption": (
        "Population absorption (LPA): each device answers at most once, with ε = {epsilon}, in any {w} consecutive "
        "queries. "
    ),
}


def _schedule_words(budget: WindowBudget | None, mechanism: str) -> str:
    """Return the schedule of a budget in words, with which the basis of claims begins; empty without a budget."""
    if budget is None:
        return ""
    return _BUDGET_WORDS[budget.kind].format(epsilon=number(budget.epsilon[mechanism]), w=budget.window)


def _only(alike: Sequence[Campaign]) -> str | None:
    """Return the name of a campaign with a budget; None for campaigns without one: claims hold in all of these."""
    return None if alike[0].budget is None else alike[0].name


def _group_claims(
    section: Claims, alike: Sequence[Campaign], queries: Sequence[Query], windows: Iterable[int]
) -> Iterator[Claim]:
    """Yield the claims that hold in each of some campaigns that ask the same mechanisms."""
    budget, named = alike[0].budget, {campaign.name: campaign for campaign in alike}
    for name, mechanism in alike[0].mechanisms.items():
        lengths = Counter(one.campaign for one in queries if (name, one.number) not in named[one.campaign].skipped)
        shorter = sorted(window for window in windows if window < max(lengths.values(), default=0))
        asked = (*section.queries, *shorter, *(() if budget is None else (budget.window,)))
        as_it_is = any(
            campaign.speeds is None and name not in campaign.publications and campaign.deployment.noise is None
            for campaign in alike
        )
        counted, claiming = CountedReports.of(name, alike, queries), alike[0].asked[name]
        most = max(section.crowds) if counted is None else min(counted.fewest)
        crowds = [crowd for crowd in section.crowds if crowd <= most] or [most][: min(most, 1)]
        # What devices keep is shared by campaigns, so that their queries together are one view.
        together = (sum(lengths.values()),) if lengths and keeps_randomness(mechanism) else ()
        stated = set()  # a device that cannot be followed is seen in one query, whatever the number of queries
        for repeats in dict.fromkeys((*asked, *lengths.values(), *together)):
            views = [(view, counted) for view in _views(mechanism, repeats, crowds, released=as_it_is)]
            made = deployment_views(name, alike, queries, repeats)
            of_servers = (pair for pair in made if isinstance(pair[0], Shares | Shuffled | LocatedReports))
            for view, source in [*views, *of_servers]:
                subject = subject_of_view(view)
                if isinstance(view, Shuffled) and source is not None:
                    subject["crowd"] = source.fewest[view.round - 1]
                if (values := tuple(subject.values())) in stated:
                    continue
                stated.add(values)
                reason = None if source is None else source.reason(view)
                claim = claiming.claim(view) if source is None else source.claim(claiming, view)
                yield claim.about(**subject, mechanism=name, reason=reason)
        for campaign in alike:
            for repeats in dict.fromkeys((*asked, *filter(None, [lengths[campaign.name]]))):
                yield from _with_noise(name, campaign, queries, repeats)
                complete = counted is not None and not counted.uncounted
                yield from released_claims(name, campaign, repeats, crowds, complete=complete)


def weakened_claims(section: Claims, campaigns: Sequence[Campaign], queries: Sequence[Query]) -> list[Note]:
    """Return one warning for each mechanism whose claims are weaker than planned because reports were not counted.

    The planned claim is the one that would hold if every device asked were counted, and if as many devices were counted
    as share a mechanism's noise. Claims for one query are compared. For released counts the warning states the first
    claim that is weaker, at the largest crowd that was asked and the greatest part of it that was counted; for each
    shuffled round, the claim at the smallest crowd.

    Parameters
    ----------
    section
        Values of ε at which δ is compared, and numbers of devices counted in the cell for views of released counts.
    campaigns, queries
        The campaigns of the run, and its closed queries. Budgets that ask only some devices at a query are left out:
        that not all of them are counted is as planned.
    """
    groups = _gathered([campaign for campaign in campaigns if not campaign.schedules], queries)
    return [note for alike, closed in groups for note in _weakened_claims(section, alike, closed)]


def _weakened_claims(section: Claims, alike: Sequence[Campaign], closed: Sequence[Query]) -> list[Note]:
    warnings = []
    for name, mechanism in alike[0].mechanisms.items():
        everywhere = CountedReports.of(name, alike, closed)
        if everywhere is None:
            continue
        crowd = max((crowd for crowd in section.crowds if crowd <= everywhere.asked), default=min(section.crowds))
        most = max(1, min(crowd, *everywhere.fewest))
        changes: dict[str, str] = {}
        for view in _views(mechanism, 1, [crowd]):
            if not isinstance(view, ReleasedDifferences | ReleasedCounts) or view.adjacency == "move" or not view.crowd:
                continue
            made = everywhere.claim(mechanism, replace(view, crowd=most))
            change = _weakened(made, _planned(mechanism, view, everywhere.asked), section.epsilons)
            if not everywhere.matched:
                why = "(the rounds counted different devices)"
            elif mechanism.rounds > 1:
                why = f"(a query counted {most:,} devices in all, not {crowd:,} in a cell)"
            else:
                why = f"(the noise of {everywhere.fewest[0]:,} devices only)"
            if change:
                changes.setdefault("released", f"{view.name} {why}: {change}")
        created = deployment_views(name, alike, closed, 1)
        shuffled = [(view, counted) for view, counted in created if isinstance(view, Shuffled)]
        for view, counted in sorted(shuffled, key=lambda pair: pair[0].devices):
            planned = replace(view, devices=max(view.devices, counted.asked))
            change = _weakened(counted.claim(mechanism, view), mechanism.claim(planned), section.epsilons)
            if change:
                among = f"(among {view.devices:,} reports instead of {planned.devices:,})"
                changes.setdefault(view.name, f"{view.name} {among}: {change}")
        if changes:
            where = f"mechanisms.{name}"
            campaign = "" if _only(alike) is None else f"campaigns.{_only(alike)}, "
            weaker = f"so its claims are weaker: {'; '.join(changes.values())}"
            why = _why_weaker(name, alike, closed, weaker, uncounted=everywhere.uncounted)
            warnings.append(warning("weaker_claims", f"{campaign}{where}: {why}", where))
    return warnings


def _why_weaker(
    mechanism: str, campaigns: Sequence[Campaign], queries: Sequence[Query], weaker: str, *, uncounted: bool
) -> str:
    """State why claims are weaker, which query counted the fewest reports other than none, and a remedy."""
    answers = answers_of_devices(queries).items()
    answered = [pair for (_, name), pairs in answers if name == mechanism for pair in pairs if any(pair[1].counted)]
    query, answer = min(answered, key=lambda pair: min(pair[1].counted))
    fewest = f"query {query.number} of campaign {query.campaign} counted the fewest, {min(answer.counted):,}"
    if not uncounted:
        remedy = "ask when more vehicles are there (start_s), or let more take part (population.participation)"
        return f"too few devices were asked, {weaker}; {fewest}: {remedy}"
    remedy = "wait longer for reports (deadline_s), lose fewer (channel)"
    deployment = next(campaign.deployment for campaign in campaigns if campaign.name == query.campaign)
    if len(answer.counted) > 1:
        alone = f"; {deployment.kind} servers cannot pair the rounds: none knows which devices answered every round"
        remedy += ", or pair the rounds (aggregation.paired)" if deployment.can_pair else alone
    return f"not all reports were counted, {weaker}; {fewest} of {max(answer.asked):,}: {remedy}"


def _planned(mechanism: LocalMechanism, view: ReleasedDifferences | ReleasedCounts, asked: int) -> Claim:
    """Return the claim that would hold if all devices asked were counted, and as many as the mechanism expects."""
    expected = mechanism.claim(view)
    if not isinstance(view, ReleasedCounts) or mechanism.rounds > 1:
        return expected
    counted = mechanism.claim(replace(view, counted=asked or None))
    return min(expected, counted, key=lambda claim: claim.delta(SMALL_EPSILON))


def _weakened(made: Claim, planned: Claim, epsilons: Sequence[float]) -> str:
    """Return in words by how much a claim is weaker than planned; empty if it is not weaker."""
    if "unknown" in {made.kind, planned.kind}:
        return "it is unknown" if planned.kind != "unknown" else ""
    parts = []
    if made.epsilon > planned.epsilon:
        parts.append(f"ε = {rounded_up(made.epsilon)} instead of {rounded_up(planned.epsilon)}")
    for epsilon in sorted(epsilons, key=lambda value: abs(value - 1.0)):
        now, then = made.delta(epsilon), planned.delta(epsilon)
        if now > max(then, NEGLIGIBLE):
            parts.append(f"δ({epsilon:g}) = {rounded_up(now)} instead of {rounded_up(then)}")
            break
    return ", ".join(parts)


def _views(mechanism: LocalMechanism, queries: int, crowds: Sequence[int], *, released: bool = True) -> Iterator[View]:
    for round_ in range(1, mechanism.rounds + 1):
        yield Report(round_, queries=queries)
    yield LinkedReports(queries=queries)
    for adjacency in ADJACENCIES if released else ():
        if mechanism.rounds > 1:  # one round alone has no differences to publish
            for crowd in crowds:
                yield ReleasedDifferences(crowd, queries=queries, adjacency=adjacency)
        for least in (None, *crowds):
            yield ReleasedCounts(least, queries=queries, adjacency=adjacency)


def _with_noise(name: str, campaign: Campaign, queries: Sequence[Query], repeats: int) -> Iterator[Claim]:
    """Yield the claims about what any number of colluding servers see of a campaign's counts with servers' noise."""
    deployment, mechanism = campaign.deployment, campaign.mechanisms[name]
    counted = CountedReports.of(name, [campaign], queries)
    if deployment.noise is None or counted is None or not any(counted.fewest):
        return
    servers = len(deployment.servers_of(mechanism))
    for adjacency in ADJACENCIES:
        for colluding in range(servers):
            view = ReleasedCounts(
                None, repeats, counted.fewest[0], colluding=colluding, servers=servers, adjacency=adjacency
            )
            claim = noisy_claim(mechanism, view, deployment.noise)
            claim = claim.about(view, mechanism=name, campaign=campaign.name)
            yield claim
            if adjacency == "enter_leave" and isinstance(mechanism, NoPrivacy) and not counted.uncounted:
                yield from add_remove_claim(claim)
