"""A small valid scenario, and overrides that make it invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

import scenarios
from scenarios import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

VALID = """
[scenario]
name = "small"
duration_s = 600
warmup_s = 100

[roads]
source = "grid"
rows = 4
columns = 4
spacing_m = 200

[cells]
kind = "square"
size_m = 200

[traffic]
vehicles = 50

[[campaigns]]
name = "rush"
start_s = 120
queries = 2
every_s = 120
round_gap_s = 30

[[campaigns]]
name = "late"
start_s = 400

[[mechanisms]]
name = "sampling"
kind = "sampling_privacy"
sampling = 0.45

[[mechanisms]]
kind = "no_privacy"
"""

TABLES = """
[roads]
source = "tables"
nodes = "nodes.csv"
edges = "edges.csv"

[roads.columns]
node = "id"
lon = "lon"
lat = "lat"
from = "a"
to = "b"
"""


class Load(Protocol):
    def __call__(
        self, text: str = VALID, *, overrides: Sequence[str] = (), seed: int | None = None
    ) -> scenarios.Scenario: ...


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a scenario from its text, beside the tables `TABLES` refers to."""
    (tmp_path / "nodes.csv").write_text("id,lon,lat\n")
    (tmp_path / "edges.csv").write_text("a,b\n")

    def load_text(text: str = VALID, *, overrides: Sequence[str] = (), seed: int | None = None) -> scenarios.Scenario:
        file = tmp_path / "small.toml"
        file.write_text(text, encoding="utf-8")
        return scenarios.load(file, overrides=overrides, seed=seed)

    return load_text


@pytest.fixture
def reloaded(tmp_path: Path) -> Callable[[scenarios.Scenario], scenarios.Scenario]:
    """Return a function that writes a scenario to a file, and loads that."""

    def again(scenario: scenarios.Scenario) -> scenarios.Scenario:
        file = tmp_path / "again.toml"
        file.write_text(scenarios.dump(scenario), encoding="utf-8")
        return scenarios.load(file)

    return again


@pytest.fixture
def faults_of() -> Callable[[Callable[[], object]], tuple[Fault, ...]]:
    """Return a function that makes an attempt, and returns its faults, one a line and in words of the project."""

    def check(attempt: Callable[[], object]) -> tuple[Fault, ...]:
        with pytest.raises(ScenarioError) as caught:
            attempt()
        message = str(caught.value)
        assert "pydantic" not in message.lower()
        assert "https://errors" not in message
        assert len(message.splitlines()) == 1 + len(caught.value.faults)
        return caught.value.faults

    return check


@pytest.fixture
def only_fault(faults_of: Callable[..., tuple[Fault, ...]]) -> Callable[..., Fault]:
    """Return a function that makes an attempt, and checks the place and the words of its only fault."""

    def check(attempt: Callable[[], object], path: str, *fragments: str) -> Fault:
        (fault,) = faults_of(attempt)
        assert fault.path == path
        for fragment in fragments:
            assert fragment in str(fault)
        return fault

    return check


@pytest.fixture
def valid_text() -> str:
    return VALID


@pytest.fixture
def tables_text() -> str:
    """The small scenario with its roads read from tables."""
    start, end = VALID.index("[roads]"), VALID.index("[cells]")
    return VALID[:start] + TABLES + VALID[end:]
