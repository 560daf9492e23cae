"""Finished study: its tables as data frames."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from simulator.files.errors import InputError
from simulator.studies.design import LABELS
from simulator.studies.store import DESIGN, FAILURES, POINTS, WARNINGS, StudyDirectory


@dataclass(frozen=True, eq=False)
class Study:
    """Results of a study.

    Every table has the columns of the design: `key`, `point`, `setting`, `replicate`, `seed`, and one column for each
    varied key path, of the type of its values.

    Attributes
    ----------
    path
        Its directory.
    name
        Name of the study: that of its scenario.
    factors
        Key paths of what was varied.
    points
        One row per finished point, with `wall_s` and `peak_nbytes`.
    scores, claims, attacks
        The tables of all runs, with the columns that they have in a run directory.
    failures
        The points that failed, with `error`.
    warnings
        What may mislead a reader of a point, with `warning`.
    missing
        Number of points that are not finished.
    facts
        Content of `study.json`.
    """

    path: Path
    name: str
    factors: tuple[str, ...]
    points: pd.DataFrame
    scores: pd.DataFrame
    claims: pd.DataFrame
    attacks: pd.DataFrame
    failures: pd.DataFrame
    warnings: pd.DataFrame
    missing: int
    facts: dict[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study from its directory; of one that was interrupted, the points that are finished.

        Raises
        ------
        InputError
            If the directory holds no study.
        """
        directory = StudyDirectory(Path(path))
        facts, design = directory.facts(), directory.read_table(DESIGN)
        if not len(design):
            raise InputError([f"{path}: the study has no point yet: the command that began it goes on"])
        results = directory.results(design["key"])
        names = (POINTS, "scores", "claims", "attacks", WARNINGS)
        empty = pd.DataFrame({"key": pd.Series(dtype="str")})
        tables = {name: design.merge(results.get(name, empty), on="key", how="inner") for name in names}
        failures = directory.read_table(FAILURES)
        missing = len(design) - len(tables[POINTS])
        return cls(
            directory.path,
            facts["name"],
            tuple(name for name in design.columns if name not in LABELS),
            **tables,
            failures=failures[~failures["key"].isin(tables[POINTS]["key"])],
            missing=missing,
            facts=facts,
        )

    def table(self, name: str) -> pd.DataFrame:
        """Return any table that the study kept, such as ``estimates``, with the columns of the design.

        Raises
        ------
        KeyError
            If it was not kept; `--keep` chooses the tables.
        """
        directory = StudyDirectory(self.path)
        design = directory.read_table(DESIGN)
        return design.merge(directory.results(design["key"])[name], on="key", how="inner")

    def __repr__(self) -> str:
        varied = ", ".join(self.factors) or "nothing"
        return f"<Study: {self.name}, {len(self.points)} points, varied: {varied}, in {self.path}>"
