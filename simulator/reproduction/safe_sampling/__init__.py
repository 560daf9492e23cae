"""LQS: Li, Qardaji and Su, On Sampling, Anonymization, and Differential Privacy."""

from simulator.reproduction.entry import Entry
from simulator.reproduction.safe_sampling.figures import FIG_1, FIG_2, FIG_3, FIG_4, FIG_5, FIG_6
from simulator.reproduction.safe_sampling.noncomposition import NONCOMPOSITION
from simulator.reproduction.safe_sampling.recoding import RECODING
from simulator.reproduction.safe_sampling.safe_choice import THEOREM_6
from simulator.reproduction.safe_sampling.tables import TABLE_1, TABLE_2

ENTRIES: tuple[Entry, ...] = (
    TABLE_1,
    TABLE_2,
    FIG_1,
    FIG_2,
    FIG_3,
    FIG_4,
    FIG_5,
    FIG_6,
    NONCOMPOSITION,
    RECODING,
    THEOREM_6,
)
