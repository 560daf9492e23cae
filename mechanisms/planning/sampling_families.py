"""Planned families that sample devices or add noise: Sampling Privacy, and releases by a trusted server."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.central.laplace import LaplaceCounts
from mechanisms.central.release import CountRelease
from mechanisms.central.suppression import SampleThenSuppress
from mechanisms.local.binary_sampling_privacy import BinarySamplingPrivacy
from mechanisms.local.mechanism import Counts
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.local.sampling_privacy import SamplingPrivacy
from mechanisms.parameter import ParameterError
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.error_distribution import excess_kurtosis, laplace_excess, suppressed_excess
from mechanisms.planning.search import Dial, Family, Make, Shape, find_best
from mechanisms.planning.target import RELEASED, Target
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.integer_noise import LARGEST_SCALE, IntegerNoise, NoiseKind
from mechanisms.privacy.published_sums import known_counts_claim
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences, View, possible_adjacency


@dataclass(frozen=True)
class TrustedServer:
    """Devices that report their true cells, and a trusted server that publishes counts through a release.

    Parameters
    ----------
    cells : int
    release : CountRelease
    crowd : int, optional
        Devices in the cell; if None, claims hold for every crowd.
    """

    cells: int
    release: CountRelease
    crowd: int | None
    rounds: int = 1

    def claim(self, view: View) -> Claim:
        """Return what is proved: the release's claim about published views, and no privacy for the server's views."""
        if isinstance(view, ReleasedCounts | ReleasedDifferences):
            adjacency = possible_adjacency(view.adjacency, cells=self.cells)
            return self.release.claim(crowd=self.crowd, queries=view.queries, adjacency=adjacency)
        return NoPrivacy(cells=self.cells).claim(view)

    def std_error(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return the root mean square error of cell 1, (1,)."""
        return self.release.std_error(true_counts[1:2])


@dataclass(frozen=True)
class NoisyServers:
    """Devices that share their true cells among servers, each of which adds noise to the sums that it publishes.

    Parameters
    ----------
    cells : int
    noise : IntegerNoise
        Of one server on a cell's count.
    honest, servers : int
        Servers whose noise a coalition does not know, and all servers.
    """

    cells: int
    noise: IntegerNoise
    honest: int
    servers: int
    rounds: int = 1

    def claim(self, view: View) -> Claim:
        """Return what is proved about published counts; all servers together hold the reports."""
        if not isinstance(view, ReleasedCounts):
            return NoPrivacy(cells=self.cells).claim(view)
        seen = replace(view, colluding=self.servers - self.honest, servers=self.servers)
        return known_counts_claim(seen, self.noise, two=view.adjacency == "move" and self.cells > 1)

    def std_error(self, true_counts: Counts) -> NDArray[np.float64]:  # noqa: ARG002 - the same for every count
        """Return the standard deviation of all servers' noise, (1,)."""
        return np.array([math.sqrt(self.servers * self.noise.variance)])


@excess_kurtosis.register
def _of_servers_noise(mechanism: NoisyServers, target: Target) -> float:  # noqa: ARG001 - the same for every target
    return mechanism.noise.excess_kurtosis / mechanism.servers


def suppression_threshold(target: Target, shape: Shape) -> int:
    """Return k of the target, or else of the shape, on a logarithmic scale from 1 to twice the occupancy."""
    if target.k is not None:
        return target.k
    most = max(2, 2 * target.expected)
    return min(most, max(1, round(math.exp(shape[0] * math.log(most)))))


def suppression_shapes(target: Target) -> list[Shape]:
    """Return shapes of thresholds to start from; empty if the target states k."""
    return [] if target.k is not None else [(x,) for x in np.linspace(0.0, 0.95, 14).tolist()]


def _found_threshold(target: Target) -> list[Shape]:
    """Return the shape of the best threshold of sampling_privacy_suppressed, whose release is the same."""
    if target.k is not None:
        return []
    best = find_best(_sampling_suppressed, PROBABILITY, target, tuple(suppression_shapes(target)))
    if best is None or best.release is None:
        return [(0.0,)]
    return [(math.log(best.release["k"]) / math.log(max(2, 2 * target.expected)),)]


def _suppressed(target: Target, shape: Shape, sampling: float) -> Candidate:
    k = suppression_threshold(target, shape)
    server = TrustedServer(target.cells, SampleThenSuppress(k=k, sampling=sampling), target.crowd)
    release = {"kind": "suppress", "k": k, "sampling": sampling}
    excess = partial(suppressed_excess, target.expected, sampling=sampling, k=k)
    return Candidate(server, replace(target, k=k), {}, release=release, excess_kurtosis=excess)


def _laplace(target: Target, _: Shape, epsilon: float) -> Candidate:
    server = TrustedServer(target.cells, LaplaceCounts(epsilon=epsilon), target.crowd)
    release = {"kind": "laplace", "epsilon": epsilon}
    return Candidate(server, target, {}, release=release, excess_kurtosis=partial(laplace_excess, math.exp(-epsilon)))


