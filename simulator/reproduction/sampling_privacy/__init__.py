"""SP: Joy and Gerla, Differential Privacy By Sampling."""

from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
