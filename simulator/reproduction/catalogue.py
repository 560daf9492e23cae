"""Catalogue: every entry, by name."""

from simulator.reproduction import amplification, anonymized_local, rivals, safe_sampling, sampling_privacy
from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = (
    *sampling_privacy.ENTRIES,
    *anonymized_local.ENTRIES,
    *safe_sampling.ENTRIES,
    *amplification.ENTRIES,
    *rivals.ENTRIES,
)
