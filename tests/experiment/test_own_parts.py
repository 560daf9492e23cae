"""Users' own classes and objects in Python and by name: refusals, permission, checksums, and errors in them."""

from types import SimpleNamespace

import numpy as np
import pytest

import crowdveil as cv
from crowdveil import ScenarioError
from mechanisms.local import Estimate, KRandomizedResponse
from simulator.files.errors import InputError


class PlainClaims(KRandomizedResponse):
    def claim(self, view):
        made = super().claim(view)
        return SimpleNamespace(epsilon=made.epsilon, kind=made.kind, delta=made.delta)


class PlainEstimates(KRandomizedResponse):
    def estimate(self, counts, *, counted, asked):
        return SimpleNamespace(count=super().estimate(counts, counted=counted, asked=asked).count)


class NumberedMemory(KRandomizedResponse):
    def enrol(self, n, *, rng):
        return super().enrol(n, rng=rng).devices


REFUSED = {
    PlainClaims: "own: PlainClaims.claim must return a mechanisms.privacy.Claim, got SimpleNamespace",
    PlainEstimates: "PlainEstimates.estimate must return a mechanisms.local.Estimate, got SimpleNamespace",
    NumberedMemory: "mechanisms.own: NumberedMemory.enrol must return NoMemory, or memory that an array of",
}


def tiny(**changes):
    return cv.scenarios.load("tiny").with_({"traffic.vehicles": 900, **changes})


@pytest.mark.parametrize("own", REFUSED, ids=lambda own: own.__name__)
def test_a_mechanism_that_the_kit_fails_is_refused_in_one_message(own):
    with pytest.raises((ScenarioError, InputError)) as refused:
        cv.run(tiny(mechanisms=[{"name": "own", "kind": own, "epsilon": 2.0}]))
    assert REFUSED[own] in " ".join(str(refused.value).split())


class Sum:
    """Aggregator of several servers that adds up their counts, `times` each."""

    servers = 2

    def __init__(self, times=1):
        self.times = times

    def combine(self, tallies):
        total = sum(tally.own.count for tally in tallies) * self.times
        zero = np.zeros(len(total))
        return Estimate(total, zero, total, total, "exact")


def test_classes_without_the_methods_of_their_role_are_refused():
    with pytest.raises(cv.ScenarioError, match=r"aggregation.kind: .* role aggregator: it must have combine"):
        cv.run(tiny(aggregation={"kind": PlainClaims}))


def test_parameters_are_refused_in_plain_words():
    with pytest.raises(cv.ScenarioError, match=r"refuses its parameters: .*unexpected keyword argument 'fast'"):
        cv.run(tiny(aggregation={"kind": Sum, "fast": 1}))
    with pytest.raises(cv.ScenarioError, match="is an object and takes no parameters, received times"):
        cv.run(tiny(aggregation={"kind": Sum(), "times": 2}))


def test_named_kinds_need_permission_and_objects_do_not():
    named = {"aggregation": {"kind": "statistics:NormalDist"}}
    with pytest.raises(cv.ScenarioError, match="only with permission"):
        cv.run(tiny(**named))
    with pytest.raises(cv.ScenarioError, match="must be a class for the role aggregator"):
        cv.run(tiny(**named), allow_plugins=True)


def test_run_lists_own_kinds_with_checksums(tmp_path):
    result = cv.run(tiny(aggregation={"kind": Sum}), out=tmp_path / "run")
    (name,) = result.record.plug_ins
    assert name.endswith(":Sum")
    assert len(result.record.plug_ins[name]) == 64
    assert (tmp_path / "run" / "report.html").exists()
    assert cv.load(tmp_path / "run").estimates.equals(result.estimates)


class Failing(Sum):
    """Aggregator that divides by zero."""

    def combine(self, tallies):
        return 1 / len([None for _ in tallies if False])


def test_error_in_a_users_class_names_the_kind_and_the_line():
    words = r"aggregation.kind: .*:Failing raises ZeroDivisionError: .*line \d+ of test_"
    with pytest.raises(cv.ScenarioError, match=words):
        cv.run(tiny(aggregation={"kind": Failing}))


@pytest.mark.parametrize("key", ["channel.latency_s", "release"])
def test_roles_that_are_not_open_take_no_class(key):
    with pytest.raises(cv.ScenarioError, match=rf'{key}.kind: must be one of "'):
        cv.scenarios.load("tiny").with_({f"{key}.kind": f"{__name__}:Sum"})
