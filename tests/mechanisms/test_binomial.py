"""Binomial probabilities against exact integer arithmetic."""

from fractions import Fraction
from math import comb

import pytest

from mechanisms.privacy.binomial import mass_above, mass_at, mass_up_to


@pytest.mark.parametrize("n", [0, 1, 15, 16, 300])
@pytest.mark.parametrize("p", [0.0, 1e-6, 0.45, 1.0])
def test_masses_and_tails_are_exact(n, p):
    share = Fraction(p)
    masses = [comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(n + 1)]
    for k in range(-1, n + 2, max(1, n // 20)):
        inside = masses[k] if 0 <= k <= n else 0
        # Below the smallest normal double no value has twelve digits.
        assert float(mass_at(k, n, p)) == pytest.approx(float(inside), rel=1e-11, abs=1e-300)
        assert float(mass_above(k, n, p)) == pytest.approx(float(sum(masses[max(k + 1, 0) :])), rel=1e-11, abs=1e-300)
        assert float(mass_up_to(k, n, p)) == pytest.approx(float(sum(masses[: max(k + 1, 0)])), rel=1e-11, abs=1e-300)
