"""No fault at any step of writing a study loses a point."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import study_faults as harness

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"


@pytest.mark.slow
def test_faults_of_every_command_lose_no_point():
    # In a small process, which forks faster than this one.
    command = [sys.executable, harness.__file__, "--faults", "28"]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "| **all** | 28 | 13 | 28 | 0 | 0 | 0 | 0 | 0 |" in table


def test_page_gives_the_table_of_thousand_faults():
    assert "| **all** | 1,000 |" in PAGE.read_text(encoding="utf-8"), f"run python {harness.__file__} docs/studies.md"


def test_point_counts_only_where_all_tables_hold_it(tmp_path):
    """A directory as a process of an earlier version leaves it that was killed between two tables."""
    harness.run(harness.sweep_of("one", tmp_path / "a"))
    harness.run(harness.sweep_of("other", tmp_path / "b"))
    mixed = tmp_path / "mixed"
    harness.shutil.copytree(tmp_path / "a", mixed)
    for path in mixed.glob("*.parquet"):
        folder = tmp_path / ("b" if path.stem == "scores" else "a")
        pd.read_parquet(folder / path.name).to_parquet(path)  # without the metadata of this version
    harness.run(harness.sweep_of("one", mixed))
    study = harness.Study.load(mixed)
    assert study.missing == 0
    assert set(study.scores["key"]) == set(study.points["key"])
    assert len(study.points) == 3
