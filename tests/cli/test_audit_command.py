"""`crowdveil audit`: a randomiser in, an ε from below, a bias and an exit code out."""

import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from simulator.cli.new import new
from simulator.kits.findings import global_random_states

OWN = """
import math, random
import numpy as np

TRUE = math.e / (math.e + 3)

def k_ary(value):
    return value if random.random() < TRUE else (value + random.randint(1, 3)) % 4

def of_generator(value, *, rng):
    return int(rng.integers(0, 2)) if rng.random() < 0.5 else value

def estimate(reports):
    false = (1 - TRUE) / 3
    return (np.bincount(reports, minlength=4) - len(reports) * false) / (TRUE - false)

def laplace(value):
    return value + np.random.laplace(0.0, 3.0)

def odd(value):
    return float("nan") if random.random() < 0.001 else value + np.random.laplace(0.0, 0.5)

def broken(value):
    raise RuntimeError("no coins")
"""


@pytest.fixture
def audit(call, tmp_path):
    """`crowdveil audit` in a directory with a user's module."""
    (tmp_path / "own_randomisers.py").write_text(OWN, encoding="utf-8")
    yield partial(call, "audit")
    for module in ("own_randomisers", "my_randomisers", "my_privacy"):
        sys.modules.pop(module, None)


def test_claim_that_is_not_contradicted(audit):
    done = audit("own_randomisers:k_ary", "--epsilon", "1", "--estimator", "own_randomisers:estimate")
    assert done.returncode == 0
    assert "does not contradict the claimed ε = 1." in done.stdout
    assert "proves no privacy" in done.stdout
    assert "No bias was found." in done.stdout


def test_claim_that_is_contradicted(audit):
    done = audit("own_randomisers:k_ary", "--epsilon", "0.7")
    assert done.returncode == 1
    assert "contradicts the claimed ε = 0.7" in done.stdout
    assert "ias" not in done.stdout


@pytest.mark.parametrize(("epsilon", "code"), [("1", 0), ("0.7", 1)])
def test_mechanism_of_the_page(audit, monkeypatch, capfd, tmp_path, epsilon, code):
    page = (Path(__file__).parents[2] / "docs" / "how" / "audit.md").read_text(encoding="utf-8")
    (tmp_path / "my_randomisers.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    new("mechanism", "my_privacy")
    capfd.readouterr()
    done = audit(
        "my_randomisers:k_ary", "--epsilon", epsilon, "--estimator", "my_randomisers:estimate", "--trials", "10000"
    )
    assert done.returncode == code
    assert "No bias was found." in done.stdout


def test_reports_that_are_no_numbers_do_not_hide_what_contradicts_the_claim(audit):
    done = audit("own_randomisers:odd", "--epsilon", "1", "--estimator", "report")
    assert done.returncode == 1
    assert "contradicts the claimed ε = 1" in done.stdout
    assert "0: not all of its reports are finite numbers" in done.stdout


def test_figures_are_the_same_for_the_same_seed_and_global_states_are_restored(audit):
    before = global_random_states()
    first, again, other = (
        json.loads(audit("own_randomisers:k_ary", "--trials", "2000", "--seed", seed, "--json").stdout)
        for seed in ("1", "1", "2")
    )
    assert global_random_states() == before
    assert first == again
    assert first["epsilon_from_below"] != other["epsilon_from_below"]
    assert first["bias"] is None
    assert first["epsilon_claimed"] is None
    assert first["outcomes"] == 4


def test_function_with_a_generator_and_reports_that_are_numbers(audit):
    given = json.loads(audit("own_randomisers:of_generator", "--values", "2", "--trials", "5000", "--json").stdout)
    assert 0.8 < given["epsilon_from_below"] <= np.log(3)
    noisy = json.loads(audit("own_randomisers:laplace", "--estimator", "report", "--trials", "5000", "--json").stdout)
    assert noisy["epsilon_from_below"] <= 1.0
    assert not noisy["bias"]["found"]
    assert noisy["bias"]["unit"] == "value"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["own_randomisers:broken"], "RuntimeError: no coins"),
        (["own_randomisers:absent"], "cannot be imported"),
        (["k_ary"], "must be package.module:callable"),
        (["own_randomisers:k_ary", "--estimator", "estimate"], "must be package.module:callable"),
        (["own_randomisers:k_ary", "--confidence", "0.2"], "--confidence"),
        (["own_randomisers:k_ary", "--trials", "120", "--estimator", "own_randomisers:estimate"], "trials"),
    ],
)
def test_mistakes_end_with_a_message(audit, arguments, message):
    done = audit(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
