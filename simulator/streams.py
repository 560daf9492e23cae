"""Streams: named random generators, independent of one another."""

import hashlib

import numpy as np


class Streams:
    """Independent random generators, one for each name, derived from the seed of a run.

    A stream depends only on the seed and its name, never on the order in which streams are requested. A mechanism,
    a campaign or an attack added to a scenario therefore leaves the random numbers of all others unchanged.

    Parameters
    ----------
    seed
        The seed of the run, 0 or above.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def of(self, *name: str | int) -> np.random.Generator:
        """Return a fresh generator at the start of the stream `name`; the same name gives the same numbers."""
        digest = hashlib.sha256("\0".join(map(str, name)).encode()).digest()
        key = tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self._seed, spawn_key=key)))

    def __repr__(self) -> str:
        return f"<Streams: seed {self._seed}>"
