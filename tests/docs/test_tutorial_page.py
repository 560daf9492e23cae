"""The programs of the pages for newcomers run as written, in order, and print what the pages show."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

START = Path(__file__).parents[2] / "docs" / "start"
TEXT = (START / "your_mechanism.md").read_text(encoding="utf-8")


def blocks_of(text):
    """Return each program of a page, with what the page says that it prints."""
    return re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, flags=re.DOTALL)


def save_files(folder, text):
    """Save the programs that begin with the name of a file."""
    for code, _ in blocks_of(text):
        if file := re.match(r"# (\w+\.py)\n", code):
            (folder / file[1]).write_text(code, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("page", "least"), [("first_campaign", 1), ("your_mechanism", 4)])
def test_programs_print_what_the_page_shows(page, least, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = (START / f"{page}.md").read_text(encoding="utf-8")
    save_files(tmp_path, text)
    names: dict[str, object] = {"__name__": page}
    for code, shown in blocks_of(text):
        if not code.startswith("# "):
            exec(compile(code, page, "exec"), names)  # noqa: S102 - the page's own code
            assert capsys.readouterr().out == shown
    assert sum(bool(shown) for _, shown in blocks_of(text)) >= least
    if page == "your_mechanism":
        theory = names["raced"].scores.set_index("mechanism")["theory_rmse"]
        assert math.isclose(theory["mine"], theory["k-ary"])
        one, five = (names[name].scores.set_index("mechanism")["rmse"] for name in ("raced", "divided"))
        assert (five > one).all(), "all errors grow"
    else:  # the numbers of the reports that the page explains
        base, tenth = names["base"].summary(), names["tenth"].summary()
        quoted = ("70.6-fold", "ε = 4.26", "45 %", "6.39", "13.1")
        assert [number for number in quoted if number not in base or number not in text] == []
        assert ("16.1" in tenth, "δ = 0.469" in tenth, "16.1" in text, "46.9 %" in text) == (True,) * 4


@pytest.mark.slow
def test_command_line_checks_the_mechanism(tmp_path):
    save_files(tmp_path, TEXT)
    (line,) = re.findall(r"^crowdveil (check .*)$", TEXT, flags=re.MULTILINE)
    command = [sys.executable, "-m", "simulator.cli", *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "passes every check with 3 and 10 cells" in done.stdout
