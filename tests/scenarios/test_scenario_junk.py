"""Any file content gives a scenario or faults, never another exception."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios import Scenario, ScenarioError

VALID_WITH_EVERYTHING = """
[scenario]
name = "small"
duration_s = 600
warmup_s = 100
[roads]
source = "grid"
rows = 4
columns = 4
spacing_m = 200
anchor = {lon = 1, lat = 2}
[cells]
kind = "square"
size_m = 200
bounds = [0, 0, 5, 5]
[traffic]
vehicles = 50
departures = [{from_s = 0, to_s = 600, share = 1.0}]
[population]
outside = 3
[channel]
latency_s = {kind = "lognormal", median_s = 1, sigma = 0.5}
loss = 0.1
[claims]
crowds = [1, 2]
[[campaigns]]
name = "rush"
start_s = 120
queries = 2
every_s = 120
round_gap_s = 30
[[mechanisms]]
kind = "sampling_privacy"
sampling = 0.45
blank_zero = 0.25
blank = [0.1, 0.2]
[[mechanisms]]
kind = "my.module:Class"
size = [1, 2]
"""

JUNK = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.datetimes()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) of a parsed file."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_content_gives_a_scenario_or_faults(data, tmp_path_factory):
    raw = tomllib.loads(VALID_WITH_EVERYTHING)
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(raw)))
        if data.draw(st.booleans()):
            container[key] = data.draw(JUNK)
        else:
            del container[key]
    outcome = Scenario.check(raw, tmp_path_factory.getbasetemp())
    if isinstance(outcome, list):
        assert outcome
        message = str(ScenarioError("spoiled", outcome))
        assert "pydantic" not in message.lower()
        assert len(message.splitlines()) == 1 + len(outcome)
    else:
        assert isinstance(outcome, Scenario)
