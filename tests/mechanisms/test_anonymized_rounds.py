"""Several answers to one query: the first attempt, cancelling, and deniability; which errors grow."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanism_cases import DENIABLE

from mechanisms.local import AnonymizedCancelling, AnonymizedDeniable, AnonymizedFirstAttempt, NotEstimableError
from mechanisms.local.common.protocol_mechanism import LinearEstimator
from mechanisms.privacy import LinkedReports, Report
from mechanisms.protocols import Tallies, best_estimator

POPULATIONS = [10**3, 10**4, 10**5, 10**6, 10**7]
FIRST = AnonymizedFirstAttempt(cells=1, base=0.4, shift_yes=0.3, shift_no=0.1)
CANCELLING = AnonymizedCancelling(cells=1, shift=0.2)
DENYING = AnonymizedDeniable(cells=1, **DENIABLE)
shares = st.floats(0.05, 0.95)


def errors(mechanism, yes=50):
    return np.array([mechanism.std_error(np.array([no, yes]))[0] for no in POPULATIONS])


def test_error_growth_of_each_mechanism():
    """By √10 per decade for the first attempt and for deniability; constant for cancelling."""
    for mechanism in (FIRST, DENYING):
        growth = errors(mechanism)[1:] / errors(mechanism)[:-1]
        np.testing.assert_allclose(growth[1:], math.sqrt(10), rtol=0.01)
    np.testing.assert_allclose(errors(CANCELLING), np.full(5, math.sqrt(50 * 0.8 / 0.2)), rtol=1e-12)


def test_first_attempt_with_equal_shifts_is_not_estimable():
    mechanism = AnonymizedFirstAttempt(cells=1, base=0.4, shift_yes=0.2, shift_no=0.2)
    with pytest.raises(NotEstimableError, match="the Yes terms cancel too"):
        mechanism.std_error(np.array([10, 10]))
    assert mechanism.claim(LinkedReports()).epsilon == 0.0


def test_first_attempt_has_constant_error_only_without_privacy():
    """The exception is item 9's: π_N = 0 has constant error, and (⊥1, ⊥2) then identifies a Yes-holder."""
    steady = AnonymizedFirstAttempt(cells=1, base=0.4, shift_yes=0.3, shift_no=0.0)
    assert len(set(errors(steady))) == 1
    claim = steady.claim(LinkedReports())
    assert claim.kind == "infinite"
    assert "(⊥1, ⊥2) is given only by a device in the cell" in claim.basis
    assert claim.delta(30.0) == pytest.approx(0.6)
    half = AnonymizedFirstAttempt(cells=1, base=0.5, shift_yes=0.2, shift_no=0.5)
    assert len(set(errors(half).round(9))) == 1
    assert half.claim(LinkedReports()).kind == "infinite"
    assert FIRST.claim(LinkedReports()).kind == "exact"


@settings(deadline=None)
@given(shift=st.floats(0.05, 0.95), first=shares, second=shares, inside=st.integers(0, 50), seed=st.integers(0, 2**32))
def test_cancelling_as_published(shift, first, second, inside, seed):
    """Eqs 40-45, and C[⊥1,A] − C[⊥1,B] ~ Bin(YES, π_Y) for any number of No-holders."""
    stay = [(1 - shift) * first * second, (1 - shift) * first * (1 - second), (1 - shift) * (1 - first)]
    mechanism = AnonymizedCancelling(cells=1, shift=shift, stay=stay)
    (yes_a, no_a), (yes_b, no_b) = (mechanism.binary_query.in_round(r) for r in (1, 2))
    moved = [np.eye(3)[i] * shift for i in range(3)]
    np.testing.assert_allclose([yes_a, no_a], [stay + moved[0], stay + moved[1]], atol=1e-9)
    np.testing.assert_allclose([yes_b, no_b], [stay + moved[2], stay + moved[2]], atol=1e-9)
    counts = mechanism.sample_counts(np.array([10**6, inside]), rng=np.random.default_rng(seed))
    difference = counts[0, 0, 0] - counts[1, 0, 0]
    assert 0 <= difference <= inside
    asked = [10**6 + inside] * 2
    estimate = mechanism.estimate(counts, counted=asked, asked=asked)
    assert estimate.count[0] == difference / shift
    assert estimate.interval == "binomial inversion"


def test_cancelling_has_no_deniability():
    """Linking both answers reveals the truth of a shifted device, as the paper itself states (sec VII-B)."""
    for cells, certain in ((1, 0.2), (4, 1 - 0.8**2)):
        claim = dataclasses.replace(CANCELLING, cells=cells).claim(LinkedReports())
        assert (claim.kind, claim.delta_kind) == ("infinite", "exact")
        assert "(⊥1, ⊥3) is given only by a device in the cell" in claim.basis
        assert "(⊥2, ⊥3) is given only by a device not in it" in claim.basis
        for epsilon in (0.0, 1.0, 20.0, math.inf):
            assert claim.delta(epsilon) == pytest.approx(certain)
    assert CANCELLING.claim(Report(2)).epsilon == pytest.approx(0.0, abs=1e-12)  # round B alone reveals nothing
    assert CANCELLING.claim(Report(1)).epsilon == pytest.approx(math.log((0.8 / 3 + 0.2) / (0.8 / 3)))


