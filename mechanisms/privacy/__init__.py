"""Views, privacy claims about them, and the composition of claims."""

# A name imported as itself is exported.
from mechanisms.parameter import ParameterError as ParameterError
from mechanisms.privacy.claim import ConstantDelta as ConstantDelta
from mechanisms.privacy.claim import PrivacyClaim as PrivacyClaim
from mechanisms.privacy.hockey_stick import dominating_pair as dominating_pair
from mechanisms.privacy.hockey_stick import hockey_stick as hockey_stick
from mechanisms.privacy.hockey_stick import pair_delta as pair_delta
from mechanisms.privacy.hockey_stick import pair_epsilon as pair_epsilon
from mechanisms.privacy.published_differences import moved_differences_delta as moved_differences_delta
from mechanisms.privacy.published_differences import released_differences_delta as released_differences_delta
from mechanisms.privacy.published_differences import worst_crowd_delta as worst_crowd_delta
from mechanisms.privacy.sampling_privacy_claims import printed_binary_leakage as printed_binary_leakage
from mechanisms.privacy.sampling_privacy_claims import printed_multi_value_leakage as printed_multi_value_leakage
from mechanisms.privacy.sampling_privacy_claims import (
    printed_randomized_response_leakage as printed_randomized_response_leakage,
)
from mechanisms.privacy.shuffled import shuffled_claim as shuffled_claim
from mechanisms.privacy.subsampling import resampled_privacy as resampled_privacy
from mechanisms.privacy.subsampling import safe_delta as safe_delta
from mechanisms.privacy.subsampling import sampled_choice_delta as sampled_choice_delta
from mechanisms.privacy.subsampling import strongly_safe_claim as strongly_safe_claim
from mechanisms.privacy.subsampling import strongly_safe_delta as strongly_safe_delta
from mechanisms.privacy.view import LinkedReports as LinkedReports
from mechanisms.privacy.view import LocatedReports as LocatedReports
from mechanisms.privacy.view import ReleasedCounts as ReleasedCounts
from mechanisms.privacy.view import ReleasedDifferences as ReleasedDifferences
from mechanisms.privacy.view import Report as Report
from mechanisms.privacy.view import Shares as Shares
from mechanisms.privacy.view import Shuffled as Shuffled
from mechanisms.privacy.view import View as View
