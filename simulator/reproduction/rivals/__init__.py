"""The table of every mechanism against every other."""

from simulator.reproduction.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
