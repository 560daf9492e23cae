"""Two rounds of Sampling Privacy, coins and tallies included, beside the same in plain numpy, on one core."""

import argparse

import numpy as np
import numpy.typing as npt
from timing import seconds, spread

from mechanisms.local import SamplingPrivacy


def plain(truth: npt.NDArray[np.int32], cells: int, sampling: float, rng: np.random.Generator) -> None:
    """Run the paper's protocol in straightforward numpy, without optimisation."""
    sampled = rng.random(len(truth)) < sampling
    blank = rng.integers(cells + 1, size=len(truth))
    np.bincount(np.where(sampled, 0, blank), minlength=cells + 1)
    np.bincount(np.where(sampled, truth, blank), minlength=cells + 1)


def main() -> None:
    """Measure both implementations and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--cells", type=int, default=1_000)
    parser.add_argument("--repetitions", type=int, default=9)
    chosen = parser.parse_args()
    rng = np.random.default_rng(1)
    mechanism = SamplingPrivacy(cells=chosen.cells, sampling=0.45)
    truth = rng.integers(chosen.cells + 1, size=chosen.devices).astype(np.int32)

    def ours() -> None:
        coins = mechanism.toss(mechanism.enrol(chosen.devices, rng=rng), rng=rng)
        for round_ in (1, 2):
            mechanism.tally(mechanism.answer(round_, truth, coins))

    mine, theirs = [], []
    for _ in range(chosen.repetitions):
        mine += seconds(ours, repetitions=1)
        theirs += seconds(lambda: plain(truth, chosen.cells, 0.45, rng), repetitions=1)
    rate = chosen.devices / 1e6
    print(f"{chosen.devices:,} devices, {chosen.cells:,} cells, two rounds")
    print(f"ours        : {spread([rate / taken for taken in mine], unit='million devices/s', digits=1)}")
    print(f"plain numpy : {spread([rate / taken for taken in theirs], unit='million devices/s', digits=1)}")
    print(f"ratio       : {spread([b / a for a, b in zip(mine, theirs, strict=True)])}")

    population = np.zeros(10_001, dtype=np.int64)
    population[0], population[1:] = 10**9 - 10_000 * 100, 100
    wide = SamplingPrivacy(cells=10_000, sampling=0.45)
    counts = seconds(lambda: wide.sample_counts(population, rng=rng), repetitions=chosen.repetitions)
    print(f"sample_counts, 10⁹ devices, 10⁴ cells: {spread([taken * 1e3 for taken in counts], unit='ms')}")


if __name__ == "__main__":
    main()
