"""The conformance kit: it passes correct mechanisms, finds faults, and has at most the stated false alarms."""

import itertools
import json
import zlib
from functools import partial
from types import SimpleNamespace
from unittest import SkipTest

import numpy as np
import pytest
from broken_mechanisms import (
    BROKEN,
    COINS,
    SAMPLING,
    SMALL_FAULTS,
    Biased,
    ClaimsFreshCoins,
    ClaimsHalfBeyondTen,
    ClaimsHalfBeyondThree,
    ClaimsHalfOfThreeQueries,
    OneInAThousandSendsTruth,
)
from mechanism_cases import GOOD
from minimal_mechanism import PlainResponse
from scipy.stats import binom

from mechanisms.local import NoPrivacy, ParameterError, RandomizedResponse, SamplingPrivacy
from simulator.kits.findings import ConformanceError, Findings
from simulator.kits.mechanism import MechanismContract, check_mechanism
from simulator.kits.mechanisms.bounds import bernstein
from simulator.kits.mechanisms.harness import STATISTICAL_CHECKS, Harness

examine = partial(check_mechanism, raise_failures=False)
CHECKS = tuple(MechanismContract.checks())


class TestSamplingPrivacy(MechanismContract):
    """The contract as a user subclasses it: pytest runs every check as a test."""

    quick = True

    def make(self, *, cells):
        return SamplingPrivacy(cells=cells, sampling=0.45)


def test_a_test_of_a_contract_fails_with_every_fault_and_is_skipped_as_the_check_is():
    biased = MechanismContract.of(Biased(**SAMPLING), quick=True)
    with pytest.raises(AssertionError, match=r"a device in cell 1 adds .*; a device in cell 3 adds"):
        biased.test_no_bias()
    biased.test_reports()
    with pytest.raises(SkipTest, match="no view of reports is claimed infinite"):
        MechanismContract.of(RandomizedResponse(**COINS), quick=True).test_infinite_claims()


def test_a_contract_without_a_mechanism_cannot_be_made_and_knows_its_settings():
    with pytest.raises(TypeError, match="abstract"):
        MechanismContract()
    with pytest.raises(TypeError, match="quack"):
        check_mechanism(SamplingPrivacy, quack=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_every_mechanism_passes_at_two_sizes(name):
    check_mechanism(GOOD[name], devices=5_000, seed=100)


@pytest.mark.slow
def test_no_check_of_sampling_privacy_is_skipped():
    report = check_mechanism(GOOD["sampling"])
    assert not [result for result in report.results if result.status == "skipped"]


@pytest.mark.slow
def test_false_alarm_rate_is_at_most_the_stated_level():
    """At a level of 1/4, in twenty checks of correct mechanisms; Bonferroni makes false alarms rarer."""
    alarms = sum(
        not examine(mechanism, seed=seed, level=0.25, devices=2_000, queries=1, sizes=1).passed
        for seed in range(10)
        for mechanism in (RandomizedResponse(cells=1, first_coin=0.5, second_coin=0.3), GOOD["sampling, one cell"])
    )
    assert binom.sf(alarms - 1, 20, 0.25) > 1e-6


@pytest.mark.parametrize(
    ("mechanism", "intended"), BROKEN, ids=[f"{type(mechanism).__name__}: {name}" for mechanism, name in BROKEN]
)
def test_each_fault_is_found_by_its_intended_check(mechanism, intended):
    result = MechanismContract.of(mechanism, devices=12_000, queries=1, sizes=1).result(intended)
    assert result.status == "failed"
    assert result.detail


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "intended"),
    [
        pytest.param(mechanism, intended, id=type(mechanism).__name__, marks=pytest.mark.thorough if row else ())
        for row, (mechanism, intended) in enumerate(SMALL_FAULTS)
    ],
)
def test_small_faults_are_found_by_a_thorough_check(mechanism, intended):
    """Checks that compare the false statement with others may also fail."""
    report = examine(mechanism, thorough=True, queries=1, sizes=1)
    assert intended in [result.name for result in report.failures]


def test_claim_that_ignores_memoisation_between_queries_is_found():
    mechanism = ClaimsFreshCoins(cells=1, epsilon_permanent=2.0, epsilon_first=1.99)
    one, two = (examine(mechanism, devices=10_000, queries=queries, sizes=1) for queries in (1, 2))
    assert one["releases_hold"].passed
    assert "Shuffled(round=1, devices=1, queries=2," in two["releases_hold"].detail
    assert "claimed 0" in two["releases_hold"].detail


