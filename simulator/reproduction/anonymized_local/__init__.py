"""ALP: Joy and Gerla, Anonymized Local Privacy."""

from simulator.reproduction.anonymized_local import accuracy, growth, lemmas
from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = (accuracy.ENTRY, lemmas.ENTRY, growth.CANCELLING, growth.SCALING)
