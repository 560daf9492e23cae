"""The examples of docs/how/aggregators.md run as written, in order, and show what the page says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how" / "aggregators.md"


def test_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks[0].splitlines()) <= 60
    names: dict[str, object] = {"__name__": "docs_aggregators"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - the page's own code
    printed = capsys.readouterr().out
    assert "SumOfServers: root mean square error without privacy 500.0 vehicles" in printed
    (error,) = re.findall(r"MedianOfServers: root mean square error without privacy ([0-9.]+) vehicles", printed)
    assert float(error) < 50
    found = names["found"]
    for _, rows in found.groupby("mechanism"):
        gain = rows["theory"] - rows["prior"]
        assert abs(gain.iloc[2] / gain.iloc[0] - 3) < 1
