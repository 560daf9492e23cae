"""SP: Joy and Gerla, Differential Privacy By Sampling."""

from simulator.reproduction.entry import Entry
from simulator.reproduction.sampling_privacy import afflicted, check_ins, discretisation, leakage, standard_deviation

ENTRIES: tuple[Entry, ...] = (
    standard_deviation.ENTRY,
    discretisation.ENTRY,
    check_ins.ENTRY,
    leakage.ENTRY,
    *afflicted.ENTRIES,
)
