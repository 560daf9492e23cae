"""Views, exact claims and their composition."""

from mechanisms.parameter import ParameterError
from mechanisms.privacy.claim import ClaimKind, ConstantDelta, PrivacyClaim
from mechanisms.privacy.composition import composed_delta
from mechanisms.privacy.dominating_pair import dominating_pair
from mechanisms.privacy.hockey_stick import (
    hockey_stick,
    matrix_delta,
    matrix_epsilon,
    pair_delta,
    pair_epsilon,
)
from mechanisms.privacy.printed_leakage import (
    printed_binary_leakage,
    printed_multi_value_leakage,
    printed_randomized_response_leakage,
)
from mechanisms.privacy.released_differences import released_differences_delta, worst_crowd_delta
from mechanisms.privacy.view import (
    LinkedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    View,
)

__all__ = [
    "ClaimKind",
    "ConstantDelta",
    "LinkedReports",
    "ParameterError",
    "PrivacyClaim",
    "ReleasedCounts",
    "ReleasedDifferences",
    "Report",
    "Shares",
    "Shuffled",
    "View",
    "composed_delta",
    "dominating_pair",
    "hockey_stick",
    "matrix_delta",
    "matrix_epsilon",
    "pair_delta",
    "pair_epsilon",
    "printed_binary_leakage",
    "printed_multi_value_leakage",
    "printed_randomized_response_leakage",
    "released_differences_delta",
    "worst_crowd_delta",
]