def test_deniable_errors_of_about_220_and_2180():
    """papers.md: σ about 220 and 2,180 at NO = 10³ and 10⁵ with s = .2.

    The other parameters are not recorded. The error is √(n₁(1 + n₁/(n₂c))/(s·y₁²)) per No-holder, so the two figures
    determine only that number, about 6.9; many choices give it, for example y₁ = n₁ = .3, n₂ = c = .4.
    """
    small, large = (DENYING.std_error(np.array([no, 50]))[0] for no in (10**3, 10**5))
    assert small == pytest.approx(220, rel=0.01)
    assert large == pytest.approx(2180, rel=0.01)
    assert (round(small, 1), round(large, 1)) == (220.7, 2189.2)
    another = AnonymizedDeniable(
        cells=1, shift=0.2, yes_second=0.4, yes_third=0.1, no_second=0.5, no_third=0.5, onward=0.5
    )
    small, large = (another.std_error(np.array([no, 100]))[0] for no in (10**3, 10**5))
    assert (round(small, 1), round(large, 1)) == (219.1, 2165.3)


def test_deniability_is_one_sided_unless_yes_holders_move_too():
    """Any answer of a Yes-holder is possible for a No-holder; (⊥1, ⊥3, ⊥2) is possible only for a No-holder."""
    assert DENYING.binary_query.only_from_yes == ()
    claim = DENYING.claim(LinkedReports())
    assert claim.kind == "infinite"
    assert "(⊥1, ⊥3, ⊥2) is given only by a device not in it" in claim.basis
    assert claim.delta(math.inf) == pytest.approx(0.2 * 0.4 * 0.4)
    for number in (1, 2, 3):
        assert DENYING.claim(Report(number)).kind == "exact"
    assert DENYING.claim(Report(1)).epsilon == pytest.approx(0.0, abs=1e-12)
    both = dataclasses.replace(DENYING, onward_yes=0.1)
    assert both.claim(LinkedReports()).epsilon == pytest.approx(math.log(0.16 / 0.03))
    assert errors(both)[2] > errors(DENYING)[2]


def test_known_population_does_not_stop_the_error_growth():
    """The best linear estimator from all nine counts has an error a quarter smaller, which still grows as √NO."""
    best = best_estimator(Tallies.by_round(DENYING.protocol), "yes", population={"yes": 1, "no": 9_999})
    growing = dataclasses.replace(DENYING)
    growing.__dict__["linear_estimator"] = LinearEstimator.of(best)
    ratio = errors(growing) / errors(DENYING)
    assert (ratio < 1).all()
    assert ratio[2] == pytest.approx(0.759, abs=1e-3)
    np.testing.assert_allclose(errors(growing)[2:] / errors(growing)[1:-1], math.sqrt(10), rtol=0.01)


def test_no_holders_that_never_move_leave_the_yes_count_determined():
    """Var = YES(1/(s·y₁) − 1): the moves to ⊥2 in B are those of Yes-holders only."""
    still = dataclasses.replace(DENYING, no_second=0.0, no_third=0.0)
    share = still.shift * still.yes_second
    assert still.std_error(np.array([500, 80]))[0] == pytest.approx(math.sqrt(80 * (1 / share - 1)))


def test_undetermined_yes_count_is_not_estimated():
    for change in ({"onward": 0.0}, {"yes_second": 0.0}, {"no_third": 0.0}):
        mechanism = dataclasses.replace(DENYING, **change)
        with pytest.raises(NotEstimableError, match="do not determine YES and NO"):
            mechanism.std_error(np.array([1, 1]))
    even = dataclasses.replace(DENYING, no_third=0.3, onward=0.4, onward_yes=0.4)
    with pytest.raises(NotEstimableError):
        even.std_error(np.array([1, 1]))


@pytest.mark.parametrize("mechanism", [FIRST, CANCELLING, DENYING], ids=lambda m: type(m).__name__)
def test_the_estimator_in_floats_is_the_exact_one(mechanism):
    exact, floats = mechanism.linear_estimator, mechanism.float_estimator
    np.testing.assert_allclose(floats.weights, exact.weights, rtol=1e-12, atol=1e-12)
    assert floats.offset == pytest.approx(exact.offset, rel=1e-12)


def test_the_estimator_in_floats_is_refused_where_the_exact_one_is():
    mechanism = AnonymizedFirstAttempt(cells=2, base=0.5, shift_yes=0.3, shift_no=0.3)
    for name in ("linear_estimator", "float_estimator"):
        with pytest.raises(NotEstimableError, match="Yes terms cancel"):
            getattr(mechanism, name)
