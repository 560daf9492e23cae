"""Any file or scenario content is used or refused with a message, in bounded time and memory."""

from __future__ import annotations

import os
import signal
import tomllib
import traceback
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tomli_w
from mutated_inputs import damaged, inputs

import scenarios
from scenarios import ScenarioError
from simulator.experiment.assembly.demand import check_demand
from simulator.experiment.assembly.sumo_traffic import sumo_inputs, sumo_insertions
from simulator.experiment.components import RunComponents
from simulator.experiment.run import run_scenario
from simulator.files.errors import InputError
from simulator.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEED = int(os.environ.get("CROWDVEIL_MUTATION_SEED", "1"))
INPUTS = int(os.environ.get("CROWDVEIL_MUTATED_INPUTS", "5000"))
SCENARIOS = int(os.environ.get("CROWDVEIL_MUTATED_SCENARIOS", "3000"))
INPUT_SHARDS, SCENARIO_SHARDS = (max(1, min(8, number // 100)) for number in (INPUTS, SCENARIOS))
"""A hundred or more a shard: in fewer, chance may leave none that can be read."""
LONGEST_S = 20
MOST_BYTES = 2 * 2**30

resource = pytest.importorskip("resource", reason="Windows has neither timers nor limits of memory")


class TooLongError(BaseException):
    """Not an Exception, so that no reader takes it for a fault of the file."""


@contextmanager
def bounded() -> Iterator[None]:
    """Stop code that takes too long, and limit the address space to what a small input can need."""

    def late(*_: object) -> None:
        raise TooLongError(f"takes more than {LONGEST_S} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - not a file of this project
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + MOST_BYTES, before[1]))
    handler = signal.signal(signal.SIGALRM, late)
    signal.alarm(LONGEST_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def checked(file: Path) -> scenarios.Scenario:
    """Do what `scenarios check` does."""
    scenario = scenarios.load(file)
    streams = Streams(scenario.seed)
    parts = RunComponents.build(scenario)
    check_demand(scenario, parts.city, streams=streams)
    if scenario.traffic.engine == "sumo":
        try:
            sumo_insertions(sumo_inputs(scenario, streams=streams), end_s=parts.end_s)
        except InputError as error:
            raise ScenarioError(scenario.name, [scenarios.Fault("traffic", fault) for fault in error.faults]) from error
    return scenario


def outcome(file: Path, *, runs: bool = False) -> tuple[str, str]:
    """Classify a scenario: "read", "refused", or "crashed" with its traceback."""
    try:
        with bounded(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scenario = checked(file)
            if runs and is_small(scenario):
                run_scenario(scenario)
    except ScenarioError as error:
        lines = str(error).splitlines()
        if "pydantic" in str(error).lower():
            return "crashed", f"a message of a library: {error}"
        long = [line for line in lines if len(line) > 2_500]
        return ("crashed", f"a line of {len(long[0])}: {long[0][:300]}") if long else ("refused", str(error))
    except BaseException:  # noqa: BLE001 - any other exception is what the test searches for
        return "crashed", traceback.format_exc(limit=-6)
    return "read", ""


def is_small(scenario: Any) -> bool:
    """Return whether a scenario certainly runs quickly."""
    queries = sum(campaign.queries for campaign in scenario.campaigns)
    steps = scenario.scenario.duration_s / scenario.traffic.step_s
    vehicles = getattr(scenario.traffic, "vehicles", None) or 0
    return queries <= 4 and steps <= 2_000 and vehicles <= 200 and scenario.traffic.engine == "fleet"


def verdict(found: dict[str, int], crashes: dict[str, str]) -> None:
    assert not crashes, "\n\n".join(f"{name}\n{message}" for name, message in crashes.items())
    assert found["read"], "all were refused: they were not what they should be"
    assert found["refused"], "all were read: none was damaged"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return inputs(tmp_path_factory.mktemp("whole"))


def put(folder: Path, given: Any, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    file = folder / "mutated.toml"
    file.write_text(given, encoding="utf-8")
    return file


@pytest.mark.slow
def test_undamaged_inputs_are_read(whole, tmp_path):
    refused = {}
    for number, (name, given) in enumerate(whole.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        kind, message = outcome(put(folder, given.scenario, given.files))
        if kind != "read":
            refused[name] = message
    assert not refused


def mutate_inputs(whole: dict[str, Any], folder: Path, numbers: range) -> None:
    found, crashes = {"read": 0, "refused": 0, "crashed": 0}, {}
    names = list(whole)
    for number in numbers:
        rng = np.random.default_rng([SEED, number])
        name = names[number % len(names)]
        given = whole[name]
        chosen = list(given.files)[int(rng.integers(len(given.files)))]
        here = folder / str(number)
        here.mkdir()
        files = {**given.files, chosen: damaged(given.files[chosen], rng)}
        kind, message = outcome(put(here, given.scenario, files))
        found[kind] += 1
        if kind == "crashed":
            crashes[f"{number}: {name}: {chosen}"] = message
    verdict(found, crashes)


def test_a_few_mutated_inputs(whole, tmp_path):
    mutate_inputs(whole, tmp_path, range(len(whole)))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(INPUT_SHARDS))
def test_mutated_inputs(whole, tmp_path, shard):
    mutate_inputs(whole, tmp_path, range(shard, INPUTS, INPUT_SHARDS))


VALUES = (
    -1, 0, 1, 2, 7, 0.5, -0.0, 1e-300, 1e300, 10**12, 2**63, 10**400, float("inf"), float("nan"), True, "", "x",
    "x" * 5_000, "a\nb", "../../etc/passwd", "data:", "data:../x", [], [1, 2], {}, {"a": 1}, [{}], "tiny", "square",
    "oue", "uniform", "trips",
)  # fmt: skip


def places(node: Any) -> list[tuple[Any, Any]]:
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


def mutated_scenario(rng: np.random.Generator, texts: list[str]) -> str | bytes:
    """Change values of a shipped scenario, move one from elsewhere, or damage its text."""
    text = texts[int(rng.integers(len(texts)))]
    if rng.random() < 0.3:
        return damaged(text.encode(), rng)
    raw = tomllib.loads(text)
    for _ in range(int(rng.integers(1, 4))):
        container, key = (every := places(raw))[int(rng.integers(len(every)))]
        match int(rng.integers(5)):
            case 0:
                del container[key]
            case 1:
                other, there = every[int(rng.integers(len(every)))]
                container[key] = tomllib.loads(tomli_w.dumps({"v": other[there]}))["v"]
            case 2 if type(container[key]) in (int, float) and abs(container[key]) < 1e300:
                container[key] *= float(rng.choice([1e-6, 0.1, -1.0, 3.0, 1e3, 1e9]))
            case _:
                container[key] = VALUES[int(rng.integers(len(VALUES)))]
    return tomli_w.dumps(raw)


def mutate_scenarios(folder: Path, numbers: range) -> None:
    found, crashes = {"read": 0, "refused": 0, "crashed": 0}, {}
    texts = [item.path.read_text(encoding="utf-8") for item in scenarios.shipped()]
    small = [text for text in texts if 'source = "grid"' in text]
    for number in numbers:
        rng = np.random.default_rng([SEED, 7, number])
        text = mutated_scenario(rng, small if number % 4 else texts)
        file = folder / f"{number}.toml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        kind, message = outcome(file, runs=number % 20 == 0)
        found[kind] += 1
        if kind == "crashed":
            crashes[str(number)] = message
    verdict(found, crashes)


def test_a_few_mutated_scenarios(tmp_path):
    mutate_scenarios(tmp_path, range(30))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SCENARIO_SHARDS))
def test_mutated_scenarios(tmp_path, shard):
    mutate_scenarios(tmp_path, range(shard, SCENARIOS, SCENARIO_SHARDS))
