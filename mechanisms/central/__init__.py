"""What a trusted aggregator does before it publishes: suppression, generalisation, noise."""

from mechanisms.central.exponential_mechanism import exponential_probabilities
from mechanisms.central.generalised import Generalised
from mechanisms.central.laplace_counts import LaplaceCounts
from mechanisms.central.laplace_mean import LaplaceMean
from mechanisms.central.local_recoding import LocalRecoding
from mechanisms.central.mondrian import Cluster, cut_clusters
from mechanisms.central.release import CountRelease, ValueEstimate, ValueRelease
from mechanisms.central.sample_then_suppress import SampleThenSuppress
from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.central.smooth_median import SmoothMedian
from mechanisms.central.smooth_sensitivity import median_smooth_sensitivity
from mechanisms.central.suppression import apply, suppress

__all__ = [
    "Cluster",
    "CountRelease",
    "Generalised",
    "LaplaceCounts",
    "LaplaceMean",
    "LocalRecoding",
    "SampleThenSuppress",
    "SimpleRandomSample",
    "SmoothMedian",
    "ValueEstimate",
    "ValueRelease",
    "apply",
    "cut_clusters",
    "exponential_probabilities",
    "median_smooth_sensitivity",
    "suppress",
]
