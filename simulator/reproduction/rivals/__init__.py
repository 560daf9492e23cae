"""The table of every mechanism against every other."""

from simulator.reproduction.entry import Entry
from simulator.reproduction.rivals.rivals import reproduce

ENTRIES: tuple[Entry, ...] = (
    Entry("rivals", "crowdveil", "Every mechanism at one (ε, δ) for one view: theory beside simulation", reproduce),
)
