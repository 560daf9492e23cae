"""Advice for a city: the best design under each trust, its errors in three cells, and what each party learns.

Who is trusted decides which view must be private. A trusted server receives every cell and is trusted to publish only
what it says. With secret shares no server sees a report, and published sums are the view. A shuffler hides who sent a
report. With a server for each round no server sees two reports of a device. Without any trust one server sees all.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mechanisms.parameter import ParameterError, check_choice, check_integer, to_number
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.error_distribution import error_interval
from mechanisms.planning.families import FAMILIES, SLOW
from mechanisms.planning.plan import Plan, PlanRecord, plan
from mechanisms.planning.search import NEAR
from mechanisms.planning.target import Target
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.view import Adjacency

Period = Literal["day", "week", "trip"]
MINUTES = {"day": 1440, "week": 10_080}
CELLS = ("mean", "small", "night")
"""The cells for which errors are stated."""
# So many standard deviations below the expected number of answers lies the number that claims rely on.
FEWER = 5.0
# A run of a written design has at most so many devices in its cells, and at most so many queries.
MOST_INSIDE, MOST_ASKED = 200_000, 24
# A success this near to 1 is certainty.
CERTAIN = 1.0 - 1e-6

NOISY = "server_noise"
TRUSTED = ("gaussian_counts", "laplace_counts")
# Besides the slow ones, the paper's first attempt is never better than randomized response.
LOCAL = tuple(
    family.name
    for family in FAMILIES
    if family.kind != "no_privacy" and family.name not in {*SLOW, "anonymized_first_attempt"}
)
SUPPRESSED = ("sampling_privacy_suppressed", "sampling_privacy_binary_suppressed")
# What these publish is private only among devices that are certain to be in the cell.
CROWDED = ("sampling_privacy", "sampling_privacy_binary", "anonymized_cancelling")
TWO_ROUNDS = frozenset({*SUPPRESSED, *CROWDED})
ALONE = tuple(name for name in LOCAL if name not in CROWDED)
ONE_ROUND = tuple(name for name in ALONE if name not in TWO_ROUNDS)
# Answers about every cell, whose search takes a second. Behind a shuffler and for more cells than these, they err more
# than answers that name one cell.
EVERY_CELL = frozenset({"warner", "randomized_response", "sampled_response", "sampling_and_noise", "anonymized_local"})
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
    crowded : mapping of str to sequence of str
        By view, families whose claims need devices that are certain to be in the cell.
    """

    key: str
    name: str
    view: str
    families: tuple[str, ...]
    crowded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def parties(self, colluding: int) -> int | None:
        """Return the least number of parties of which so many may collude; None if no number is enough."""
        match self.key:
            case "server":
                return None if colluding else 1
            case "rounds":
                return None if colluding > 1 else 2
            case "nobody":
                return 1
        return max(2, colluding + 1)


