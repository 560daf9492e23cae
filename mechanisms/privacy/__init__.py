"""Views, privacy claims about them, and the composition of claims."""

from mechanisms.parameter import ParameterError
from mechanisms.privacy.claim import ClaimKind, ConstantDelta, PrivacyClaim
from mechanisms.privacy.hockey_stick import (
    best_guess_success,
    composed_delta,
    dominating_pair,
    hockey_stick,
    linked_guess_success,
    matrix_delta,
    matrix_epsilon,
    pair_delta,
    pair_epsilon,
)
from mechanisms.privacy.released import (
    moved_differences_delta,
    released_counts_delta,
    released_differences_delta,
    worst_crowd_delta,
)
from mechanisms.privacy.report_claims import shares_claim
from mechanisms.privacy.sampling_privacy import (
    printed_binary_leakage,
    printed_multi_value_leakage,
    printed_randomized_response_leakage,
)
from mechanisms.privacy.shuffled import shuffled_claim, shuffled_value_claim
from mechanisms.privacy.subsampling import (
    SafeDelta,
    population_privacy,
    resampled_privacy,
    safe_claim,
    safe_delta,
    sample_privacy,
    sampled_choice_delta,
    strongly_safe_claim,
    strongly_safe_delta,
)
from mechanisms.privacy.view import LinkedReports, ReleasedCounts, ReleasedDifferences, Report, Shares, Shuffled, View

__all__ = [
    "ClaimKind",
    "ConstantDelta",
    "LinkedReports",
    "ParameterError",
    "PrivacyClaim",
    "ReleasedCounts",
    "ReleasedDifferences",
    "Report",
    "SafeDelta",
    "Shares",
    "Shuffled",
    "View",
    "best_guess_success",
    "composed_delta",
    "dominating_pair",
    "hockey_stick",
    "linked_guess_success",
    "matrix_delta",
    "matrix_epsilon",
    "moved_differences_delta",
    "pair_delta",
    "pair_epsilon",
    "population_privacy",
    "printed_binary_leakage",
    "printed_multi_value_leakage",
    "printed_randomized_response_leakage",
    "released_counts_delta",
    "released_differences_delta",
    "resampled_privacy",
    "safe_claim",
    "safe_delta",
    "sample_privacy",
    "sampled_choice_delta",
    "shares_claim",
    "shuffled_claim",
    "shuffled_value_claim",
    "strongly_safe_claim",
    "strongly_safe_delta",
    "worst_crowd_delta",
]
