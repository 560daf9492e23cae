import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from synthetic_run import SyntheticRun

from simulator.experiment.run import ProgressReceiver as Listener
from simulator.experiment.run import Silent
from simulator.pages.report import build_report, write_report
from simulator.pages.terminal_summary import Progress, print_summary
from simulator.results.formatting import number
from simulator.results.store import UnfinishedRunError


def printed(*arguments: object, width: int = 100, **named: object) -> str:
    stream = io.StringIO()
    print_summary(*arguments, Console(file=stream, width=width), **named)  # type: ignore[arg-type]
    return stream.getvalue()


def test_summary_of_a_directory(tmp_path: Path) -> None:
    directory = SyntheticRun(warnings=("[bold]one cell[/bold]",)).write(tmp_path / "run")
    text = printed(directory, width=120)
    for row in pd.read_parquet(directory / "scores.parquet").to_dict("records"):
        assert number(row["rmse"]) in text
        assert number(row["bias"]) in text
    assert "manhattan, seed 7: 20,000 vehicles, 12 cells, 6 queries" in text
    assert "linked reports: δ = 0.45 at every ε" in text
    costs = (
        "Messages of a device in a query: 3 to 6 up (12 to 24 bytes) and 1 to 2 down (17 to 34 bytes); energy 12.6 to"
    )
    assert f"{costs} 25.2 J if its LTE modem wakes up to answer." in " ".join(text.split())
    assert "Warning: [bold]one cell[/bold]" in text, "what a user wrote is no markup"
    assert f"Results: {directory}" in text
    assert f"Report: {write_report(directory)}" in printed(directory)
    assert "\x1b" not in text, "no colours where there is no terminal"


def test_summary_names_campaigns_where_there_are_several(tmp_path: Path) -> None:
    text = printed(SyntheticRun(campaigns=("morning", "evening"), queries=1).write(tmp_path / "run"))
    assert "morning" in text
    assert "evening" in text


def test_it_is_said_that_taking_part_is_not_hidden(small: Path) -> None:
    sentence = "That a device takes part is hidden by no claim about where it is."
    assert sentence in " ".join(printed(small).split())
    page = " ".join(build_report(small).split())
    assert sentence in page
    assert "No such claim hides whether a device takes part at all" in page


def test_summary_fits_a_narrow_terminal(small: Path) -> None:
    lines = printed(small, width=72).splitlines()
    assert max(len(line) for line in lines if not line.startswith("Re")) <= 72


def test_summary_of_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnfinishedRunError):
        print_summary(tmp_path)


def run_phases(progress: Listener) -> None:
    progress.phase("routes")
    progress.phase("traffic and queries", until_s=1800)
    progress.advance_to(600)
    progress.advance_to(1800)


def test_progress_without_a_terminal_writes_one_line_per_phase() -> None:
    stream = io.StringIO()
    with Progress(Console(file=stream)) as progress:
        run_phases(progress)
    lines = stream.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == ["routes", "traffic and queries"]


def test_progress_on_a_terminal_draws_bars() -> None:
    stream = io.StringIO()
    with Progress(Console(file=stream, force_terminal=True, width=100)) as progress:
        run_phases(progress)
    text = stream.getvalue()
    assert "traffic and queries" in text
    assert "0:30:00 of 0:30:00" in text
    assert text.rstrip().endswith("\x1b[?25h"), "the cursor is shown again"


def test_progress_does_not_report_a_failed_phase_as_done() -> None:
    stream = io.StringIO()

    def fail() -> None:
        with Progress(Console(file=stream)) as progress:
            progress.phase("routes")
            raise KeyError("road")

    with pytest.raises(KeyError):
        fail()
    assert stream.getvalue() == ""


def test_silent_progress_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    run_phases(Silent())
    assert capsys.readouterr() == ("", "")