def _noisy(kind: NoiseKind, *, trusted: bool = False) -> Make:
    """Return a maker of candidates of one kind of noise, by a trusted server or by each server; the dial is 1/scale."""

    def make(target: Target, _: Shape, precision: float) -> Candidate:
        if kind == "discrete_gaussian" and target.delta == 0.0:
            raise ParameterError("delta", "must be above 0 for Gaussian noise", target.delta)
        servers, honest = (1, 1) if trusted else (target.servers, target.honest)
        shares = honest if kind == "polya" else 1
        noise = IntegerNoise(kind, 1.0 / precision, shares)
        section: dict[str, Any] = {"kind": kind, "sigma" if kind == "discrete_gaussian" else "scale": noise.scale}
        section |= {"honest": shares} if kind == "polya" else {}
        deployed: dict[str, Any] = {"kind": "trusted"} if trusted else {"kind": "secret_shared", "servers": servers}
        return Candidate(
            NoisyServers(target.cells, noise, honest, servers), target, {}, aggregation={**deployed, "noise": section}
        )

    return make


def _of_servers(target: Target) -> str | None:
    if target.view in {"released", "released_counts"} and target.k is None:
        return None
    if target.k is not None:
        return "Servers publish noisy counts of all cells; suppression is not planned for them."
    return (
        f"All servers together hold every device's cell: nothing is hidden from {target.view}, only from fewer of them."
    )


def _trusted(target: Target) -> str | None:
    if target.view in RELEASED:
        return None
    return (
        f"A trusted server receives every device's cell: nothing is hidden from {target.view}, only from readers of "
        "what it publishes."
    )


def _not_gaussian(target: Target) -> str | None:
    if target.delta == 0.0 and target.view in RELEASED:
        return "Gaussian noise has no finite ε: it needs δ > 0."
    return _trusted(target)


def _not_suppressible(target: Target) -> str | None:
    if target.view == "released_counts":
        return "What it publishes is a sample's counts: plan for released."
    return _trusted(target)


def _certain(target: Target) -> str | None:
    if target.epsilon is None or target.delta > 0.0:
        return None
    return (
        "If all k of a crowd of k are sampled, the device was there, so δ ≥ β^k at every ε: δ = 0 would need no device "
        "sampled, and the error would be unbounded."
    )


# The greatest 1/b has noise of another value than 0 with probability 1e-21.
SCALE = Dial(1.0 / LARGEST_SCALE, 50.0, near=0.3)

_release = partial(Family, kind="no_privacy")
_ALL_NOISE = (_noisy("discrete_laplace"), _noisy("polya"), _noisy("discrete_gaussian"))

RELEASES = (
    _release(
        "sample_then_suppress",
        Dial(1e-12, 1.0, "logit"),
        "the sampling probability β",
        (_suppressed,),
        starts=_found_threshold,
        refusal=_not_suppressible,
        reason=_certain,
    ),
    _release("server_noise", SCALE, "1/σ or 1/b of the noise", _ALL_NOISE, refusal=_of_servers),
    _release("gaussian_counts", SCALE, "1/σ", (_noisy("discrete_gaussian", trusted=True),), refusal=_not_gaussian),
    _release("laplace_counts", Dial(1e-6, 50.0), "the budget ε", (_laplace,), refusal=_trusted),
)

PROBABILITY = Dial(1e-12, 1.0, "logit")
LETTER = "the sampling probability π_s"
# The least share of the blanks' probability that each blank keeps while their distribution is searched.
LEAST = 1e-6
MOST_REFRESHED = 10_000


def _candidate(mechanism: SamplingPrivacy | BinarySamplingPrivacy, target: Target, **parameters: object) -> Candidate:
    k = target.k
    if k is None or target.view == "released_counts":
        return Candidate(mechanism, target, parameters)
    release = SampleThenSuppress(k=k, sampling=mechanism.sampling)
    excess = partial(suppressed_excess, target.expected, sampling=mechanism.sampling, k=k)
    published = {"kind": "suppress", "k": k}

    def error(count: int) -> float:
        return float(release.std_error(np.array([count]))[0])

    return Candidate(mechanism, target, parameters, error, published, excess)


def _plain(target: Target, shape: Shape, sampling: float) -> Candidate:
    if not shape or sampling == 1.0:
        return _candidate(SamplingPrivacy(cells=target.cells, sampling=sampling), target, sampling=sampling)
    even = 1.0 / (target.cells + 1)
    zero = (even + shape[0] * (1.0 - LEAST - even)) * (1.0 - sampling)
    made = SamplingPrivacy(cells=target.cells, sampling=sampling, blank_zero=zero)
    return _candidate(made, target, sampling=sampling, blank_zero=zero)


def _plain_shapes(target: Target) -> list[Shape]:
    """Return shares of blank 0 to start from; it matters only for counts, which reveal how many blanks are not 0."""
    return [(0.0,), (0.5,), (0.9,), (1.0,)] if target.view == "released_counts" else []


def _binary(target: Target, shape: Shape, sampling: float) -> Candidate:
    zero = (LEAST + shape[0] * (1.0 - 2.0 * LEAST)) * (1.0 - sampling)
    made = BinarySamplingPrivacy(cells=target.cells, sampling=sampling, blank_zero=zero)
    return _candidate(made, target, form="binary", sampling=sampling, blank_zero=zero)


