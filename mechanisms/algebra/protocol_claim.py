"""What a device's own reports tell about its kind, read off the table."""

import itertools
import math

import numpy as np

from mechanisms.algebra.protocol import Protocol
from mechanisms.algebra.worst_pair import WorstPairDelta
from mechanisms.privacy.claim import ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import ComposedDelta
from mechanisms.privacy.dominating_pair import dominating_pair
from mechanisms.privacy.view import LinkedReports, Report, View


def protocol_claim(protocol: Protocol, view: View) -> PrivacyClaim:
    """Return the exact claim of one report, or of all of a device's reports linked, over all pairs of kinds.

    Parameters
    ----------
    protocol : Protocol
    view : View
        `Report` or `LinkedReports`; of others nothing is claimed here. What publishing counts or estimates
        tells is `released_claim`.

    Returns
    -------
    PrivacyClaim
        Exact for one query. Over T, a device's kind may be any other at each query: ε is T times that of one
        query, and δ a bound.
    """
    if isinstance(view, Report):
        if view.round > protocol.rounds:
            return PrivacyClaim.unknown(f"{protocol.name} has {protocol.rounds} rounds only.")
        rows = [tuple(protocol.round_law(kind, view.round).values()) for kind in protocol.kinds]
    elif isinstance(view, LinkedReports):
        answers = protocol.answers
        rows = [tuple(protocol.probability(kind, (a,)) for a in answers) for kind in protocol.kinds]
    else:
        return PrivacyClaim.unknown(f"The claim of {view.name} does not follow from one device's answers.")
    curve = WorstPairDelta.from_pairs(itertools.combinations(rows, 2))
    basis = f"The hockey stick of every pair of kinds in the table of {protocol.name}"
    epsilon = curve.epsilon
    if view.queries == 1:
        return PrivacyClaim.exact(epsilon, curve, f"{basis}.")
    if epsilon == 0.0:
        return PrivacyClaim.exact(0.0, ConstantDelta(0.0), f"{basis}: all alike, in any number of queries.")
    # The pair may be another one, or the same the other way round, at each query.
    arrays = [(np.array(p), np.array(q)) for p, q in curve.pairs]
    p, q = dominating_pair([*arrays, *((q, p) for p, q in arrays)])
    return PrivacyClaim.bound(
        view.queries * epsilon if math.isfinite(epsilon) else math.inf,
        ComposedDelta.from_pair(p, q, queries=view.queries),
        f"{basis}; over T queries T·ε at δ = 0, and δ by composing the privacy loss distribution of the worst pair.",
    )
