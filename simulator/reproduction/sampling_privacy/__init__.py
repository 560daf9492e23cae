"""SP: Joy and Gerla, Differential Privacy By Sampling."""

from simulator.reproduction.entry import Entry
from simulator.reproduction.sampling_privacy import breast_cancer_figures, check_ins, leakage, standard_deviation

ENTRIES: tuple[Entry, ...] = (
    standard_deviation.STANDARD_DEVIATION,
    standard_deviation.DISCRETISATION,
    check_ins.ENTRY,
    leakage.ENTRY,
    *breast_cancer_figures.ENTRIES,
)
