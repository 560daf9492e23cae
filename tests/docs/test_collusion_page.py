"""The scenario in docs/collusion.md runs as it stands in the page, and shows what the page says."""

import re
from pathlib import Path

from simulator import run

PAGE = (Path(__file__).parents[2] / "docs" / "collusion.md").read_text(encoding="utf-8")


def test_own_coalition_runs(tmp_path):
    (text,) = (text for text in re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL) if "[scenario]" in text)
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    one, two, linked, last = run(path).attacks.itertuples()
    assert last.coalition == "server:1, server:2 (from query 3 to 4), network, vehicles:50"
    assert (one.colluding, two.colluding, linked.colluding, last.colluding) == (1, 2, 3, 53)
    assert one.gain == 0
    assert two.gain_low > 0
    assert linked.theory > two.theory
    assert linked.gain_low > two.gain
    assert last.trials < linked.trials