def test_claim_wrong_for_more_than_three_cells_is_found():
    report = examine(ClaimsHalfBeyondThree(**COINS), devices=10_000, queries=1)
    assert report.cells == (3, 10)
    assert report["claims_hold"].detail.startswith("with 10 cells: report_round_1: ε is at least")
    assert examine(ClaimsHalfBeyondThree(**COINS), devices=10_000, queries=1, sizes=1)["claims_hold"].passed


def test_claim_wrong_for_three_queries_only_is_found():
    mechanism = ClaimsHalfOfThreeQueries(cells=3, epsilon=1.0)
    assert "of 3 queries: ε is at least" in examine(mechanism, devices=12_000, sizes=1)["claims_hold"].detail
    assert examine(mechanism, devices=12_000, queries=2, sizes=1)["claims_hold"].passed


def test_claim_wrong_for_more_than_ten_cells_is_found():
    report = examine(ClaimsHalfBeyondTen(cells=3, epsilon=1.0), queries=1)
    assert report["claims_hold"].detail.startswith("with 32 cells: report_round_1")


@pytest.mark.slow
def test_one_device_in_a_thousand_that_sends_the_truth_is_found_by_a_thorough_check():
    """Among many cells a report of one cell alone is rare otherwise; with three it is not, and the report says so."""
    mechanism, findings = OneInAThousandSendsTruth(cells=32, epsilon=1.0), Findings()
    trial = Harness(mechanism, 0, 1e-6, 2_000_000, 1, thorough=True)
    MechanismContract.checks()["claims_hold"](trial, findings)
    assert any("with the sum of all entries: ε is at least" in fault for fault in findings.faults)
    few = examine(OneInAThousandSendsTruth(cells=3, epsilon=1.0), quick=True)
    assert few.passed
    assert "Not seen at this size" in str(few)


def test_what_cannot_be_seen_is_said():
    quick, usual = examine(GOOD["no privacy"], quick=True), examine(GOOD["no privacy"])
    assert "more than 3 cells, 8 devices in a cell or one query" in quick.limits
    assert "fewer than 1 in 8 devices" in quick.limits
    assert "more than 32 cells, 8 devices in a cell or 3 queries" in usual.limits
    assert "fewer than 1 in 40 devices" in usual.limits
    assert "--thorough" in usual.limits
    assert usual.to_dict()["limits"] == usual.limits


def test_a_class_or_function_is_made_at_both_sizes():
    made = []

    def make(*, cells):
        made.append(cells)
        return SamplingPrivacy(cells=cells, sampling=0.45)

    report = examine(make, cells=4, devices=2_000, queries=1)
    assert (report.passed, report.cells, made) == (True, (4, 10), [4, 10, 32])
    assert examine(PlainResponse, devices=2_000, queries=1).cells == (3, 10)
    assert examine(GOOD["no privacy, one cell"], devices=2_000, queries=1).cells == (1, 10)
    assert examine(partial(NoPrivacy), cells=12, devices=2_000, queries=1).cells == (12, 3)


def test_unavailable_second_size_is_reported():
    for mechanism, why in (
        (PlainResponse(cells=3), "dataclass"),
        (partial(SamplingPrivacy, sampling=0.3, blank=[0.1, 0.3, 0.05]), "blank"),
        (lambda *, cells: GOOD["no privacy"], "made with so many, it has 3"),  # noqa: ARG005
    ):
        report = examine(mechanism, devices=2_000, queries=1)
        assert report.cells == (3,)
        assert report.passed
        assert "not checked with 10 cells" in report["attributes"].detail
        assert why in report["attributes"].detail


@pytest.mark.parametrize("kind", [ValueError, TypeError])
def test_error_messages_may_have_any_wording(kind):
    class OtherMessages(PlainResponse):
        """Refuses what it should, with its own messages."""

        def __getattribute__(self, name):
            method = super().__getattribute__(name)
            if name not in ("enrol", "answer", "tally", "estimate", "sample_counts"):
                return method

            def call(*arguments, **keywords):
                try:
                    return method(*arguments, **keywords)
                except ValueError as error:
                    raise kind("das geht nicht") from error

            return call

    report = examine(OtherMessages(cells=3), quick=True)
    assert report["bad_inputs"].passed, str(report)


def test_broken_mechanisms_cover_every_check():
    assert len({type(mechanism) for mechanism, _ in BROKEN}) >= 25
    assert {name for _, name in BROKEN} == set(CHECKS)


