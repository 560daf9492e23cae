"""Advice for a city: the best design under each trust, its errors in three cells, and what each party learns.

Who is trusted decides which view must be private. A trusted server receives every cell and is trusted to publish only
what it says. With secret shares no server sees a report, and published sums are the view. A shuffler hides who sent a
report. With a server for each round no server sees two reports of a device. Without any trust one server sees all.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from mechanisms.parameter import ParameterError, to_number
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.error_distribution import error_interval
from mechanisms.planning.families import FAMILIES, SLOW
from mechanisms.planning.plan import Plan, PlanRecord, plan
from mechanisms.planning.target import Target
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.view import Adjacency

MINUTES = {"day": 1440.0, "week": 10_080.0}
CELLS = ("mean", "small", "night")
"""The cells for which errors are stated."""
# So many standard deviations below the expected number of answers lies the number that claims rely on.
FEWER = 5.0
# A run of a design has at most so many devices in its cells and, without a budget over all queries, so many queries.
MOST_INSIDE, MOST_ASKED = 200_000, 24
# A success this near to 1 is certainty.
CERTAIN = 1.0 - 1e-6

# Besides the slow ones, the paper's first attempt is left out, which is never better than randomized response.
_LEFT_OUT = {*SLOW, "anonymized_first_attempt", *(family.name for family in FAMILIES if family.kind == "no_privacy")}
LOCAL = tuple(family.name for family in FAMILIES if family.name not in _LEFT_OUT)
# What these publish is private only among devices that are certain to be in the cell.
CROWDED = ("sampling_privacy", "sampling_privacy_binary", "anonymized_cancelling")
SUPPRESSED = ("sampling_privacy_suppressed", "sampling_privacy_binary_suppressed")
ALONE = tuple(name for name in LOCAL if name not in CROWDED)
# Behind a shuffler, answers about every cell err more than answers that name one of two cells or more.
EVERY_CELL = {"warner", "randomized_response", "sampled_response", "sampling_and_noise", "anonymized_local"}
ONE_ROUND = tuple(name for name in ALONE if name not in {*SUPPRESSED, *EVERY_CELL})
# For more cells, answers that name a cell in one of two rounds are not the best, and their search takes seconds.
FEW_CELLS = 10


@dataclass(frozen=True)
class Trust:
    """Who is trusted, and the view that must then meet the target.

    Parameters
    ----------
    key, name : str
        Its name in JSON, and in words.
    view : str
        The view of the parties that are not trusted.
    families : sequence of str
        Families whose claims hold for any others.
    crowded : sequence of str
        Families whose claims need devices that are certain to be in the cell.
    """

    key: str
    name: str
    view: str
    families: tuple[str, ...]
    crowded: tuple[str, ...] = ()

    def parties(self, colluding: int) -> int:
        """Return the least number of parties of which so many may collude; 0 if no number is enough."""
        least = {"server": 0 if colluding else 1, "rounds": 0 if colluding > 1 else 2, "nobody": 1}
        return least.get(self.key, max(2, colluding + 1))


TRUSTS = (
    Trust("server", "one trusted server, which receives every zone", "released", ("gaussian_counts", "laplace_counts")),
    Trust("noise", "secret shares, and noise by each operator", "released", ("server_noise",)),
    Trust("shares", "secret shares: operators see only sums", "released", ALONE, CROWDED),
    Trust("shuffler", "a shuffler before the server", "shuffled", ONE_ROUND, CROWDED[:1]),
    Trust("rounds", "one server for each of two rounds", "report", SUPPRESSED, CROWDED[:2]),
    Trust("nobody", "nobody: one server sees all answers", "linked_reports", LOCAL),
)
"""Trusts from the most to the least that must be trusted."""
_WHOLE = {"people": (1, 10**12), "zones": (1, 10**6), "answers_per_day": (1, 86_400), "parties": (1, 254)}
_SHARES = {"participation": (1e-9, 1.0), "loss": (0.0, 0.999)}
LIMITS = {**_WHOLE, "epsilon": (1e-6, 1e6), "trip_min": (1e-3, 1e6), **_SHARES}
"""Least and greatest values of what is asked."""


@dataclass(frozen=True, kw_only=True)
class CityQuestion:
    """A city, a budget of a person and a period, and the parties.

    Parameters
    ----------
    people : VEHICLES
        Vehicles of the city; with a profile by default the greatest number in an hour.
    zones : ZONES
        Zones in which vehicles are counted.
    answers_per_day : ANSWERS
        Answers of a vehicle in a day; 24 by default.
    epsilon : ε
        Budget of a vehicle in a period; 1 by default.
    per : day|week|trip
        The period; a day by default.
    trip_min : MINUTES
        Length of a trip; 30 by default.
    delta : δ
        By default the power of ten at or below a tenth of 1/people.
    parties : OPERATORS
        Independent operators; 2 by default.
    colluding : OPERATORS
        How many of them may pool what they receive; 1 by default, and 0 if they are trusted.
    participation : SHARE
        Share of the vehicles that take part.
    loss : SHARE
        Share of the messages that are lost; a shared answer is one message to each operator.
    occupancy : (mean, small, night) of float
        Vehicles in a mean, a small and a night-time zone; by default people/zones, a tenth and a twentieth of it.
    adjacency : move|enter_leave
        The change of a vehicle to hide: where it was (by default), or whether it was in one zone or outside.

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    people: int
    zones: int
    answers_per_day: int = 24
    epsilon: float = 1.0
    per: Literal["day", "week", "trip"] = "day"
    trip_min: float = 30.0
    delta: float = math.nan
    parties: int = 2
    colluding: int = 1
    participation: float = 1.0
    loss: float = 0.0
    occupancy: tuple[float, float, float] = (math.nan,) * 3
    adjacency: Adjacency = "move"

    def __post_init__(self) -> None:
        """Check the values, and fill in δ and the occupancies."""
        for name, (least, most) in {**LIMITS, "colluding": (0, self.parties)}.items():
            if not least <= to_number(getattr(self, name)) <= most:
                raise ParameterError(name, f"must be in {least:g}..{most:g}", getattr(self, name))
        if math.isnan(self.delta):
            object.__setattr__(self, "delta", 10.0 ** -math.ceil(math.log10(10 * self.people)))
        if math.isnan(self.occupancy[0]):
            mean = self.people / self.zones
            object.__setattr__(self, "occupancy", (mean, mean / 10.0, mean / 20.0))
        if self.occupancy[0] * self.zones > self.people * (1.0 + 1e-9):
            raise ParameterError("occupancy", "must be at most people/zones", self.occupancy[0])

    @property
    def queries(self) -> int:
        """T, answers of a device in the period."""
        return max(1, math.ceil(self.answers_per_day * MINUTES.get(self.per, self.trip_min) / MINUTES["day"] - 1e-9))

    @property
    def expected_exposed(self) -> float:
        """δ times the vehicles that take part."""
        return self.delta * self.people * self.participation

    @property
    def counts(self) -> tuple[int, ...]:
        """Devices in the mean, the small and the night-time cell, and in a cell of a run."""
        cells = [min(self.people, max(1, round(count))) for count in self.occupancy]
        return (*cells, max(1, min(cells[0], MOST_INSIDE // self.zones, self.people // self.zones)))


@dataclass(frozen=True)
class Learned(PlanRecord):
    """What one party, a coalition or a reader learns about one device in a period.

    Parameters
    ----------
    party : str
    members : int
        Parties in it; 0 for readers.
    epsilon : float
        At the question's δ; infinite if none is known.
    success : float
        Best success of telling one history of the device from another, at even odds: (1 + δ(0))/2.
    exact : bool
        Whether the success is reached; else it is an upper bound.
    everything : bool
        Whether it is certain to be right.
    claim : Claim
        With δ listed at 0 and at the question's ε.
    """

    left_out = frozenset({"claim"})

    party: str
    members: int
    epsilon: float
    success: float
    exact: bool
    everything: bool
    claim: Claim


@dataclass(frozen=True)
class Advised(PlanRecord):
    """A design under one trust.

    Parameters
    ----------
    trust, name : str
        Key and words of the trust.
    holds : bool
        Whether the trust holds with the question's parties.
    parties : int
        Parties with which it holds, 0 if with none.
    plan : Plan, optional
        None if no mechanism meets the target.
    crowd : int, optional
        Devices that must be certain to be in the cell; None for a claim that holds for any others.
    cells : mapping of str to mapping
        For each of `CELLS` its count, the root mean square error in vehicles and in per cent, and whether that is less
        than the error of an estimate of 0 (`better_than_zero`).
    learns : sequence of Learned
    least_answers : int
        Answers to a query that claims rely on.
    run : mapping of str to float
        Of a run of the design: queries, count of each cell, error, ends of its 95 % interval, and best success of a
        guess in one query whether a device is in its cell or outside.
    """

    trust: str
    name: str
    holds: bool
    parties: int
    plan: Plan | None = None
    crowd: int | None = None
    cells: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    learns: Sequence[Learned] = ()
    least_answers: int = 0
    run: Mapping[str, float] = field(default_factory=dict)


def advise(
    question: CityQuestion, trusts: Sequence[str] = (), *, progress: Callable[[float], object] = lambda _: None
) -> list[Advised]:
    """Return the best design under each trust: one that holds for any others, then a better one in a certain crowd.

    Parameters
    ----------
    question : CityQuestion
    trusts : sequence of str
        Keys of trusts; all by default.
    progress : callable
        Is called after each plan with its share of the work; the shares add up to at most 1.

    Raises
    ------
    ParameterError
        If the target is out of range.
    """
    rows: list[Advised] = []
    wanted = [trust for trust in TRUSTS if not trusts or trust.key in trusts]
    for trust in wanted:
        needed = trust.parties(question.colluding)
        parties = max(needed, question.parties)
        about = Advised(trust.key, trust.name, 0 < needed <= question.parties, needed and parties)
        share = question.participation * (1.0 - question.loss) ** (parties if trust.key in {"noise", "shares"} else 1)
        target = _target(question, trust.view, share)
        if trust.key == "noise":
            target = replace(target, servers=parties, honest=parties - question.colluding)
        counts = [round(count * share) for count in question.counts]
        best = partial(_best, question, counts, progress=lambda part: progress(part / (2 * len(wanted))))
        possible = trust.key != "rounds" or needed > 0
        alone = best(target, trust.families) if possible else None
        rows.append(about if alone is None else _row(question, about, alone, target, share))
        if trust.crowded and possible:
            limit = math.inf if alone is None else 0.99 * alone.std_error
            view = "released_counts" if trust.key == "shuffler" else trust.view
            target = replace(target, view=view, crowd=max(1, counts[2]))
            within = best(target, trust.crowded, limit=limit)
            if within is not None and within.std_error < limit:
                rows.append(_row(question, replace(about, crowd=target.crowd), within, target, share))
    return rows


def _best(
    question: CityQuestion, counts: Sequence[int], target: Target, names: Sequence[str], **how: Any
) -> Plan | None:
    """Return the plan of least error that relies on no crowd but the target's; None if none meets the target.

    Where answers are lost, mechanisms of two rounds are left out: they need both answers of a device.
    """
    slow = target.view == "report" and question.zones > FEW_CELLS
    left_out = {*CROWDED, *SUPPRESSED} if question.loss else {*SUPPRESSED[:1]} if slow else set()
    named = [name for name in names if name not in left_out]
    if not named:
        return None
    return plan(target, named, claims=False, best_only=True, occupancies=counts, **how).least_without_crowd


def _target(question: CityQuestion, view: str, share: float) -> Target:
    """Return the target among the devices whose answers arrive, a share; claims rely on nearly as many."""
    devices = max(1, round(question.people * share))
    fewer = math.floor(devices - FEWER * math.sqrt(question.people * share * (1.0 - share)))
    batch = None if share == 1.0 else max(1, fewer)
    occupancy = min(devices, max(1, round(question.counts[0] * share)))
    same = {name: getattr(question, name) for name in ("epsilon", "delta", "queries", "adjacency")}
    return Target(cells=question.zones, population=devices, batch=batch, occupancy=occupancy, view=view, **same)


def _row(question: CityQuestion, about: Advised, made: Plan, target: Target, share: float) -> Advised:
    """Return the row of a plan that meets its target.

    The estimate of those whose answers arrive, a share p, is scaled up: whether a device is one of them adds the
    binomial variance Y(1 − p)/p to σ²/p².
    """
    cells = []
    for error, count in zip(made.errors, question.counts, strict=True):
        scaled = math.hypot(error / share, math.sqrt(count * (1.0 - share) / share))
        better = {"percent": 100.0 * scaled / count, "better_than_zero": scaled < count}
        cells.append({"count": count, "error": scaled, **better})
    run = cells.pop()
    *learned, played = _learned(question, about, made, target)
    queries = question.queries if made.budget else min(question.queries, MOST_ASKED)
    # The same vehicles take part in every query of a run, so that its errors are of as many draws as there are zones.
    draws = question.zones * (queries if question.participation == 1.0 else 1)
    low, high = error_interval(run["error"], cells=draws, excess=made.excess_kurtosis)
    run |= {"queries": queries, "low": low, "high": high, "success": played.success}
    of_cells = dict(zip(CELLS, cells, strict=True))
    return replace(about, plan=made, cells=of_cells, learns=learned, least_answers=target.counted, run=run)


def _learned(question: CityQuestion, about: Advised, made: Plan, target: Target) -> Iterator[Learned]:
    """Yield what one party, a coalition and readers learn; then the same of the strongest party in one query.

    In the last one a device is in its cell or outside every cell, as in the attack "known others".
    """
    parties, many = about.parties, max(2, question.colluding)
    seen = replace(target, k=made.release["k"]) if about.trust == "rounds" and made.release else target

    def learned(party: str, members: int, view: str, hidden: int = 0, **changed: Any) -> Learned:
        mechanism = made.mechanism
        if about.trust == "noise" and view == "released":
            mechanism = replace(mechanism, honest=hidden)
        whole: dict[str, Any] = {"crowd": None, "k": None} if view in {"linked_reports", "shuffled"} else {}
        claim = Claim.weakest(Candidate(mechanism, replace(seen, view=view, **whole, **changed), {}).bounds)
        epsilon = claim.epsilon_at(target.delta, precision=1e-3)
        if epsilon > question.epsilon and claim.delta(question.epsilon) <= target.delta:
            epsilon = question.epsilon  # the bisection ends above it
        claim = claim.listed(*sorted({0.0, question.epsilon}))
        success = (1.0 + claim.delta(0.0)) / 2.0
        return Learned(party, members, epsilon, success, claim.delta_kind == "exact", success >= CERTAIN, claim)

    linked = "linked_reports"
    if about.trust in {"server", "nobody"}:
        yield learned("the server", 1, linked)
    else:
        yield learned("one operator", 1, target.view, parties - 1)
        apart = many < parties and about.trust != "rounds"
        yield learned(f"{many} who collude", many, target.view if apart else linked, parties - many)
    published = linked if about.trust == "nobody" and made.mechanism.rounds > 1 else "released"
    yield learned("readers", 0, published, parties)
    yield learned("", 0, target.view, parties - question.colluding, queries=1, adjacency="enter_leave")
