"""docs/audit.md lists every randomiser that the audit knows, with bounds that contradict no claim."""

import math
import re
from pathlib import Path

import pytest

from simulator.kits.audit_adapters import ADAPTERS

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in row.strip("|\n").split("|")] for row in re.findall(r"(?m)^\| `[\w-]+:.*\|$", PAGE)]


def test_every_adapter_has_a_row():
    assert {re.match(r"`([^`]+)`", row[0]).group(1) for row in ROWS} == set(ADAPTERS)


def test_figures_agree_with_the_sentences():
    for row in ROWS:
        assert float(row[3]) <= float(row[2]) == 1.0
        if "l-grr" not in row[0]:
            assert float(row[3]) >= 0.94, row[0]
        low, high = (float(end) for end in re.search(r"\[(.*), (.*)\]", row[4]).groups())
        assert (row[5] == "yes") == (not low <= 0 <= high), row[0]


@pytest.mark.parametrize(("values", "printed"), [(2, 1.0), (4, 0.901), (10, 0.699)])
def test_epsilon_of_longitudinal_k_ary_response(values, printed):
    """Both steps of L-GRR as multi-freq-ldpy 0.2.5 chooses them, with ε = 2 of the permanent report and 1 of one."""
    first, second = math.exp(2.0), math.exp(1.0)
    p = first / (first + values - 1)
    q = (1 - p) / (values - 1)
    again = (q - second * p) / (-p * second + values * q * second - q * second - p * (values - 1) + q)
    other = (1 - again) / (values - 1)
    same, changed = p * again + (1 - p) * other, p * other + q * again + (values - 2) * q * other
    assert math.log(same / changed) == pytest.approx(printed, abs=5e-4)
