"""Families of releases by a trusted server, which knows every device's cell."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mechanisms.central.laplace import LaplaceCounts
from mechanisms.central.release import CountRelease
from mechanisms.central.suppression import SampleThenSuppress
from mechanisms.local.mechanism import Counts
from mechanisms.local.no_privacy import NoPrivacy
from mechanisms.planning.candidate import Candidate
from mechanisms.planning.error_distribution import laplace_excess, suppressed_excess
from mechanisms.planning.search import Dial, Family, Shape
from mechanisms.planning.target import RELEASED, Target
from mechanisms.privacy.claim import PrivacyClaim
from mechanisms.privacy.view import ReleasedCounts, ReleasedDifferences, View


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

    def claim(self, view: View) -> PrivacyClaim:
        """Return what is proved: the release's claim about published views, and no privacy for the server's views."""
        if isinstance(view, ReleasedCounts | ReleasedDifferences):
            return self.release.claim(crowd=self.crowd, queries=view.queries)
        return NoPrivacy(cells=self.cells).claim(view)

    def std_error(self, true_counts: Counts) -> NDArray[np.float64]:
        """Return the root mean square error of cell 1, (1,)."""
        return self.release.std_error(true_counts[1:2])


def suppression_threshold(target: Target, shape: Shape) -> int:
    """Return k of the target, or else of the shape, on a logarithmic scale from 1 to twice the occupancy."""
    if target.k is not None:
        return target.k
    most = max(2, 2 * target.expected)
    return min(most, max(1, round(math.exp(shape[0] * math.log(most)))))


def suppression_shapes(target: Target) -> list[Shape]:
    """Return shapes of thresholds to start from; empty if the target states k."""
    return [] if target.k is not None else [(x,) for x in np.linspace(0.0, 0.95, 14).tolist()]


def _suppressed(target: Target, shape: Shape, sampling: float) -> Candidate:
    k = suppression_threshold(target, shape)
    server = TrustedServer(target.cells, SampleThenSuppress(k=k, sampling=sampling), target.crowd)
    release = {"kind": "suppress", "k": k, "sampling": sampling}
    excess = suppressed_excess(target.expected, sampling=sampling, k=k)
    return Candidate(server, replace(target, k=k), {}, release=release, excess_kurtosis=excess)


def _laplace(target: Target, _: Shape, epsilon: float) -> Candidate:
    server = TrustedServer(target.cells, LaplaceCounts(epsilon=epsilon), target.crowd)
    release = {"kind": "laplace", "epsilon": epsilon}
    return Candidate(server, target, {}, release=release, excess_kurtosis=laplace_excess(math.exp(-epsilon)))


def _trusted(target: Target) -> str | None:
    if target.view in RELEASED:
        return None
    return f"A trusted server hears every device's cell: it hides nothing from {target.view}, only from who reads it."


def _not_suppressible(target: Target) -> str | None:
    if target.view == "released_counts":
        return "What it publishes is a sample's counts: plan for released."
    return _trusted(target)


def _certain(target: Target) -> str | None:
    if target.epsilon is None or target.delta > 0.0:
        return None
    return (
        "All k sampled of a crowd of k tell that a device was there, so δ ≥ β^k at every ε: δ = 0 would need no device "
        "sampled, and an error without end."
    )


FAMILIES = (
    Family(
        "sample_then_suppress",
        "no_privacy",
        Dial(1e-12, 1.0, "logit"),
        "the sampling probability β",
        (_suppressed,),
        starts=suppression_shapes,
        refusal=_not_suppressible,
        reason=_certain,
    ),
    Family("laplace_counts", "no_privacy", Dial(1e-6, 50.0), "the budget ε", (_laplace,), refusal=_trusted),
)
