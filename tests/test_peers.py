"""The works of `benchmarks/peers`, by crowdveil and by the peers that are installed here, and its page."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from peers.works import WORKS

MODULES = {"uxsim": "uxsim", "uxsim_platoons": "uxsim", "sumo_micro": "sumo", "sumo_meso": "sumo"}
SIZES = {"routes": 500, "composition": 10}
pytestmark = pytest.mark.slow
PAIRS = [(work, program) for work, programs in WORKS.items() for program in programs if work != "case"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("peers")
    WORKS["case"]["crowdveil"](100, home)
    return home


@pytest.mark.parametrize(("work", "program"), PAIRS)
def test_every_program_does_its_work(work, program, folder, monkeypatch):
    if program != "crowdveil" and find_spec(MODULES.get(program, program)) is None:
        pytest.skip(f"{program} is not installed")
    # Only a part of pure-ldp is imported; the rest of the tests must not see it.
    monkeypatch.setitem(sys.modules, "pure_ldp.frequency_oracles", ModuleType("part"))
    seconds, amount = WORKS[work][program](SIZES.get(work, 100), folder)
    assert seconds >= 0.0
    assert amount == WORKS[work]["crowdveil"](SIZES.get(work, 100), folder)[1] > 0
