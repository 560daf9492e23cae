"""The marginals of the Ljubljana breast cancer data that SP evaluates: facts about 286 patients, 85 recurrences.

Counted from the UCI data set "Breast Cancer" (M. Zwitter, M. Soklic, University Medical Centre, Institute of Oncology,
Ljubljana). The recurrences by tumour size are also what SP's Fig 6 prints as its truth.
"""

from dataclasses import dataclass

PATIENTS, SCALED = 286, 10_000


@dataclass(frozen=True)
class Marginal:
    """Patients by the groups of one attribute, numbered from 1 as SP sec 5.1 numbers them.

    Parameters
    ----------
    attribute, unit : str
        What is grouped, and in what.
    groups : tuple of str
        Names of the groups, every group up to the last that anybody is in.
    recurrences, patients : tuple of int
        In each group: of the 85 recurrences, and of all 286.
    """

    attribute: str
    unit: str
    groups: tuple[str, ...]
    recurrences: tuple[int, ...]
    patients: tuple[int, ...]


TUMOUR_SIZE = Marginal(
    "tumour size",
    "mm",
    ("0-4", "5-9", "10-14", "15-19", "20-24", "25-29", "30-34", "35-39", "40-44", "45-49", "50-54"),
    (1, 0, 1, 7, 16, 18, 25, 7, 6, 1, 3),
    (8, 4, 28, 30, 50, 54, 60, 19, 22, 3, 8),
)
AGE = Marginal(
    "age",
    "years",
    ("10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "70-79"),
    (0, 0, 15, 27, 25, 17, 1),
    (0, 1, 36, 90, 96, 57, 6),
)