def _binary_shapes(target: Target) -> list[Shape]:
    """Return shares of blank 0 to start from; published differences do not depend on it, so one is enough there."""
    return [(0.5,)] if target.view in {"released", "released_differences"} else [(0.5,), (0.99,), (0.999,)]


def _sampling_suppressed(target: Target, shape: Shape, sampling: float) -> Candidate:
    return _plain(replace(target, k=suppression_threshold(target, shape)), (), sampling)


def _binary_suppressed(target: Target, shape: Shape, sampling: float) -> Candidate:
    return _binary(replace(target, k=suppression_threshold(target, shape)), (0.5,), sampling)


def _refreshed(target: Target, shape: Shape, sampling: float) -> Candidate:
    share, refresh = LEAST + shape[0] * (1.0 - 2.0 * LEAST), shape[1]
    zero = share * (1.0 - sampling)
    made = SamplingPrivacy(cells=target.cells, sampling=sampling, blank_zero=zero, refresh=refresh)
    return Candidate(made, target, {"sampling": sampling, "blank_zero": zero, "refresh": refresh})


def _not_refreshed(target: Target) -> str | None:
    if target.view.startswith(("report", "shuffled")):
        return (
            "Refreshing does not change a single round's distribution: for one round it equals sampling_privacy with "
            "more error."
        )
    if target.cells > MOST_REFRESHED:
        return f"Its blanks are not searched for more than {MOST_REFRESHED:,} cells, which takes minutes."
    if target.k is not None:
        return "Its published estimate is not a whole number that could be compared with k; suppression is not planned."
    return None


def suppressed_elsewhere(target: Target) -> str | None:
    """Return the refusal if k is given: suppression is planned for sampling_privacy, whose differences are the same."""
    if target.k is None:
        return None
    return "Its published differences have the distribution of sampling_privacy's; suppression is planned there."


def _not_suppressed(target: Target) -> str | None:
    if not target.covers_publication or target.view == "released_counts":
        return f"Suppressing what is published hides nothing from {target.view}: see sampling_privacy."
    if target.k is not None:
        return f"k = {target.k} is given: see sampling_privacy, whose differences it suppresses."
    return None


def _not_suppressed_binary(target: Target) -> str | None:
    if target.view in RELEASED:
        return "Its published differences have the distribution of sampling_privacy's: see sampling_privacy_suppressed."
    return _not_suppressed(target)


NO_REFRESH = "No refresh makes it better than sampling_privacy, which has no more error at ρ = 0 and reveals no more."


def _without_refresh(target: Target) -> float:
    """Return the score of the best sampling_privacy for a privacy target; infinite if there is none."""
    plain = find_best(_plain, PROBABILITY, target, tuple(_plain_shapes(target))) if target.error is None else None
    return math.inf if plain is None else plain.score


def _not_reached(target: Target) -> str | None:
    return NO_REFRESH if math.isfinite(_without_refresh(target)) else None


def _no_better(target: Target, candidate: Candidate) -> str | None:
    """Return why refresh is not useful if it does not reduce the error, or ε; None if it does."""
    plain = find_best(_plain, PROBABILITY, target, tuple(_plain_shapes(target)))
    return None if plain is None or not plain.score <= candidate.score * 1.001 else NO_REFRESH


def _needs_delta(target: Target) -> str | None:
    if target.delta > 0.0 or target.epsilon is None:
        return None
    if target.view == "linked_reports":
        return (
            "Linked reports reveal the cell with probability π_s at every ε (answers 0, then v): δ = 0 would need "
            "π_s = 0, and the error would be unbounded."
        )
    if target.covers_publication:
        crowd = target.known_crowd
        return (
            f"Differences of a cell are Bin(n, π_s): if all n are sampled, the device was there, so δ ≥ π_s^n at "
            f"every ε (n = {crowd}); δ = 0 would need π_s = 0, and the error would be unbounded."
        )
    return None


_sampling = partial(Family, dial=PROBABILITY, letter=LETTER, kind="sampling_privacy")
_suppressing = partial(_sampling, starts=suppression_shapes, reason=_needs_delta)

SAMPLING = (
    _sampling("sampling_privacy", makes=(_plain,), starts=_plain_shapes, reason=_needs_delta),
    _sampling(
        "sampling_privacy_refreshed",
        makes=(_refreshed,),
        starts=lambda _: [(0.5, 0.5), (0.9, 0.9), (0.5, 0.05)],
        refusal=_not_refreshed,
        reason=_not_reached,
        bound=_without_refresh,
        pointless=_no_better,
    ),
    _suppressing("sampling_privacy_suppressed", makes=(_sampling_suppressed,), refusal=_not_suppressed),
    _suppressing("sampling_privacy_binary_suppressed", makes=(_binary_suppressed,), refusal=_not_suppressed_binary),
    _sampling("sampling_privacy_binary", makes=(_binary,), starts=_binary_shapes, reason=_needs_delta),
)
