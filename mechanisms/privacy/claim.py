"""Privacy claims: what is proved about a view, as an exact value, a bound, infinite or unknown."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, Literal, NamedTuple

from mechanisms.parameter import ParameterError, check_epsilon

# e^ε overflows a double a little above this; there δ comes only from outputs that reveal the truth with certainty.
LARGEST_EPSILON = 700.0
# The same for n·e^ε with a crowd of n devices.
LARGEST_CROWD_EPSILON = 600.0

ClaimKind = Literal["exact", "bound", "infinite", "unknown"]

VIEW_PARAMETERS = ("adjacency", "queries", "crowd", "k", "colluding", "servers")
"""Fields of a claim that a view may have; of shuffled reports the crowd is their number."""
SUBJECT = ("campaign", "campaigns", "coalition", "mechanism", "view", "release", *VIEW_PARAMETERS)
"""Fields that state what a claim is about; no two claims of a table have the same values."""

# A δ at least this large counts as 1.
_NEARLY_ONE = 1 - 1e-12


class Reason(StrEnum):
    """Why published values have no better claim than a device's linked reports."""

    ROUNDS_DIFFER = "rounds_differ"
    SERVERS_COMBINE = "servers_combine"


class Limit(NamedTuple):
    """What a claim says of its observer.

    Parameters
    ----------
    code : str
        ``unknown``: nothing is proved. ``unlimited``: nothing better than δ = 1 is proved. ``everything``: δ = 1 is
        reached. ``constant``: δ is the same at every ε. ``except``: ε holds except with probability δ. ``never``: no
        finite ε holds (none is known, of a claim of kind ``bound``), and no δ is known. ``always``: ε holds at δ = 0.
    epsilon, delta : float
        The limit; NaN where the code states it.
    """

    code: str
    epsilon: float = math.nan
    delta: float = math.nan


def subject_of_view(view: Any) -> dict[str, Any]:
    """Return the name and the parameters of a view, by the fields of a claim."""
    devices = getattr(view, "devices", None)
    return {
        "view": view.name,
        **{name: getattr(view, name, None) for name in VIEW_PARAMETERS},
        **({} if devices is None else {"crowd": devices}),
    }


@dataclass(frozen=True, slots=True)
class ConstantDelta:
    """A δ that is the same for every ε: the probability that the view reveals the truth with certainty."""

    value: float

    def __call__(self, epsilon: float) -> float:  # noqa: ARG002 - a curve takes an ε, even a flat one
        """Return the constant."""
        return self.value


# Values of ε of the first of two steps; they do not depend on the ε of both, so the bound falls with ε.
FIRST_STEPS = (0.0, *(10.0 ** (exponent / 12.0) for exponent in range(-36, 25)))


@dataclass(frozen=True, slots=True)
class TwoStepDelta:
    """A bound of δ(ε) of a move, from the curve of leaving or entering a cell.

    A move is leaving one cell for outside, then entering the other. If the first step is bounded by (ε₁, δ₁) and the
    second by (ε₂, δ₂), the move is bounded by (ε₁ + ε₂, δ₁ + e^ε₁·δ₂) (group privacy). The least over several ε₁ is
    taken, with the rest of ε for the second step.
    """

    step: Callable[[float], float]

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        firsts = [first for first in FIRST_STEPS if first <= epsilon]

        @cache
        def leave(first: int) -> float:
            return self.step(firsts[first])

        @cache
        def enter(first: int) -> float:
            return math.exp(firsts[first]) * self.step(epsilon - firsts[first])

        least, ranges = 1.0, [(0, len(firsts) - 1)]
        while ranges:
            low, high = ranges.pop()
            middle = (low + high) // 2
            least = min(least, leave(middle) + enter(middle))
            # A greater first step never has a greater δ, nor a smaller one, left for the second step.
            parts = [part for part in ((low, middle - 1), (middle + 1, high)) if part[0] <= part[1]]
            ranges += [part for part in parts if leave(part[1]) + enter(part[0]) < least]
        return least


