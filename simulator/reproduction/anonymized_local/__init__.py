"""ALP: Joy and Gerla, Anonymized Local Privacy."""

from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