TRUSTS = (
    Trust("server", "One trusted server, which receives every zone", "released", TRUSTED),
    Trust("noise", "Secret shares, and noise by each operator", "released", (NOISY,)),
    Trust("shares", "Secret shares: operators see sums only", "released", ALONE, {"released": CROWDED}),
    Trust(
        "shuffler", "A shuffler before the server", "shuffled", ONE_ROUND, {"released_counts": ("sampling_privacy",)}
    ),
    Trust("rounds", "One server for each of two rounds", "report", SUPPRESSED[::-1], {"report": CROWDED[:2]}),
    Trust("nobody", "Nobody: one server sees all reports", "linked_reports", LOCAL),
)
"""Trusts from the most to the least that must be trusted."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A city, a budget of a person and a period, and the parties.

    Parameters
    ----------
    people, zones : int
        Devices, and cells.
    answers : int
        Answers of a device in a day.
    epsilon : float
        Budget of a device in a period.
    period : {"day", "week", "trip"}
    trip_min : float
        Length of a trip, minutes.
    delta : float, optional
        By default the power of ten at or below a tenth of 1/people.
    parties, colluding : int
        Independent operators, and how many of them may pool what they receive; 0 if they are trusted.
    participation, loss : float
        Shares: of devices that take part, and of answers that are lost.
    occupancy : (mean, small, night) of float, optional
        Devices in a mean, a small and a night-time cell; by default people/zones, a tenth and a twentieth of it.
    adjacency : {"move", "enter_leave"}

    Raises
    ------
    ParameterError
        If a value is out of range.
    """

    people: int
    zones: int
    answers: int = 24
    epsilon: float = 1.0
    period: Period = "day"
    trip_min: float = 30.0
    delta: float | None = None
    parties: int = 2
    colluding: int = 1
    participation: float = 1.0
    loss: float = 0.0
    occupancy: tuple[float, float, float] | None = None
    adjacency: Adjacency = "move"

    def __post_init__(self) -> None:
        """Check the values that no target checks, and fill in δ and the occupancies."""
        check_choice("per", self.period, ("day", "week", "trip"))
        check_integer("people", self.people, at_least=1)
        check_integer("zones", self.zones, at_least=1)
        check_integer("answers", self.answers, at_least=1, at_most=86_400)
        check_integer("parties", self.parties, at_least=1, at_most=254)
        check_integer("colluding", self.colluding, at_least=0, at_most=self.parties)
        for name, value, valid in (
            ("participation", self.participation, 0.0 < to_number(self.participation) <= 1.0),
            ("loss", self.loss, 0.0 <= to_number(self.loss) < 1.0),
            ("trip_min", self.trip_min, 0.0 < to_number(self.trip_min) < math.inf),
        ):
            if not valid:
                raise ParameterError(name, "must be a share" if name != "trip_min" else "must be above 0", value)
        if self.delta is None:
            object.__setattr__(self, "delta", 10.0 ** -math.ceil(math.log10(10 * self.people)))
        if self.occupancy is None:
            mean = self.people / self.zones
            object.__setattr__(self, "occupancy", (mean, mean / 10.0, mean / 20.0))

    @property
    def queries(self) -> int:
        """T, answers of a device in the period."""
        return max(1, math.ceil(self.answers * MINUTES.get(self.period, self.trip_min) / MINUTES["day"] - 1e-9))

    def received(self, messages: int = 1) -> float:
        """Return the share of the devices whose answer to a query arrives, sent in so many messages."""
        return self.participation * (1.0 - self.loss) ** messages

    @property
    def counts(self) -> tuple[int, ...]:
        """Devices in the mean, the small and the night-time cell, and in a cell of a run."""
        cells = tuple(min(self.people, max(1, round(count))) for count in self.occupancy or ())
        return (*cells, max(1, min(cells[0], MOST_INSIDE // self.zones, self.people // self.zones)))

    def target(self, share: float, **changed: object) -> Target:
        """Return the target among the share of devices whose answers arrive; claims rely on nearly as many."""
        devices = max(1, round(self.people * share))
        fewer = math.floor(devices - FEWER * math.sqrt(self.people * share * (1.0 - share)))
        target = Target(
            cells=self.zones,
            population=devices,
            occupancy=min(devices, max(1, round(self.counts[0] * share))),
            epsilon=self.epsilon,
            delta=self.delta or 0.0,
            queries=self.queries,
            adjacency=self.adjacency,
            batch=None if share == 1.0 else max(1, fewer),
        )
        return replace(target, **changed)  # type: ignore[arg-type]  # fields of a target


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
    parties : int, optional
        Parties with which it holds; None if it holds with none.
    plan : Plan, optional
        None if no mechanism meets the target.
    crowd : int, optional
        Devices that must be certain to be in the cell; None for a claim that holds for any others.
    errors : mapping of str to float
        Root mean square errors in the cells, in vehicles.
    percents : mapping of str to float
        The errors as per cents of the cells.
    better_than_zero : mapping of str to bool
        Whether an estimate of 0 has a greater error.
    learns : sequence of Learned
    least_answers : int
        Answers to a query that claims rely on.
    run : mapping of str to float
        For a run of the design: its count of each cell, error, and success of guesses in one query whether a device is
        in its cell or outside.
    """

    trust: str
    name: str
    holds: bool
    parties: int | None
    plan: Plan | None = None
    crowd: int | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    percents: Mapping[str, float] = field(default_factory=dict)
    better_than_zero: Mapping[str, bool] = field(default_factory=dict)
    learns: Sequence[Learned] = ()
    least_answers: int = 0
    run: Mapping[str, float] = field(default_factory=dict)

    @property
    def useful(self) -> bool:
        """Whether it errs less than an estimate of 0 in a mean cell."""
        return self.plan is not None and self.better_than_zero["mean"]


def advise(
    question: Question, trusts: Sequence[str] = (), *, progress: Callable[[float], object] = lambda _: None
) -> list[Advised]:
    """Return the best designs for a question under each trust: one that holds for any others, then one in a crowd.

    Parameters
    ----------
    question : Question
    trusts : sequence of str
        Keys of trusts; all by default.
    progress : callable
        Is called after each plan with its share of the work; the shares add up to 1.

    Raises
    ------
    ParameterError
        If the target is out of range.
    """
    wanted = [trust for trust in TRUSTS if not trusts or trust.key in trusts]
    total = sum(len(trust.families) + sum(map(len, trust.crowded.values())) for trust in wanted)
    rows: list[Advised] = []

    def progressed(share: float) -> None:
        progress(share / total)

    for trust in wanted:
        needed = trust.parties(question.colluding)
        parties = max(needed or 1, question.parties)
        about = Advised(trust.key, trust.name, needed is not None and needed <= question.parties, needed and parties)
        share = question.received(parties if trust.key in {"noise", "shares"} else 1)
        target = question.target(share, view=trust.view)
        if trust.key == "noise":
            target = replace(target, servers=parties, honest=parties - question.colluding)

        if needed is None and trust.key == "rounds":
            rows.append(about)
            continue
        alone = _best(question, target, share, trust.families, progressed)
        rows.append(about if alone is None else _row(question, about, alone, target, share))
        certain = max(1, round(question.counts[2] * share))
        for view, names in trust.crowded.items():
            crowd = replace(target, view=view, crowd=certain)
            limit = math.inf if alone is None else alone.std_error
            found = _best(question, crowd, share, names, progressed, limit)
            if found is not None and (alone is None or found.std_error < 0.99 * alone.std_error):
                rows.append(_row(question, replace(about, crowd=certain), found, crowd, share))
    return rows


def _best(
    question: Question,
    target: Target,
    share: float,
    names: Sequence[str],
    progressed: Callable[[float], object],
    limit: float = math.inf,
) -> Plan | None:
    """Return the plan of least error whose claim relies on no crowd but the target's; None if none meets the target."""
    left_out = TWO_ROUNDS if question.loss else frozenset()  # differences need the answers of both rounds
    if target.view == "shuffled" and question.zones > FEW_CELLS:
        left_out |= EVERY_CELL
    names = [name for name in names if name not in left_out]
    least, counts = None, [round(count * share) for count in question.counts]
    # The families of one server a round are planned one by one: the first is nearly always the better one.
    for some in [[name] for name in names] if target.view == "report" else [names] if names else []:
        within = limit if least is None else min(limit, NEAR * least.std_error)
        work = {"limit": within, "occupancies": counts, "progress": progressed}
        made = plan(target, some, claims=False, best_only=True, **work)
        found = made.least_without_crowd
        if found is not None and (least is None or found.std_error < least.std_error):
            least = found
    return least


def _row(question: Question, about: Advised, made: Plan, target: Target, share: float) -> Advised:
    """Return the row of a plan that meets its target.

    The estimate of those whose answers arrive, a share p, is scaled up: whether a device is one of them adds the
    binomial variance Y(1 − p)/p to σ²/p².
    """
    counts = question.counts
    errors = [
        math.hypot(error / share, math.sqrt(count * (1.0 - share) / share))
        for error, count in zip(made.errors, counts, strict=True)
    ]
    *learned, played = _learned(question, about, made, target)
    low, high = error_interval(
        errors[-1], cells=question.zones * min(question.queries, MOST_ASKED), excess=made.excess_kurtosis
    )
    return replace(
        about,
        plan=made,
        errors=dict(zip(CELLS, errors, strict=False)),
        percents={cell: 100.0 * error / count for cell, error, count in zip(CELLS, errors, counts, strict=False)},
        better_than_zero={cell: error < count for cell, error, count in zip(CELLS, errors, counts, strict=False)},
        learns=learned,
        least_answers=target.counted,
        run={"count": counts[-1], "error": errors[-1], "low": low, "high": high, "success": played.success},
    )


def _learned(question: Question, about: Advised, made: Plan, target: Target) -> Iterator[Learned]:
    """Yield what one party, a coalition and readers learn; then the same of the strongest party in one query.

    In the last one a device is in its cell or outside every cell, as in the attack "known others".
    """
    parties, many = about.parties or 2, max(2, question.colluding)
    suppressed = about.trust == "rounds" and made.release is not None
    seen = replace(target, k=made.release["k"]) if suppressed and made.release else target

    def learned(party: str, members: int, view: str, hidden: int = 0, **changed: Any) -> Learned:
        mechanism = made.mechanism
        noisy = about.trust == "noise" and view == "released"
        if noisy:
            mechanism = replace(mechanism, honest=hidden)
        whole: dict[str, Any] = {"crowd": None, "k": None} if view in {"linked_reports", "shuffled"} else {}
        candidate = Candidate(mechanism, replace(seen, view=view, **whole, **changed), {})
        claim = Claim.weakest(candidate.bounds)
        epsilon = claim.epsilon_at(target.delta, precision=1e-3)
        if epsilon > question.epsilon and claim.delta(question.epsilon) <= target.delta:
            epsilon = question.epsilon  # the bisection ends above it
        claim = claim.listed(*sorted({0.0, target.epsilon or 0.0}))
        success = (1.0 + claim.delta(0.0)) / 2.0
        return Learned(party, members, epsilon, success, claim.delta_kind == "exact", success >= CERTAIN, claim)

    linked = "linked_reports"
    published = linked if about.trust == "nobody" and made.mechanism.rounds > 1 else "released"
    if about.trust in {"server", "nobody"}:
        yield learned("the server", 1, linked)
    else:
        yield learned("one operator", 1, target.view, parties - 1)
        apart = many < parties and about.trust != "rounds"
        yield learned(f"{many} who collude", many, target.view if apart else linked, parties - many)
    yield learned("readers", 0, published, parties)
    hidden = parties - question.colluding
    yield learned("", question.colluding, target.view, hidden, queries=1, adjacency="enter_leave")
