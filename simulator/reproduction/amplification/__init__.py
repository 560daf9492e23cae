"""HDK: Hu, Drechsler and Kim, Accuracy Gains from Privacy Amplification Through Sampling."""

from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
