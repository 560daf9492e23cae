"""`crowdveil check`: a mechanism in, a table and an exit code out."""

import json
import sys
from functools import partial

import pytest

BIASED = """
from dataclasses import replace
from mechanisms.local import SamplingPrivacy

class Biased(SamplingPrivacy):
    def estimate(self, counts, *, counted, asked):
        estimate = super().estimate(counts, counted=counted, asked=asked)
        return replace(estimate, count=estimate.count + 5)

broken = 1 / 0
"""


@pytest.fixture
def check(call):
    """`crowdveil check` in an empty directory of a user's."""
    return partial(call, "check")


@pytest.mark.parametrize("name", ["SamplingPrivacy", "mechanisms.local:SamplingPrivacy"])
def test_a_sound_mechanism_exits_with_0_and_a_table(check, name):
    done = check(name, "--set", "sampling=0.4", "--quick", "--seed", "2")
    assert done.returncode == 0
    assert "sampling=0.4" in done.stdout
    assert "cells=3" in done.stdout
    assert "passes every check" in done.stdout
    assert "with 3 cells" in done.stdout
    assert "seed 2" in done.stdout
    for check_name in ("attributes", "own_coins", "claims_hold", "bad_inputs"):
        assert check_name in done.stdout
    assert done.stderr == ""


def test_json(check):
    done = check(
        "RandomizedResponse", "--set", "first_coin=0.8", "--set", "second_coin=0.2", "--cells", "1", "--quick", "--json"
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["seed"]) == (0, True, 0)
    assert {check["status"] for check in report["checks"]} == {"passed", "skipped"}


def test_a_users_own_faulty_mechanism_exits_with_1(check, tmp_path):
    (tmp_path / "my_faulty_mechanism.py").write_text(BIASED.replace("broken = 1 / 0", ""))
    done = check("my_faulty_mechanism:Biased", "--set", "sampling=0.4", "--quick")
    assert done.returncode == 1
    assert "fails" in done.stdout
    assert "no_bias" in done.stdout
    sys.modules.pop("my_faulty_mechanism", None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.such.module:Thing"], ["cannot be imported", "no.such"]),
        (["Nothing"], ["cannot be imported", "Nothing"]),
        (["SamplingPrivacy", "--set", "sampling=7"], ["refuses its parameters", "sampling must be", "7"]),
        (["SamplingPrivacy", "--set", "sampling"], ["key.path=value"]),
        (["SamplingPrivacy"], ["refuses its parameters", "sampling"]),
        (["mechanisms.local:truth"], ["cannot be imported"]),
        (["exploding:Thing"], ["cannot be imported", "ZeroDivisionError"]),
        (["SamplingPrivacy", "--set", "sampling=0.4", "--quick", "--thorough"], ["--quick", "--thorough"]),
        (["SamplingPrivacy", "--cells", "0"], ["--cells"]),
    ],
)
def test_a_users_mistake_exits_with_2_and_one_message(check, tmp_path, arguments, words):
    (tmp_path / "exploding.py").write_text(BIASED)
    done = check(*arguments)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr


ATTACK = """
from simulator.attacks.reconstruction import RoundAttack

class Spy(RoundAttack):
    def __init__(self, shift=0):
        super().__init__()
        object.__setattr__(self, "shift", shift)

    def guess(self, observation, prior, *, rng):
        found = super().guess(observation, prior, rng=rng)
        for one in found:
            one.cells[:] += self.shift
        return found

class Both(Spy):
    def combine(self, tallies):
        return None

class Neither:
    pass

def make():
    return Spy()

spy = 7
"""


@pytest.fixture
def spies(check, tmp_path):
    (tmp_path / "own_spies.py").write_text(ATTACK)
    yield check
    sys.modules.pop("own_spies", None)


def test_the_kit_of_the_role_is_chosen_by_the_methods_of_the_class(spies):
    done = spies("own_spies:Spy", "--seed", "2")
    assert done.returncode == 0, done.stderr
    for word in ("nothing_written_on", "no privacy: right", "passes every check", "seed 2"):
        assert word in done.stdout
    assert "comparisons" not in done.stdout


@pytest.mark.parametrize("name", ["Spy", "make", "Both"])
def test_the_role_can_be_named(spies, name):
    done = spies(f"own_spies:{name}", "--role", "attack", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["cells"]) == (0, True, [6])
    assert "attack" in report
    assert "mechanism" not in report


def test_a_faulty_attack_exits_with_1(spies):
    done = spies("own_spies:Spy", "--set", "shift=9")
    assert done.returncode == 1
    assert "fails 1 of 9 checks" in done.stdout
    assert "0…6" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["own_spies:Neither"],
            ["Neither has the methods of no role", "attack: guess", "aggregator: combine", "--role"],
        ),
        (["own_spies:make"], ["no role", "mechanism: enrol, toss"]),
        (["own_spies:Both"], ["several roles, aggregator and attack", "--role"]),
        (["own_spies:spy"], ["must be a class", "int"]),
        (["own_spies:Spy", "--quick"], ["--quick", "mechanisms only", "role attack"]),
        (["own_spies:Spy", "--cells", "3", "--thorough"], ["--cells, --thorough", "mechanisms only"]),
        (["own_spies:Spy", "--set", "shaft=1"], ["refuses its parameters", "shaft"]),
        (["own_spies:Spy", "--role", "spy"], ["--role", "is not one of 'mechanism', 'aggregator', 'attack'"]),
    ],
)
def test_a_mistake_about_the_role_exits_with_2_and_one_message(spies, monkeypatch, arguments, words):
    monkeypatch.setenv("COLUMNS", "400")  # so that the message is one line
    done = spies(*arguments)
    assert done.returncode == 2
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr
