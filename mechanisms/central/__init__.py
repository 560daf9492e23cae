"""Operations of a trusted aggregator before it publishes: suppression, generalisation and noise."""

# A name imported as itself is exported.
from mechanisms.central.generalisation import Generalised as Generalised
from mechanisms.central.k_anonymity import Cluster as Cluster
from mechanisms.central.k_anonymity import LocalRecoding as LocalRecoding
from mechanisms.central.k_anonymity import cut_clusters as cut_clusters
from mechanisms.central.laplace import LaplaceCounts as LaplaceCounts
from mechanisms.central.laplace import LaplaceMean as LaplaceMean
from mechanisms.central.release import CountRelease as CountRelease
from mechanisms.central.release import ValueEstimate as ValueEstimate
from mechanisms.central.release import ValueRelease as ValueRelease
from mechanisms.central.release import exponential_probabilities as exponential_probabilities
from mechanisms.central.simple_random_sample import SimpleRandomSample as SimpleRandomSample
from mechanisms.central.smooth_median import SmoothMedian as SmoothMedian
from mechanisms.central.smooth_median import median_smooth_sensitivity as median_smooth_sensitivity
from mechanisms.central.suppression import SampleThenSuppress as SampleThenSuppress
from mechanisms.central.suppression import apply as apply
from mechanisms.central.suppression import suppress as suppress
from mechanisms.central.threshold import ThresholdCounts as ThresholdCounts
