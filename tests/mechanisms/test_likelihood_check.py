"""The kit compares a mechanism's `log_likelihood` with the frequencies of its reports."""

from functools import partial

import numpy as np
import pytest
from minimal_mechanism import PlainResponse

from mechanisms.conformance import check_mechanism
from mechanisms.conformance.bounds import bernstein

examine = partial(check_mechanism, raise_failures=False, devices=20_000, queries=1, sizes=1)


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


class Zeros(Right):
    def logs(self, vectors):
        return np.zeros(vectors.shape)


class Reversed(Right):
    def logs(self, vectors):
        return -super().logs(vectors)


class TooSure(Right):
    """Logarithms a third too far apart."""

    def logs(self, vectors):
        return 1.33 * super().logs(vectors)


class ForgetsOneCell(Right):
    """Right but for the last cell, of which it says the same whatever is reported."""

    def logs(self, vectors):
        found = super().logs(vectors)
        found[:, -1] = np.log(0.25)
        return found


class RulesOut(Right):
    """States that a device outside never reports the first cell."""

    def logs(self, vectors):
        found = super().logs(vectors)
        found[vectors[:, 1] == 1, 0] = -np.inf
        return found


class WrongShape(Right):
    def logs(self, vectors):
        return super().logs(vectors)[:, 1:]


@pytest.mark.parametrize("seed", range(3))
def test_a_right_likelihood_passes(seed):
    report = examine(Right(cells=3), seed=seed)
    assert report["likelihood"].status == "passed", str(report)
    assert report["likelihood"].figures["greatest deviation"] < 0.02


@pytest.mark.parametrize("wrong", [Zeros, Reversed, TooSure, ForgetsOneCell, RulesOut, WrongShape])
def test_a_wrong_likelihood_is_found(wrong):
    for seed in range(3):
        assert not examine(wrong(cells=3), seed=seed)["likelihood"].passed


def test_a_mechanism_without_a_likelihood_is_not_said_to_be_safe():
    result = examine(PlainResponse(cells=3))["likelihood"]
    assert result.status == "skipped"
    assert "not tried" in result.detail


def test_a_rare_report_that_the_sample_lacks_raises_no_alarm():
    """Of 2,000 reports, all are of the truth that is stated with 99.9 %: two of the other are expected, none came."""
    assert bernstein(2_000, np.array(0.001 * 0.999), np.ones(()), 1e-9) > 0.001
