"""LQS's tables and figures: every printed digit, every conclusion, and the false ones."""

import math

import pytest

from simulator.papers.monte_carlo import Rate, allowed_success
from simulator.papers.published_results import ENTRIES as EVERY_ENTRY
from simulator.papers.published_results import read_paper, same_digits

ENTRIES = [entry for entry in EVERY_ENTRY if entry.paper == "LQS"]
BY_NAME = {entry.name: entry for entry in ENTRIES}
# False statements of the paper; everything else agrees.
UNTRUE = {
    "lqs-fig4": {f"epsilon={e}: powers of ten between the four" for e in ("0.6", "1", "1.5", "2", "2.5")},
    "lqs-fig5": {"k=1: least delta over epsilon", "k=1, epsilon=2: exact delta"},
}
CALM = ("lqs-table1", "lqs-table2", "lqs-fig1", "lqs-fig2", "lqs-fig3", "lqs-fig4", "lqs-fig5", "lqs-fig6")


def test_every_lqs_table_and_figure_has_an_entry():
    attacked = ("lqs-closure", "lqs-noncomposition", "lqs-recoding", "lqs-theorem6")
    assert [entry.name for entry in ENTRIES] == [*CALM, *attacked]
    assert {entry.paper for entry in ENTRIES} == {"LQS"}


@pytest.mark.parametrize("name", CALM)
def test_entries_without_simulation_do_not_depend_on_the_seed(name):
    done = BY_NAME[name].reproduce(seed=1)
    assert {row.key for row in done.rows if row.agrees is False} == UNTRUE.get(name, set())
    assert all(row.note for row in done.rows if row.agrees is not True)
    assert done.charts
    for chart in done.charts:
        for series in chart.series:
            assert len(series.x) == len(series.y) > 1
    assert done == BY_NAME[name].reproduce(seed=2)
    assert done.to_dict()["rows"]


def test_without_sampling_epsilon_is_unchanged():
    curves = [one for chart in BY_NAME["lqs-table1"].reproduce(seed=0).charts for one in chart.series]
    ends = [one.y[-1] for one in curves if one.name.startswith("unsampled")]
    assert ends == pytest.approx([0.5, 1.0, math.log(11)])


def test_table_2_agrees_in_every_printed_digit():
    rows = BY_NAME["lqs-table2"].reproduce(seed=0).rows
    printed = [row for row in rows if isinstance(row.published, float)]
    assert len(printed) == 18
    assert all(row.agrees for row in printed)
    (declared,) = (entry for entry in read_paper("safe_sampling").entry if entry.name == "lqs-table2")
    assert [row.published for row in printed] == [float(text) for line in declared.printed.values() for text in line]
    exact = {row.key.removesuffix(", exact"): row.computed for row in rows if row.key.endswith(", exact")}
    assert all(0 < exact[row.key] < row.computed for row in printed)


@pytest.mark.parametrize(
    ("computed", "printed", "same"),
    [
        (6.828e-10, "6.83e-10", True),
        (6.836e-10, "6.83e-10", False),
        (1.9981e-24, "2.00e-24", True),
        (9.996e-4, "1.00e-03", True),
        (0.15857, "0.159", True),
        (0.1595001, "0.159", False),
        (11.0000001, "11", True),
        (1e-5, "1e-5", True),
    ],
    ids=str,
)
def test_same_digits(computed, printed, same):
    assert same_digits(computed, printed) is same


def test_allowed_success_of_a_claim():
    assert allowed_success(0.0, 0.0) == 0.5
    assert allowed_success(0.0, 0.2) == 0.6
    assert allowed_success(50.0, 0.0) == pytest.approx(1.0)
    assert Rate(90, 100).interval() == Rate(90, 100).interval(alpha=0.05)
    assert Rate(90, 100).exceeds(0.5)
    assert not Rate(90, 100).exceeds(0.89)
    assert Rate(50, 100).agrees_with(0.5)
    assert not Rate(5_000, 10_000).agrees_with(0.6)
