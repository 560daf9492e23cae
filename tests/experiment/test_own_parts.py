"""Users' own latencies and releases, as classes and objects in Python and by name."""

from types import SimpleNamespace

import numpy as np
import pytest

import crowdveil as cv
from crowdveil import ScenarioError
from mechanisms.central import SampleThenSuppress
from mechanisms.local import Estimate, KRandomizedResponse
from mechanisms.privacy import Claim
from simulator.files.errors import InputError


class TwoSpeeds:
    """Latency of one second for most messages and of a minute for the others."""

    def __init__(self, slow=0.25):
        self.slow = slow

    def draw(self, reports, *, rng):
        return np.where(rng.random(reports) < self.slow, 60.0, 1.0)

    def exceeds(self, seconds):
        return 1.0 if seconds < 1 else self.slow if seconds < 60 else 0.0


class Rounded:
    """Release of counts rounded to multiples of ten."""

    def __init__(self, to=10):
        self.to = to

    def publish(self, counts, *, rng):  # noqa: ARG002 - nothing is drawn
        count = np.round(counts / self.to) * self.to
        half = np.full(len(counts), self.to / 2)
        return Estimate(count.astype(float), half, np.clip(count - half, 0, None), count + half, "exact")

    def std_error(self, true_counts):
        return abs(np.round(true_counts / self.to) * self.to - true_counts)

    def claim(self, *, crowd, queries=1):  # noqa: ARG002 - no claim is made
        return Claim.unknown("Rounding is no protection that is known here.")


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


@pytest.mark.parametrize("kind", [TwoSpeeds, TwoSpeeds(0.25), f"{__name__}:TwoSpeeds"])
@pytest.mark.parametrize("engine", ["batches", "messages"])
def test_own_latency(kind, engine):
    scenario = tiny(**{"channel.latency_s": {"kind": kind}, "sensing.engine": engine})
    late = cv.run(scenario, allow_plugins=True).rounds
    share = late["late"].sum() / late["answered"].sum()
    # A message is late with probability 1/4, independently: within five standard deviations.
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / late["answered"].sum()) ** 0.5


def test_own_latency_gives_the_same_share_to_counts():
    scenario = tiny(**{"channel.latency_s": {"kind": TwoSpeeds}, "population.answers": "counts"})
    late = cv.run(scenario).rounds
    share = late["late"].sum() / late["answered"].sum()
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / late["answered"].sum()) ** 0.5


@pytest.mark.parametrize("release", [{"kind": Rounded}, {"kind": Rounded, "to": 10}, {"kind": Rounded(10)}])
def test_own_release_of_counts(release):
    result = cv.run(tiny(release=release))
    found = result.estimates.query("mechanism == 'baseline'")
    np.testing.assert_array_equal(found["estimate"] % 10, 0)
    assert (abs(found["estimate"] - found["truth"]) <= 5).all()
    assert "Rounding is no protection" in result.claims["basis"].str.cat()


@pytest.mark.parametrize("own", REFUSED, ids=lambda own: own.__name__)
def test_a_mechanism_that_the_kit_fails_is_refused_in_one_message(own):
    with pytest.raises((ScenarioError, InputError)) as refused:
        cv.run(tiny(mechanisms=[{"name": "own", "kind": own, "epsilon": 2.0}]))
    assert REFUSED[own] in " ".join(str(refused.value).split())


class Claims(Rounded):
    def claim(self, *, crowd, queries=1):
        return {"crowd": crowd, "queries": queries}


def test_a_release_whose_claim_is_none_is_refused():
    with pytest.raises(InputError, match=r"Claims\.claim must return a mechanisms\.privacy\.Claim, got dict"):
        cv.run(tiny(release={"kind": Claims}))


def test_own_release_needs_all_reports():
    with pytest.raises(cv.ScenarioError, match="every report must arrive"):
        cv.run(tiny(**{"release": {"kind": Rounded}, "channel.loss": 0.1}))


def test_classes_without_the_methods_of_their_role_are_refused():
    for changes, words in (
        ({"channel.latency_s": {"kind": Rounded}}, r"channel.latency_s.kind: .* role latency: it must have draw"),
        ({"release": {"kind": TwoSpeeds}}, r"release.kind: .* role release: it must have publish"),
        ({"aggregation": {"kind": TwoSpeeds}}, r"aggregation.kind: .* role aggregator: it must have combine"),
    ):
        with pytest.raises(cv.ScenarioError, match=words):
            cv.run(tiny(**changes))


def test_parameters_are_refused_in_plain_words():
    with pytest.raises(cv.ScenarioError, match=r"refuses its parameters: .*unexpected keyword argument 'fast'"):
        cv.run(tiny(**{"channel.latency_s": {"kind": TwoSpeeds, "fast": 1}}))
    with pytest.raises(cv.ScenarioError, match="is an object and takes no parameters, received slow"):
        cv.run(tiny(**{"channel.latency_s": {"kind": TwoSpeeds(), "slow": 0.5}}))


def test_named_kinds_need_permission_and_objects_do_not():
    named = {"channel.latency_s": {"kind": "statistics:NormalDist"}}
    with pytest.raises(cv.ScenarioError, match="only with permission"):
        cv.run(tiny(**named))
    with pytest.raises(cv.ScenarioError, match="must be a class for the role latency"):
        cv.run(tiny(**named), allow_plugins=True)


def test_built_in_class_in_the_place_of_a_name_works_too():
    kept = cv.run(tiny(release={"kind": SampleThenSuppress, "k": 2, "sampling": 1.0}))
    assert len(kept.estimates)


def test_run_lists_own_kinds_with_checksums(tmp_path):
    result = cv.run(tiny(release={"kind": Rounded}), out=tmp_path / "run")
    (name,) = result.record.plug_ins
    assert name.endswith(":Rounded")
    assert len(result.record.plug_ins[name]) == 64
    assert (tmp_path / "run" / "report.html").exists()
    assert cv.load(tmp_path / "run").estimates.equals(result.estimates)


class Failing:
    """Aggregator and latency that divide by zero."""

    servers = 2

    def combine(self, tallies):
        return 1 / len([None for _ in tallies if False])

    def draw(self, reports, *, rng):
        return rng.random(reports) / (1 // (reports - reports))

    def exceeds(self, seconds):  # noqa: ARG002 - the interface
        return 0.0


@pytest.mark.parametrize("key", ["aggregation", "channel.latency_s"])
def test_error_in_a_users_class_names_the_kind_and_the_line(key):
    words = rf"{key}.kind: .*:Failing raises ZeroDivisionError: .*line \d+ of test_"
    with pytest.raises(cv.ScenarioError, match=words):
        cv.run(tiny(**{key: {"kind": Failing}}))
