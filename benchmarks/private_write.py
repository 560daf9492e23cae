"""Bytes and time of a private write, for a device and for a server, beside a report of one vector and one seed."""

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from timing import seconds, spread

from simulator.aggregation.private_write import Expansion, expand, key_nbytes, levels_of, write
from simulator.aggregation.secret_sharing import WORD_NBYTES, AdditiveSharing

REPORTS = 128
"""Reports that a server adds up at once; a device makes one."""


def works(cells: int, rng: np.random.Generator) -> dict[str, tuple[Callable[[], object], Callable[[], object], int]]:
    """Return what is done by private writes and by vectors, and for how many reports, by who does it."""
    drawn = rng.integers(2**64 - 1, size=(3, REPORTS, 2), dtype=np.uint64)
    leaves, values = np.zeros(REPORTS, dtype=np.int64), np.tile(np.array([1, 0], dtype=np.uint64), (REPORTS, 1))
    keys = write(leaves, values, drawn[:2], Expansion(drawn[2]), levels_of(cells))
    sharing, vector = AdditiveSharing(2), np.eye(1, cells, dtype=np.int64)
    vectors = rng.integers(2**64 - 1, size=(2, REPORTS, cells), dtype=np.uint64)

    def write_one() -> None:
        write(leaves[:1], values[:1], drawn[:2, :1], Expansion(drawn[2, :1]), levels_of(cells))

    def expand_all() -> None:
        received = replace(keys, expansion=Expansion(drawn[2]))  # the server derives the keys of AES again
        expand(received, 1, cells).sum(axis=0)

    return {
        "device": (write_one, lambda: sharing.split(vector, rng=rng), 1),
        "server": (expand_all, lambda: vectors[1].sum(axis=0), REPORTS),
    }


def main() -> None:
    """Measure both and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[100, 1_024, 10_000])
    parser.add_argument("--repetitions", type=int, default=15)
    chosen = parser.parse_args()
    for cells in chosen.cells:
        key, vector = key_nbytes(cells), WORD_NBYTES * cells
        print(f"{cells:,} cells: {key:,} bytes to each server, a vector has {vector:,}: ratio {key / vector:.4f}")
        for who, (private, plain, reports) in works(cells, np.random.default_rng(1)).items():
            taken = [
                (1e6 * seconds(private, repetitions=1)[0] / reports, 1e6 * seconds(plain, repetitions=1)[0] / reports)
                for _ in range(chosen.repetitions)
            ]
            print(f"  {who}: private write {spread([one for one, _ in taken], unit='µs', digits=0)}")
            print(f"          vector        {spread([other for _, other in taken], unit='µs', digits=1)}")
            print(f"          ratio         {spread([one / other for one, other in taken], digits=1)}")


if __name__ == "__main__":
    main()