def test_minimal_user_mechanism_passes_with_skipped_checks_named():
    report = examine(PlainResponse(cells=3), devices=15_000)
    report.raise_for_failures()
    assert "std_error" in report["attributes"].detail
    assert report["standard_error"].status == "skipped"
    assert "cell by cell" in report["sample_law"].detail


class OnlyCurve:
    """A claim of ε, kind and δ only."""

    def __init__(self, claim):
        self.epsilon, self.kind, self.delta = claim.epsilon, claim.kind, claim.delta


class PlainClaims(PlainResponse):
    def claim(self, view):
        return OnlyCurve(super().claim(view))


class PlainEstimates(PlainResponse):
    def estimate(self, counts, **received):
        return SimpleNamespace(**vars(super().estimate(counts, **received)))


class NumberedMemory(PlainResponse):
    def enrol(self, n, *, rng):
        return len(super().enrol(n, rng=rng))

    def toss(self, memory, *, rng):
        return super().toss(np.zeros(memory), rng=rng)


class Rows(list):
    nbytes, joined = 1, staticmethod(lambda parts: Rows(itertools.chain(*parts)))

    def __getitem__(self, chosen):
        masked = isinstance(chosen, np.ndarray) and chosen.dtype == np.bool_
        return Rows(itertools.compress(self, chosen)) if masked else super().__getitem__(chosen)


class ListedReports(PlainResponse):
    def answer(self, round, truth, coins):  # noqa: A002
        return Rows(super().answer(round, truth, coins).tolist())

    def encode(self, reports):
        return super().encode(np.array(reports, dtype=np.int64))

    def tally(self, reports, where=None):
        return super().tally(np.array(reports, dtype=np.int64), where)


REFUSED = {
    PlainClaims: ("claims_sound", "Claim, got OnlyCurve"),
    PlainEstimates: ("estimates", "Estimate, got SimpleNamespace"),
    NumberedMemory: ("reports", "memory[device numbers]"),
    ListedReports: ("reports", "reports[indices]"),
}


@pytest.mark.parametrize("own", REFUSED, ids=lambda own: own.__name__)
def test_what_a_run_refuses_fails_the_check(own):
    check, words = REFUSED[own]
    result = examine(own, quick=True)[check]
    assert result.status == "failed"
    assert words in result.detail


@pytest.mark.parametrize("name", ["cells", "toss", "encode", "claim", "sample_counts"])
def test_missing_attribute_is_named(name):
    class Hollow(PlainResponse):
        pass

    mechanism = Hollow(cells=3)
    hidden = property(lambda self: self.__missing)  # hasattr is False
    setattr(Hollow, name, hidden)
    mechanism.__dict__.pop(name, None)
    report = examine(mechanism)
    assert f"lacks {name}" in report["attributes"].detail
    assert {result.status for result in report.results[1:]} == {"skipped"}


def test_any_exception_of_a_mechanism_is_reported():
    class Fragile(SamplingPrivacy):
        def toss(self, memory, *, rng):  # noqa: ARG002
            raise ZeroDivisionError("die broke")

        def __repr__(self):
            raise RuntimeError("no name")

    report = examine(Fragile(**SAMPLING))
    assert not report.passed
    assert report.mechanism == "Fragile"
    assert "ZeroDivisionError: die broke" in report["reports"].detail


def test_non_estimable_mechanism_skips_estimate_checks():
    class NotEstimableError(ValueError):
        pass

    class Mute(SamplingPrivacy):
        def estimate(self, counts, *, counted, asked):  # noqa: ARG002
            raise NotEstimableError("one equation, two unknowns")

    report = examine(Mute(**SAMPLING), quick=True)
    report.raise_for_failures()
    assert report["no_bias"].status == "skipped"
    assert "two unknowns" in report["no_bias"].detail


@pytest.mark.slow
def test_non_affine_estimate_is_checked_as_a_whole():
    class Bent(RandomizedResponse):
        """Unbiased nevertheless: the added term depends on a parity that is equally often odd and even."""

        shove = 0.0

        def estimate(self, counts, *, counted, asked):
            estimate = super().estimate(counts, counted=counted, asked=asked)
            sign = 1.0 if zlib.crc32(np.asarray(counts).tobytes()) % 2 else -1.0
            object.__setattr__(estimate, "count", estimate.count + sign * 0.01 + self.shove)
            return estimate

    # With coins this fair, no answer is certain.
    good = examine(Bent(cells=2, first_coin=0.5, second_coin=0.5), quick=True)
    assert "not an affine map" in good["no_bias"].detail
    assert good["no_bias"].passed
    assert good["standard_error"].passed
    Bent.shove = 10.0
    assert not examine(Bent(cells=2, first_coin=0.5, second_coin=0.5), quick=True)["no_bias"].passed