@dataclass(frozen=True)
class ListedDelta:
    """δ(ε) known at the ε of a table only: at another ε it is at most the δ of the next listed one below.

    Parameters
    ----------
    points : tuple of (float, float)
        Pairs of ε and δ, in ascending ε.
    """

    points: tuple[tuple[float, float], ...]

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        return min((delta for listed, delta in self.points if listed <= epsilon), default=1.0)


@dataclass(frozen=True)
class Claim:
    """What is proved about a view: the least ε at δ = 0, the least δ at any other ε, and what it is about.

    A claim is made by `exact`, `infinite`, `bound` or `unknown`. "infinite" (it is proved that no finite ε holds),
    "bound" with an infinite ε (no finite ε is known) and "unknown" (nothing is proved) are different values. No value
    is ever guessed: what is unknown has the bound that always holds, δ = 1.

    Parameters
    ----------
    kind : {"exact", "bound", "infinite", "unknown"}
        Meaning of `epsilon`: the least ε at δ = 0, an upper bound of it, proved not to be finite, or not known.
    epsilon : float
        ε at δ = 0; infinite where `kind` is "infinite" or "unknown", and where it is "bound" and no finite ε is known.
    delta_kind : {"exact", "bound", "unknown"}
        Meaning of the value of `delta`: the least δ, an upper bound of it, or 1 where nothing is known. A view without
        a finite ε still has a δ.
    basis : str
        A sentence that gives the reason for the claim and its source.
    curve : callable
        δ as a function of ε ≥ 0.
    mechanism : str
        The mechanism's name in the scenario; empty for a claim of a mechanism in Python, as are the fields below.
    view : str
        The view's name.
    adjacency : str
        The change of one device that the claim hides: ``move``, ``enter_leave``, ``add_remove``, or ``one_value`` for
        speeds.
    queries : int
        Number of queries observed together.
    crowd, k, colluding, servers : int, optional
        The view's parameters; None where it has none.
    campaign : str, optional
        The campaign that has a budget, or publishes what the claim is about; None for claims of all campaigns without
        a budget.
    campaigns : str, optional
        All campaigns of the mechanism, if the claim is about them together; None for claims that hold in one campaign.
    coalition : str, optional
        The parties that pool what they stored, separated by commas, if the claim is about them; None for other claims.
    release : str, optional
        The release that the claim is about; None if it is about none.
    reason : Reason, optional
        Why there is no better claim; None where there is no such reason.
    rounds : int
        Number of answers the mechanism takes per query.
    seen : bool
        Whether any party of the run has the view.
    one_server : bool
        Whether a single server has the view: it receives all answers of a device, or all answers shuffled.
    noise : (float, int), optional
        Standard deviation σ of discrete Gaussian noise on counts, and how many counts a device changes by 1 at most.
        The noise hides the device by itself, which a curve without its tails does not show.
    """

    kind: ClaimKind
    epsilon: float
    delta_kind: Literal["exact", "bound", "unknown"]
    basis: str
    curve: Callable[[float], float]
    mechanism: str = ""
    view: str = ""
    adjacency: str = "move"
    queries: int = 1
    crowd: int | None = None
    k: int | None = None
    colluding: int | None = None
    servers: int | None = None
    campaign: str | None = None
    campaigns: str | None = None
    coalition: str | None = None
    release: str | None = None
    reason: Reason | None = None
    rounds: int = 2
    seen: bool = True
    one_server: bool = False
    noise: tuple[float, int] | None = None

    def __post_init__(self) -> None:
        """Check that the kind, ε and the curve are consistent."""
        if not self.basis:
            raise ParameterError("basis", "must state the reason", self.basis)
        if self.kind == ("exact" if math.isinf(self.epsilon) else "infinite"):
            rule = (
                f"must be infinite only in a claim of kind 'infinite', or 'bound' if none is known, not {self.kind!r}"
            )
            raise ParameterError("epsilon", rule, self.epsilon)
        check_epsilon(self.epsilon)
        if (self.kind == "unknown") != (self.delta_kind == "unknown"):
            raise ParameterError("kind", "must be 'unknown' exactly where neither ε nor δ is known", self.kind)
        if self.kind == "unknown" and not math.isinf(self.epsilon):
            raise ParameterError("epsilon", "must be infinite where it is not known", self.epsilon)

    @classmethod
    def exact(cls, epsilon: float, curve: Callable[[float], float], basis: str) -> "Claim":
        """Claim the least ε at δ = 0, finite or infinite, and the least δ for every ε."""
        return cls("infinite" if math.isinf(epsilon) else "exact", epsilon, "exact", basis, curve)

    @classmethod
    def bound(cls, epsilon: float, curve: Callable[[float], float], basis: str) -> "Claim":
        """Claim an upper bound of δ and of ε at δ = 0; with an infinite ε, that no finite ε is known."""
        return cls("bound", epsilon, "bound", basis, curve)

    @classmethod
    def infinite(cls, curve: Callable[[float], float], basis: str) -> "Claim":
        """Claim that no finite ε holds at δ = 0, which is proved, and an upper bound of δ."""
        return cls("infinite", math.inf, "bound", basis, curve)

    @classmethod
    def unknown(cls, basis: str) -> "Claim":
        """Claim nothing, which is δ = 1 at every ε, and state the reason."""
        return cls("unknown", math.inf, "unknown", basis, ConstantDelta(1.0))

    @classmethod
    def weakest(cls, claims: Sequence["Claim"]) -> "Claim":
        """Return what holds whichever of several claims about one view is the right one: the greatest ε and δ."""
        unknown = next((claim for claim in claims if claim.kind == "unknown"), None)
        # Of equal ε, the one that is proved not to be finite, else the first.
        always = unknown or max(claims, key=lambda claim: (claim.epsilon, claim.kind == "infinite"))
        return always if unknown or len(claims) == 1 else replace(always, curve=GreatestDelta((*claims,)), noise=None)

    def about(self, view: Any = None, /, **values: Any) -> "Claim":
        """Return the claim with what it is about: the parameters of a view, if one is given, and fields by name."""
        return replace(self, **({} if view is None else subject_of_view(view)), **values)

    def as_bound(self, why: str) -> "Claim":
        """Return the claim as an upper bound for another view, with the reason before its basis; if unknown, itself."""
        if self.kind == "unknown":
            return self
        return replace(self, kind="bound", delta_kind="bound", basis=f"{why} {self.basis}")

    def at_most(self, *others: "Claim") -> "Claim":
        """Return the least of this claim and the claims about views from which this view can be computed.

        By post-processing each of them bounds this view. An exact δ is not lowered, nor an ε that is proved not to be
        finite. The basis stays this claim's.
        """
        if self.delta_kind == "exact" or all(claim.kind == "unknown" for claim in others):
            return self
        least = min(claim.epsilon for claim in others)
        lowered = replace(
            self,
            kind="bound" if self.kind == "unknown" else self.kind,
            delta_kind="bound",
            curve=LeastDelta((self, *others)),
        )
        if self.kind == "infinite" or least >= self.epsilon:
            return lowered
        return replace(lowered, kind="bound", epsilon=least)

    def listed(self, *epsilons: float) -> "Claim":
        """Return the claim with δ evaluated at these ε, in ascending order, and known nowhere else."""
        return replace(self, curve=ListedDelta(tuple((epsilon, self.delta(epsilon)) for epsilon in epsilons)))

    @property
    def subject(self) -> dict[str, Any]:
        """What it is about, by the names in `SUBJECT`."""
        return {name: getattr(self, name) for name in SUBJECT}

    def rows(self, epsilons: Iterable[float]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table: ε at δ = 0, which is marked, then δ at other ε; what is unknown is NaN."""
        unknown = self.kind == "unknown"
        same = {**self.subject, "unit": self.unit, "basis": self.basis, "reason": self.reason}
        always = {"epsilon": math.nan if unknown else self.epsilon, "delta": math.nan if unknown else 0.0}
        yield {**same, **always, "kind": self.kind, "at_delta_zero": True}
        for epsilon in () if unknown else epsilons:
            if epsilon != self.epsilon:  # else it is the row at δ = 0
                there = self.curve.at(epsilon) if isinstance(self.curve, GreatestDelta) else self
                same |= {**there.subject, "basis": there.basis, "reason": there.reason}
                delta = {"epsilon": epsilon, "delta": there.delta(epsilon), "kind": there.delta_kind}
                yield {**same, **delta, "at_delta_zero": False}

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], *, rounds: int = 2) -> "Claim":
        """Return the claim of the rows of one subject, in any order, with δ as listed; null is None in a row.

        Nothing is claimed by rows that contradict each other.
        """
        always = next((row for row in rows if row["at_delta_zero"]), rows[0])
        listed = [row for row in rows if row is not always and None not in (row["epsilon"], row["delta"])]
        whole = {name: None if always[name] is None else int(always[name]) for name in VIEW_PARAMETERS[2:]}
        subject = {**{name: always[name] for name in SUBJECT}, **whole}
        subject |= {"adjacency": always["adjacency"] or "move", "queries": int(always["queries"] or 1)}
        claim = cls.unknown(always["basis"] or "Not stated.")
        with suppress(ParameterError, TypeError):
            curve = ListedDelta(tuple(sorted((row["epsilon"], row["delta"]) for row in listed)))
            kinds = {row["kind"] for row in listed} or {always["kind"]}
            epsilon = math.inf if always["kind"] == "infinite" else always["epsilon"]
            if always["kind"] != "unknown":
                claim = cls(always["kind"], epsilon, "exact" if kinds == {"exact"} else "bound", claim.basis, curve)
        return claim.about(**subject, reason=always["reason"] and Reason(always["reason"]), rounds=rounds)

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """The (ε, δ) listed, in ascending ε; empty unless it was listed or read from rows."""
        return self.curve.points if isinstance(self.curve, ListedDelta) else ()

    @property
    def family(self) -> str:
        """The view's name without its round."""
        return self.view.partition("_round_")[0]

    @property
    def round(self) -> str:
        """The number of the view's round where the mechanism has several; empty otherwise."""
        return self.view.partition("_round_")[2] if self.rounds > 1 else ""

    @property
    def unit(self) -> str:
        """The unit of privacy in words: what of a device is hidden together."""
        one = "one report" if self.family == "report" else "one query"
        several = one if self.queries == 1 else f"{self.queries:,} queries of a device"
        return "a device’s whole run" if self.campaigns and not self.coalition else several

    @property
    def of_reports(self) -> bool:
        """Whether the view is of a device's own reports."""
        return self.family in {"report", "linked_reports"}

    @property
    def tells_cell(self) -> bool:
        """Whether an observer that is certain of a device knows its cell: the sum of all shares is linked reports."""
        return self.family in {"linked_reports", "shares"}

    @property
    def limits(self) -> tuple[object, ...]:
        """The claimed values of ε and δ and their kinds."""
        return self.epsilon, self.kind, self.points, self.delta_kind

    @property
    def has_finite_epsilon(self) -> bool:
        """Whether a finite ε holds at δ = 0. If none is, a claim of kind ``bound`` leaves open whether one holds."""
        return math.isfinite(self.epsilon)

    @property
    def nearest_one(self) -> tuple[float, float] | None:
        """The listed ε nearest to 1, and its δ; None where none is listed."""
        return min(self.points, key=_from_one, default=None)

    @property
    def constant_delta(self) -> float | None:
        """The δ that is the same at every listed ε where no finite ε is known to hold; None otherwise."""
        values = [delta for _, delta in self.points]
        if self.has_finite_epsilon or not values:
            return None
        return values[0] if max(values) - min(values) <= 1e-9 * max(values) else None

    @property
    def limit(self) -> Limit:
        """What the claim says of its observer."""
        if self.kind == "unknown":
            return Limit("unknown")
        if self.has_finite_epsilon:
            return Limit("always", self.epsilon)
        constant = self.constant_delta
        below_one = [point for point in self.points if point[1] < _NEARLY_ONE]
        if self.delta_kind == "bound" and self.points and not below_one:
            return Limit("unlimited")
        if constant is not None:
            return Limit("everything") if constant >= _NEARLY_ONE else Limit("constant", delta=constant)
        return Limit("except", *min(below_one, key=_from_one)) if below_one else Limit("never")

    def of_move(self) -> "Claim":
        """Return the bound for a device that moves between two cells, from a claim for entering or leaving any one."""
        if self.kind == "unknown":
            return self
        basis = f"A move is leaving one cell and entering another: at most (2ε, δ(1 + e^ε)). {self.basis}"
        # A move may also be to outside, so that it has no finite ε where one step has none.
        kind: ClaimKind = "infinite" if self.kind == "infinite" else "bound"
        return Claim(kind, 2.0 * self.epsilon, "bound", basis, TwoStepDelta(self.delta))

    def epsilon_at(self, delta: float, *, precision: float = 1e-4) -> float:
        """Return an ε that is proved at this δ, at most `precision` above the least one that is; infinite if none is.

        Parameters
        ----------
        delta : float
            At least 0.
        precision : float
            Width of the last interval of the bisection; the interval's upper end is returned.
        """
        if delta <= 0.0:
            return self.epsilon
        low, high = 0.0, min(self.epsilon, LARGEST_EPSILON)
        if self.delta(low) <= delta:
            return low
        if self.delta(high) > delta:
            return math.inf
        while high - low > precision:
            middle = (low + high) / 2.0
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def delta(self, epsilon: float) -> float:
        """Return δ at this ε: the least δ or a bound of it, as `delta_kind` states; 1 where nothing is known.

        Parameters
        ----------
        epsilon : float
            At least 0; at infinity, δ is the probability that the view reveals the truth with certainty.

        Raises
        ------
        ParameterError
            If ε is negative or NaN.
        """
        epsilon = check_epsilon(epsilon)
        if epsilon >= self.epsilon and not math.isinf(self.epsilon):
            return 0.0  # pure differential privacy; the curve may differ from 0 by rounding near its end
        delta = self.curve(epsilon)
        if math.isnan(delta):  # min and max would turn NaN into 0, the strongest claim possible
            raise ArithmeticError(f"the curve of this claim is not a number at ε = {epsilon!r}: {self.basis}")
        return min(1.0, max(0.0, delta))


def _from_one(point: tuple[float, float]) -> float:
    return abs(point[0] - 1.0) if point[0] else math.inf


@dataclass(frozen=True, slots=True)
class LeastDelta:
    """The least δ of several claims about the same view, at each ε.

    Parameters
    ----------
    claims : tuple of Claim
    """

    claims: tuple[Claim, ...]

    def __call__(self, epsilon: float) -> float:
        """Return the least bound of δ."""
        return min(claim.delta(epsilon) for claim in self.claims)


@dataclass(frozen=True, slots=True)
class GreatestDelta:
    """The greatest δ of several claims, where each may be the one that holds.

    Parameters
    ----------
    claims : tuple of Claim
    """

    claims: tuple[Claim, ...]

    def at(self, epsilon: float) -> Claim:
        """Return the claim of the greatest δ at this ε; of equal ones, the first without a finite ε, else the first."""
        return max(self.claims, key=lambda claim: (claim.delta(epsilon), claim.kind == "infinite"))

    def __call__(self, epsilon: float) -> float:
        """Return the greatest δ."""
        return self.at(epsilon).delta(epsilon)
