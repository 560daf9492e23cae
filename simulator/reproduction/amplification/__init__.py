"""HDK: Hu, Drechsler and Kim, Accuracy Gains from Privacy Amplification Through Sampling."""

from simulator.reproduction.amplification import lognormal_median, mixture_median, noise_levels, sampling_rates
from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    *noise_levels.ENTRIES,
    *sampling_rates.ENTRIES,
    *lognormal_median.ENTRIES,
    *mixture_median.ENTRIES,
    *noise_levels.CONCLUSIONS,
)
