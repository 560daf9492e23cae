"""What one round's reports tell once a shuffler has mixed them: bounds by what the other devices' reports hide."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.privacy.blanket import BlanketDelta
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.clone_amplification import ClonesDelta
from mechanisms.privacy.view import Shuffled


@dataclass(frozen=True)
class AmplifiedDelta:
    """The lesser of two bounds of δ(ε): that of the shuffled reports, and that of the device's own reports.

    Shuffling is a post-processing of the reports in order, so the second bounds it too.

    Parameters
    ----------
    shuffled : callable
        δ as a function of ε, from what the other devices hide.
    local : PrivacyClaim
        Of the device's own reports over all the queries.
    """

    shuffled: Callable[[float], float]
    local: PrivacyClaim

    def __call__(self, epsilon: float) -> float:
        """Return the bound of δ."""
        return min(self.shuffled(epsilon), self.local.delta(epsilon))


def shuffled_claim(view: Shuffled, *, local: PrivacyClaim, single: PrivacyClaim | None = None) -> PrivacyClaim:
    """Return the claim of one round's shuffled reports that follows from the local ε₀ alone (`ClonesDelta`).

    Over T queries there are two cases. Where the coins are new in every query, the T shufflings are independent
    releases and their δ compose: T·δ(ε/T) with the ε₀ of one report. A device that keeps randomness between queries,
    such as memoised bits, makes its T reports dependent, and so are those of the devices it hides among: nothing
    composes. Then the T reports are taken as one report of a randomizer whose input is the device's journey and whose
    ε₀ is that of all T reports together. Devices keep their randomness independently of each other, and mixing each
    query by itself is a post-processing of mixing those joint reports once, so the bound for one query holds with
    that ε₀.

    Parameters
    ----------
    view : Shuffled
        The devices, the same in every query, and the queries.
    local : PrivacyClaim
        Of one device's reports of the round over all the view's queries.
    single : PrivacyClaim, optional
        The same over one query, where the coins are new in every query. None where something is kept.

    Returns
    -------
    PrivacyClaim
        A bound; exactly nothing where a report tells nothing; unknown where no finite ε₀ is known.
    """
    start = local if single is None else single
    if start.epsilon == 0.0:
        return PrivacyClaim.exact(0.0, ConstantDelta(0.0), "Each report tells nothing, so all of them tell nothing.")
    if not math.isfinite(start.epsilon):
        return PrivacyClaim.unknown(
            "Amplification by shuffling starts from a finite local ε, and none is proved for one report of this "
            "round; its own δ bounds what a shuffler shows."
        )
    if view.queries == 1:
        over = ""
    elif single is None:
        over = f"; the {view.queries} reports of a device count as one, because it keeps randomness between queries"
    else:
        over = "; over T queries T·δ(ε/T)"
    clones = ClonesDelta(view.devices, start.epsilon, 1 if single is None else view.queries)
    basis = (
        f"Hiding among the clones (Feldman, McMillan and Talwar 2021): the exact δ of its dominating pair for any "
        f"randomizer of ε₀ = {start.epsilon:.4g}, {view.devices} devices shuffled; at δ = 0 no better than unshuffled"
    )
    return PrivacyClaim.bound(local.epsilon, AmplifiedDelta(clones, local), f"{basis}{over}.")


def shuffled_value_claim(
    view: Shuffled, *, sampling: float, blanks: NDArray[np.float64], local: PrivacyClaim
) -> PrivacyClaim:
    """Return the claim of shuffled reports that give the truth with π_s and else a blank, with new coins in each query.

    The privacy blanket (`BlanketDelta`): unsampled devices answer without their truth, and among their blanks the
    device's own report is hidden. k-ary randomized response has this form, with equal blanks. The worst two truths
    are those with the two rarest blanks: showing some of a value's blanks leaves it rarer.

    Parameters
    ----------
    view : Shuffled
        The devices and the queries.
    sampling : float
        π_s.
    blanks : (values,) float64
        π_0…π_V, of every truth a device may have; at least two. Their sum is 1 − π_s, which a π_s near 1 does not
        keep the digits of.
    local : PrivacyClaim
        Of one device's reports of the round over all the view's queries.

    Returns
    -------
    PrivacyClaim
        A bound; exact where some value is given by no blank: no finite ε, and δ = π_s.
    """
    least, second = (float(p) for p in np.partition(blanks, 1)[:2])
    if least == 0.0:
        delta = -math.expm1(view.queries * math.log1p(-sampling)) if sampling < 1.0 else 1.0
        basis = (
            "Some value is reported by its own devices only, and shuffling does not hide that it was; all but π_s of a "
            "report's law is the same for any truth; over T queries δ = 1 − (1 − π_s)^T."
        )
        return PrivacyClaim.exact(math.inf, ConstantDelta(delta), basis)
    unsampled = float(blanks.sum())
    blanket = BlanketDelta(view.devices, sampling, unsampled, least / unsampled, second / unsampled, view.queries)
    basis = (
        "Privacy blanket (Balle, Bell, Gascón and Nissim 2019): the exact δ of one report among the others' blanks for "
        f"the two rarest values, {view.devices} devices shuffled; at δ = 0 no better than unshuffled"
    )
    over = "" if view.queries == 1 else "; over T queries the lesser of T·δ(ε/T) and the unshuffled δ"
    return PrivacyClaim.bound(local.epsilon, AmplifiedDelta(blanket, local), f"{basis}{over}.")
