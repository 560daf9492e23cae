"""Views, privacy claims about them, and the composition of claims."""

from mechanisms.parameter import ParameterError
from mechanisms.privacy.claim import Claim, ConstantDelta
from mechanisms.privacy.hockey_stick import dominating_pair, hockey_stick, pair_delta, pair_epsilon
from mechanisms.privacy.released import moved_differences_delta, released_differences_delta, worst_crowd_delta
from mechanisms.privacy.sampling_privacy_claims import (
    printed_binary_leakage,
    printed_multi_value_leakage,
    printed_randomized_response_leakage,
)
from mechanisms.privacy.shuffled import shuffled_claim
from mechanisms.privacy.subsampling import SafeDelta, resampled_privacy, strongly_safe_claim, strongly_safe_delta
from mechanisms.privacy.view import (
    LinkedReports,
    LocatedReports,
    ReleasedCounts,
    ReleasedDifferences,
    Report,
    Shares,
    Shuffled,
    View,
)
