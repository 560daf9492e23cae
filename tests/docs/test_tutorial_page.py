"""The programs of docs/start/your_mechanism.md run as written, in order, and print what the page shows."""

import math
import re
import subprocess
import sys
from pathlib import Path

import geopandas as gpd
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "start" / "your_mechanism.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, flags=re.DOTALL)


def save_files(folder):
    """Save the programs that begin with the name of a file."""
    for code, _ in BLOCKS:
        if file := re.match(r"# (\w+\.py)\n", code):
            (folder / file[1]).write_text(code, encoding="utf-8")


@pytest.mark.slow
def test_programs_print_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    save_files(tmp_path)
    names: dict[str, object] = {"__name__": "tutorial"}
    for code, shown in BLOCKS:
        if not code.startswith("# "):
            exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - the page's own code
            assert capsys.readouterr().out == shown
    assert sum(bool(shown) for _, shown in BLOCKS) >= 8
    for file in ("runs/town/report.html", "map.png"):
        assert (tmp_path / file).stat().st_size > 0
    assert len(gpd.read_file(tmp_path / "mine.gpkg")) == 16
    check_statements(names)


def check_statements(names):
    """Check what the text says about numbers that no program prints."""
    mine = names["TruthOrRandom"](cells=16)
    assert math.isclose(mine.yes / mine.no, 18)
    claims = names["result"].claims.query("mechanism == 'sampling' and view == 'linked_reports' and epsilon == 4")
    claims = claims[claims["queries"] == 1]
    assert claims["delta"].tolist() == [pytest.approx(0.45)], "the probability with which linked reports show the cell"
    theory = names["raced"].scores.set_index("mechanism")["theory_rmse"]
    assert math.isclose(theory["mine"], theory["k-ary"])
    scores = names["both"].set_index("mechanism")
    assert scores.loc["truth", "rmse_x"] == 0
    assert 0 < scores.loc["truth", "rmse_y"] < 10
    assert (scores["rmse_y"] > scores["rmse_x"]).all()


@pytest.mark.slow
def test_command_line_checks_the_mechanism(tmp_path):
    save_files(tmp_path)
    (line,) = re.findall(r"^crowdveil (check .*)$", TEXT, flags=re.MULTILINE)
    command = [sys.executable, "-m", "simulator.cli", *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "passes every check with 3 and 10 cells" in done.stdout
