"""LQS: Li, Qardaji and Su, On Sampling, Anonymization, and Differential Privacy."""

from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