def test_conformance_report():
    report = examine(Biased(**SAMPLING), devices=20_000, queries=1, seed=3)
    assert [result.name for result in report.results] == list(CHECKS)
    assert "seed 3" in str(report)
    assert "failed" in str(report)
    with pytest.raises(ConformanceError, match="no_bias: a device in cell 1 adds") as raised:
        report.raise_for_failures()
    assert raised.value.report is report
    with pytest.raises(KeyError):
        report["no such check"]
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["passed"] is False
    assert len(plain["checks"]) == len(report.results)
    assert "passes" in str(examine(GOOD["no privacy"], quick=True))
    with pytest.raises(AttributeError):
        report.seed = 4


def test_seed_determines_the_report():
    first, again, other = (examine(GOOD["sampling"], seed=seed, quick=True) for seed in (5, 5, 6))
    assert first == again
    assert first["no_bias"].figures != other["no_bias"].figures


def test_comparisons_together_use_at_most_the_level():
    report = examine(GOOD["binary sampling"], level=1e-4, devices=4_000)
    spent = [r.figures["comparisons"] * r.figures["alpha"] for r in report.results if "alpha" in r.figures]
    assert len(spent) == STATISTICAL_CHECKS
    # Of the third instance only two of the ten checks are run.
    assert sum(spent) == pytest.approx(1e-4 * (1 + 1 + 2 / 10) / 3)
    assert report.comparisons == sum(r.figures.get("comparisons", 0) for r in report.results)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seed", -1),
        ("devices", 10),
        ("queries", 0),
        ("queries", 4),
        ("sizes", 0),
        ("sizes", 3),
        ("level", 0.0),
        ("level", 1.0),
        ("level", np.nan),
    ],
)
def test_invalid_settings_are_refused(field, value):
    with pytest.raises(ParameterError, match=rf"^{field} must"):
        examine(GOOD["no privacy"], **{field: value})


def test_quick_and_thorough_exclude_each_other():
    with pytest.raises(ParameterError, match=r"^thorough must be False"):
        examine(GOOD["no privacy"], quick=True, thorough=True)


def test_too_many_cells_are_refused_with_a_message():
    report = examine(SamplingPrivacy(cells=17, sampling=0.4))
    assert "check a smaller instance" in report["attributes"].detail


examine_likelihood = partial(check_mechanism, raise_failures=False, devices=20_000, queries=1, sizes=1)


class Right(PlainResponse):
    """k-ary randomized response with the logarithms of its two probabilities."""

    def logs(self, vectors):
        return np.where(vectors == 1, np.log(self._p), np.log(self._q))

    def log_likelihood(self, reports, rounds):
        assert rounds == (1,)
        (vectors,) = reports
        assert vectors.dtype == np.int64
        assert vectors.shape[1:] == self.tally_shape
        return self.logs(vectors)


class TooSure(Right):
    """Logarithms a third too far apart."""

    def logs(self, vectors):
        return 1.33 * super().logs(vectors)


class RulesOut(Right):
    """States that a device outside never reports the first cell."""

    def logs(self, vectors):
        found = super().logs(vectors)
        found[vectors[:, 1] == 1, 0] = -np.inf
        return found


class WrongShape(Right):
    def logs(self, vectors):
        return super().logs(vectors)[:, 1:]


@pytest.mark.parametrize("seed", range(2))
def test_a_right_likelihood_passes(seed):
    report = examine_likelihood(Right(cells=3), seed=seed)
    assert report["likelihood"].status == "passed", str(report)
    assert report["likelihood"].figures["greatest deviation"] < 0.02


@pytest.mark.parametrize("wrong", [TooSure, RulesOut, WrongShape])
def test_a_wrong_likelihood_is_found(wrong):
    assert not examine_likelihood(wrong(cells=3))["likelihood"].passed


def test_a_mechanism_without_a_likelihood_is_not_said_to_be_safe():
    result = examine_likelihood(PlainResponse(cells=3))["likelihood"]
    assert result.status == "skipped"
    assert "not tried" in result.detail


def test_a_rare_report_that_the_sample_lacks_raises_no_alarm():
    """Of 2,000 reports, all are of the truth that is stated with 99.9 %: two of the other are expected, none came."""
    assert bernstein(2_000, np.array(0.001 * 0.999), np.ones(()), 1e-9) > 0.001
