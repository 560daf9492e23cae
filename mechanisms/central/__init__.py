"""Operations of a trusted aggregator before it publishes: suppression, generalisation and noise."""

from mechanisms.central.generalisation import Generalised
from mechanisms.central.k_anonymity import Cluster, LocalRecoding, cut_clusters
from mechanisms.central.laplace import LaplaceCounts, LaplaceMean, ThresholdCounts
from mechanisms.central.release import CountRelease, ValueEstimate, ValueRelease, exponential_probabilities
from mechanisms.central.simple_random_sample import SimpleRandomSample
from mechanisms.central.smooth_median import SmoothMedian, median_smooth_sensitivity
from mechanisms.central.suppression import SampleThenSuppress, apply, suppress
