"""Output at 80 columns: no line is longer, no name is cut off, no word is broken."""

import io
import os
import re
import subprocess
import sys
import time

import pytest
from rich.console import Console

import crowdveil
from simulator.cli.commands import notice
from simulator.pages.terminal_summary import print_summary

NARROW, WIDE = 80, 119
PLAN = ("plan", "--cells", "9", "--population", "4000", "--delta", "1e-4")
COMMANDS = {
    "plan": (*PLAN, "--epsilon", "1", "--view", "released"),
    "plan for an error": (*PLAN, "--error", "50", "--mechanism", "sampling_privacy_binary", "--view", "released"),
    "advise": ("advise", "--people", "4000", "--zones", "9", "--answers-per-day", "2", "--colluding", "2"),
    "least": (*PLAN, "--epsilon", "1", "--error", "30", "--view", "released", "--find", "crowd"),
    "check": ("check", "OptimisedUnary", "--set", "epsilon=1", "--quick"),
    "audit": ("audit", "builtins:repr", "--trials", "100", "--epsilon", "9"),
    "scenarios": ("scenarios", "list"),
    "roads": ("roads", "show", "tiny"),
    "data": ("data", "list"),
    "entries": ("reproduce", "--list"),
    "entry": ("reproduce", "lqs-table2", "--out", "page.html"),
    "bars": ("reproduce", "sp-fig6", "--out", "page.html"),
    "evaluate": ("evaluate", "--mechanisms", "sampling_privacy_suppressed,oue", "--data", "tiny", "--epsilon", "1",
                 "--delta", "1e-3", "--view", "released", "--replicates", "2", "--workers", "0", "--out", "work"),
    "help": ("evaluate", "-h"),
}  # fmt: skip
FIRST = {
    "plan": "Best: ",
    "plan for an error": "Best: sampling_privacy_binary (form = binary, sampling = ",
    "advise": "Advised: Subset selection, each device answers one of the queries (nobody: ",
    "least": "Least crowd: ",
}
SLOW = ("plan", "advise", "least", "check", "bars", "evaluate")


@pytest.fixture
def printed(call, monkeypatch):
    """The output of a command in this process, at a width."""

    def printed_(*arguments, columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        done = call(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return printed_


def words(text):
    """The words of a text that have letters: without the borders of tables, and without memory that changes."""
    found = re.findall(r"[^\s┃│┏┓┗┛┡┩└┘├┤┼╇━─┳┻┬┴]+", text)
    return {word for word in found if re.search("[^\\W\\d]", word)}


def check_narrow(narrow, wide):
    for line in narrow.splitlines():
        assert len(line.rstrip()) <= NARROW, line
    assert not re.search(r"\w…", re.sub(r"[A-Z],…|\[FOLDER\]…|_1…|-2, …", "", narrow)), "a name is cut off"
    assert words(narrow) <= words(wide), "a word is broken"


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in SLOW else case for case in COMMANDS]
)
def test_no_word_is_broken_or_cut_off_at_80_columns(case, printed):
    narrow, wide = (printed(*COMMANDS[case], columns=columns) for columns in (NARROW, WIDE))
    check_narrow(narrow, wide)
    assert wide.startswith(FIRST.get(case, ""))


@pytest.fixture(scope="module", params=["releases", pytest.param("collusion", marks=pytest.mark.slow)])
def directory(request, tmp_path_factory):
    result = crowdveil.run(request.param, overrides={"traffic.vehicles": 1500})
    return result.save(tmp_path_factory.mktemp("run") / "run")


def summary(directory, columns):
    stream = io.StringIO()
    print_summary(directory, Console(file=stream, width=columns))
    text, _, _ = stream.getvalue().partition("Results: ")  # a path is not wrapped
    return text


def test_summary_of_several_campaigns_at_80_columns(directory):
    check_narrow(summary(directory, NARROW), summary(directory, WIDE))


def test_columns_counts_in_a_pipe_which_is_wide_without(printed, tmp_path):
    command = (*PLAN, "--epsilon", "1", "--mechanism", "oue", "--mechanism", "sampling_privacy")
    narrow, wide = (printed(*command, columns=columns) for columns in (60, WIDE))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    started = [sys.executable, "-m", "crowdveil", *command]
    pipe = subprocess.run(started, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path).stdout
    longest = [max(map(len, text.splitlines())) for text in (narrow, wide, pipe)]
    assert longest[0] <= 60 < longest[1] <= WIDE < longest[2]
    assert words(pipe) == words(wide)
    assert any(line.startswith("note sampling_privacy: ") and len(line) > WIDE for line in pipe.splitlines()), (
        "a text is one line"
    )


def test_answer_of_a_plan_is_first(printed):
    lines = printed(*PLAN, "--epsilon", "1", "--mechanism", "oue", columns=WIDE).splitlines()
    assert re.match(r"Best: oue \(epsilon = 1.0\d+\), with an error of \d+(\.\d+)? vehicles in a cell of 400", lines[0])
    assert lines[2] == "[[mechanisms]]"
    assert lines.index("[[mechanisms]]") < next(i for i, line in enumerate(lines) if line.startswith("┏"))
    both = (*PLAN, "--epsilon", "1", "--error", "30", "--view", "released", "--mechanism", "oue")
    least = printed(*both, "--find", "crowd", columns=WIDE)
    assert least.startswith(("Least crowd: ", "No mechanism meets both."))


def test_a_command_that_prints_nothing_shows_on_a_terminal_that_it_runs(monkeypatch):
    pty = pytest.importorskip("pty")
    terminal, end = pty.openpty()
    with os.fdopen(end, "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stderr", stream)
        with notice("inspect lima"):
            time.sleep(1.3)
            print("printed", file=stream, flush=True)
            print("part of a line", end="", file=stream, flush=True)
            time.sleep(1.3)
    shown = os.read(terminal, 10_000).decode().replace("\r\n", "\n")
    os.close(terminal)
    line = "crowdveil inspect lima … 1 s"
    assert shown.startswith(f"\r{line}")
    assert shown.endswith(f"\r{line}\r{' ' * len(line)}\rprinted\npart of a line"), (
        "erased first, and never within a line"
    )
