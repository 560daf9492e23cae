"""What one target costs under each trust, and the least batch or crowd with which a mechanism meets privacy and error.

Who is trusted decides which view must be private. A trusted server receives every cell and is trusted to publish only
what it says; with secret shares no server sees a report, and published sums are the view; a shuffler hides who sent a
report; with a server for each round no server sees two reports of a device; without any trust one server sees all.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mechanisms.planning.families import FAMILIES, families_named
from mechanisms.planning.plan import Plan, Planning, PlanRecord, plan
from mechanisms.planning.target import Target

Number = Literal["batch", "crowd", "honest"]
# The search for a least number ends when its interval is this narrow, as a share.
PRECISION = 0.01
# Families whose search takes seconds and which are never better than a simpler family of the same views.
SLOW = frozenset({"anonymized_deniable", "sampling_privacy_refreshed"})
NOISY = "server_noise"
TRUSTED = frozenset(family.name for family in FAMILIES if family.kind == "no_privacy" and family.name != NOISY)
LOCAL = tuple(family.name for family in FAMILIES if family.name not in TRUSTED | SLOW | {NOISY})
TWO_ROUNDS = ("sampling_privacy", "sampling_privacy_binary")


@dataclass(frozen=True)
class Trust:
    """Who is trusted, and the views that must then meet the target.

    Parameters
    ----------
    name : str
        Who is trusted with what, in words.
    views : mapping of str to sequence of str
        For each view, the families whose reports that party sees in this way.
    """

    name: str
    views: dict[str, tuple[str, ...]]


TRUSTS = (
    Trust("a trusted server, which receives every device's cell", {"released": tuple(TRUSTED)}),
    Trust("secret shares and noise by each server: some of them do not collude", {"released": (NOISY,)}),
    Trust("secret shares: not all servers collude, and only sums are seen", {"released": LOCAL}),
    Trust(
        "a shuffler, which mixes whole reports",
        # A shuffler of both rounds shows the counts of both rounds.
        {
            "shuffled": tuple(name for name in LOCAL if not name.startswith(("sampling_privacy", "anonymized_"))),
            "released_counts": TWO_ROUNDS[:1],
        },
    ),
    Trust(
        "one server a round, which do not collude",
        {"report": (*TWO_ROUNDS, "sampling_privacy_suppressed", "sampling_privacy_binary_suppressed")},
    ),
    Trust("nobody: one server sees all reports of a device", {"linked_reports": LOCAL}),
)
"""Trusts from the most to the least that must be trusted."""


@dataclass(frozen=True)
class TrustCost(PlanRecord):
    """What a target costs under one trust.

    Parameters
    ----------
    trust : str
    view : str, optional
        View of the least plan; None if no mechanism meets the target.
    best : Plan, optional
        The plan of least error, or of least ε for an error target; None if it errs no less than an estimate of 0.
    without_crowd : Plan, optional
        The best plan whose claim relies on no crowd beyond the target's.
    least : Plan, optional
        The plan of least error, or of least ε for an error target, of use or not.
    """

    trust: str
    view: str | None
    best: Plan | None
    without_crowd: Plan | None
    least: Plan | None


def compare_trusts(target: Target, *, progress: Callable[[float], object] = lambda _: None) -> list[TrustCost]:
    """Return what a target costs under each trust; the target's own view and k are not used.

    Parameters
    ----------
    target : Target
        Its adjacency, batch and crowd hold for every trust.
    progress : callable
        Is called after each plan with its share of the work; the shares add up to 1.
    """
    costs = []
    total = sum(len(names) for trust in TRUSTS for names in trust.views.values())
    for trust in TRUSTS:
        plans: dict[str, Plan] = {}
        without: dict[str, Plan] = {}
        for view, names in trust.views.items():
            crowd = target.crowd if view != "linked_reports" and target.honest else None
            part = len(names) / total
            made = plan(
                replace(target, view=view, k=None, crowd=crowd),
                names,
                claims=False,
                best_only=True,
                progress=lambda share, part=part: progress(part * share),  # type: ignore[misc]  # bound now
            )
            if made.least is not None:
                plans[view] = made.least
            if made.best_without_crowd is not None:
                without[view] = made.best_without_crowd
        seen = min(plans, key=lambda view: _cost(plans[view], target), default=None)
        least = None if seen is None else plans[seen]
        alone = min(without.values(), key=lambda each: _cost(each, target), default=None)
        costs.append(TrustCost(trust.name, seen, least if least and least.better_than_zero else None, alone, least))
    return costs


def _cost(made: Plan, target: Target) -> float:
    """Return what is compared: the error, or ε for an error target."""
    return made.std_error if target.error is None else made.epsilon


@dataclass(frozen=True)
class LeastNumber(PlanRecord):
    """The least number with which one mechanism meets a privacy target and an error.

    Parameters
    ----------
    mechanism : str
    least : int, optional
        At most 1 % above the least one; None if no number up to the greatest meets both.
    std_error : float
        The error there, or at the greatest number.
    """

    mechanism: str
    least: int | None
    std_error: float


def find_least(
    target: Target,
    *,
    error: float,
    number: Number,
    mechanisms: Sequence[str] = (),
    progress: Callable[[float], object] = lambda _: None,
) -> list[LeastNumber]:
    """Return the least batch, crowd in the cell or number of honest servers that meets privacy and error.

    Parameters
    ----------
    target : Target
        With the privacy to meet. For a batch, its population is the greatest one tried, and all of the batch answer.
        For a crowd, its occupancy is the greatest one tried; for honest servers, all of its servers.
    error : float
        Root mean square error allowed for a cell of the occupancy, in vehicles.
    number : {"batch", "crowd", "honest"}
    mechanisms : sequence of str
        Names of families or kinds; by default all but those whose search takes long.
    progress : callable
        Is called after each mechanism with its share of the work; the shares add up to 1.

    Raises
    ------
    ParameterError
        If a name is neither a family nor a kind.
    """
    named = families_named(tuple(mechanisms)) if mechanisms else [f for f in FAMILIES if f.name not in SLOW]

    def planned(name: str, at: int) -> Planning:
        if number == "batch":
            changed = replace(target, population=at, occupancy=target.expected, batch=None)
        elif number == "crowd":
            changed = replace(target, crowd=at)
        else:
            changed = replace(target, honest=at)
        return plan(changed, (name,), claims=False)

    least_numbers = []
    for family in named:
        greatest = {"batch": target.population, "crowd": max(1, target.expected), "honest": target.servers}[number]
        smallest = max(1, target.expected) if number == "batch" else 1
        least, reached = _bisect(
            lambda at, name=family.name: min(  # type: ignore[misc]  # the default binds the loop's variable
                (made.std_error for made in planned(name, at).plans if made.meets), default=math.inf
            ),
            smallest,
            greatest,
            error,
        )
        least_numbers.append(LeastNumber(family.name, least, reached))
        progress(1 / len(named))
    return least_numbers


def _bisect(error_at: Callable[[int], float], low: int, high: int, error: float) -> tuple[int | None, float]:
    """Return the least number in low…high with at most this error, to 1 %, and its error."""
    reached = error_at(high)
    if reached > error:
        return None, reached
    if error_at(low) <= error:
        return low, error_at(low)
    while high - low > max(1, PRECISION * low):
        middle = round(math.sqrt(low * high)) if high > 4 * low else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        at = error_at(middle)
        if at <= error:
            high, reached = middle, at
        else:
            low = middle
    return high, reached
