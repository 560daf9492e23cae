"""ALP: Joy and Gerla, Anonymized Local Privacy."""

from simulator.reproduction.anonymized_local import accuracy, cancelling, lemmas, scaling
from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = (accuracy.ENTRY, lemmas.ENTRY, cancelling.ENTRY, scaling.ENTRY)
