"""R's stream of random numbers, as its defaults draw them: to have the very populations a paper's R code made."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

# R scrambles a seed by steps of this congruential generator: 50 first, then one for each word of the state.
MULTIPLIER, WORD, SCRAMBLES, STATE_WORDS = 69069, 2**32, 50, 624
# A word becomes a fraction by this factor, and fractions are kept inside (0, 1) by half of the other.
FRACTION, EDGE = 2.3283064365386963e-10, 2.328306437080797e-10
# A normal number is made from 27 + 32 bits.
FINE = 2**27


class RStream:
    """What `set.seed(seed)` starts in R ≥ 1.7: the Mersenne Twister, and normal numbers by inversion.

    Parameters
    ----------
    seed
        The argument of `set.seed`, 0 or above.
    """

    def __init__(self, seed: int) -> None:
        words = []
        for step in range(SCRAMBLES + STATE_WORDS + 1):
            seed = (MULTIPLIER * seed + 1) % WORD
            # The first word of R's state is the twister's position, which it then sets to the end.
            if step > SCRAMBLES:
                words.append(seed)
        self._words = np.random.MT19937()
        key = np.array(words, dtype=np.uint32)
        self._words.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": STATE_WORDS}}
        self._left: NDArray[np.float64] = np.empty(0)

    def uniform(self, n: int) -> NDArray[np.float64]:
        """Return `runif(n)`, (n,) float64."""
        missing = max(0, n - len(self._left))
        drawn = np.clip(self._words.random_raw(missing) * FRACTION, EDGE / 2, 1.0 - EDGE / 2)
        numbers = np.concatenate([self._left, drawn])
        self._left = numbers[n:]
        return numbers[:n]

    def normal(self, n: int) -> NDArray[np.float64]:
        """Return `rnorm(n)`, (n,) float64."""
        coarse, fine = self.uniform(2 * n).reshape(n, 2).T
        numbers: NDArray[np.float64] = ndtri((np.floor(FINE * coarse) + fine) / FINE)
        return numbers

    def beta(self, n: int, a: float, b: float) -> NDArray[np.float64]:
        """Return `rbeta(n, a, b)` for 1 < a ≤ b, (n,) float64: Cheng's algorithm BB (1978), two uniforms a trial."""
        shape = a + b
        rate = np.sqrt((shape - 2.0) / (2.0 * a * b - shape))
        kept = np.empty(0)
        while len(kept) < n:
            pairs = self.uniform(2 * n)
            first, second = pairs.reshape(n, 2).T
            logit = rate * np.log(first / (1.0 - first))
            odds = a * np.exp(logit)
            height = np.log(first * first * second)
            slack = (a + 1.0 / rate) * logit - 1.3862944
            # Two quick tests accept without the exact one, and a hair beyond it: so they are part of the stream.
            quick = (a + slack - odds + 2.609438 >= 5.0 * np.exp(height)) | (a + slack - odds > height)
            accepted = quick | (slack + shape * np.log(shape / (b + odds)) >= height)
            places = np.flatnonzero(accepted)[: n - len(kept)]
            kept = np.concatenate([kept, (odds / (b + odds))[places]])
            if len(kept) == n:
                self._left = np.concatenate([pairs[2 * (places[-1] + 1) :], self._left])
        return kept
