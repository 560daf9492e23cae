"""What one round's reports tell once a shuffler has mixed them: bounds by what the other devices' reports hide."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.blanket import BlanketDelta, rarest_blanks
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.hidden_coin import HiddenCoinDelta
from mechanisms.privacy.view import Shuffled


@dataclass(frozen=True)
class ClonesDelta:
    """The lesser of two bounds of δ(ε): the clones', and the report's own, of which shuffling is a post-processing.

    Parameters
    ----------
    clones : HiddenCoinDelta
        The dominating pair of `shuffled_claim`.
    local : PrivacyClaim
        The report's own claim, over as many queries.
    """

    clones: HiddenCoinDelta
    local: PrivacyClaim

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        return min(self.clones(epsilon), self.local.delta(epsilon))


def shuffled_claim(view: Shuffled, *, local: PrivacyClaim, single: PrivacyClaim | None = None) -> PrivacyClaim:
    """Return what shuffled reports of one round tell, from nothing but the local ε₀ of a report.

    Hiding among the clones (Feldman, McMillan and Talwar 2021, theorem 3.1 and its dominating pair): whatever
    the ε₀-LDP randomizer, every other device's report is with probability e^−ε₀ one of two clones of the
    device's own, either with ½. So of C ~ Bin(n − 1, e^−ε₀) fair coins and one of bias e^ε₀/(e^ε₀ + 1) towards
    the truth, only how many show heads is seen. δ of that pair is computed, not its closed-form bound.

    Parameters
    ----------
    view : Shuffled
        The devices and the queries.
    local : PrivacyClaim
        Of one device's report of the round, over the view's queries.
    single : PrivacyClaim, optional
        The same over one query; `local` by default, which then must be of one query.

    Returns
    -------
    PrivacyClaim
        A bound; exactly nothing where a report tells nothing; unknown where no finite ε₀ is known.
    """
    single = local if single is None else single
    if single.epsilon == 0.0:
        return PrivacyClaim.exact(0.0, ConstantDelta(0.0), "Each report tells nothing, so all of them tell nothing.")
    if not math.isfinite(single.epsilon):
        return PrivacyClaim.unknown(
            "Amplification by shuffling starts from a finite local ε, and none is proved for one report of this "
            "round; its own δ bounds what a shuffler shows."
        )
    towards = 1.0 / (1.0 + math.exp(-single.epsilon))
    away = math.exp(-single.epsilon) * towards  # not 1 − towards, which rounds to 0 for large ε₀
    clones = HiddenCoinDelta(
        others=view.devices - 1,
        hides=math.exp(-single.epsilon),
        heads=0.5,
        one=towards,
        other=away,
        queries=view.queries,
    )
    basis = (
        f"Hiding among the clones (Feldman, McMillan and Talwar 2021): the exact δ of its dominating pair for any "
        f"randomizer of ε₀ = {single.epsilon:.4g}, {view.devices} devices shuffled; at δ = 0 no better than unshuffled"
    )
    more = "" if view.queries == 1 else "; over T queries T·δ(ε/T)"
    return PrivacyClaim.bound(local.epsilon, ClonesDelta(clones, local), f"{basis}{more}.")


def shuffled_value_claim(view: Shuffled, *, sampling: float, blanks: NDArray[np.float64]) -> PrivacyClaim:
    """Return what shuffled reports tell that say the truth with π_s and else a blank: k-ary randomized response's form.

    The privacy blanket (`BlanketDelta`): unsampled devices answer without their truth, and among their blanks
    the device's own report is hidden. The worst two truths are those with the two rarest blanks.

    Parameters
    ----------
    view : Shuffled
        The devices and the queries.
    sampling : float
        π_s.
    blanks : (values,) float64
        π_0…π_V, of every truth a device may have; at least two.

    Returns
    -------
    PrivacyClaim
        A bound; exact where some value is said by no blank: no finite ε, and δ = π_s.
    """
    least = float(blanks.min())
    if least == 0.0:
        delta = -math.expm1(view.queries * math.log1p(-sampling)) if sampling < 1.0 else 1.0
        basis = (
            "Some value is reported by its own devices only, and shuffling does not hide that it was; all but π_s of a "
            "report's law is the same for any truth; over T queries δ = 1 − (1 − π_s)^T."
        )
        return PrivacyClaim.exact(math.inf, ConstantDelta(delta), basis)
    blank, other_blank = rarest_blanks(sampling, blanks)
    curve = BlanketDelta(view.devices, sampling, blank, other_blank, view.queries)
    basis = (
        "Privacy blanket (Balle, Bell, Gascón and Nissim 2019): the exact δ of one report among the others' blanks for "
        f"the two rarest values, {view.devices} devices shuffled; at δ = 0 no better than unshuffled"
    )
    more = "" if view.queries == 1 else "; over T queries T·δ(ε/T)"
    return PrivacyClaim.bound(view.queries * math.log1p(sampling / least), curve, f"{basis}{more}.")
