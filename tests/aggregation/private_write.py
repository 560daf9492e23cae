"""Sizes of private writes by distributed point functions, for the table in docs/collusion.md."""

from dataclasses import dataclass

from mechanisms.parameter import check_integer

COUNTER_BITS = 64
SEED_BITS = 128
"""λ, the bits of the generator's seed of a private write: those of an AES-128 key."""
FEW_CELLS = 4096


@dataclass(frozen=True)
class PrivateWrite:
    """Two-server private writes by distributed point functions: bytes and operations per report.

    The papers assume that a device can write into a cell's counter while no server learns which cell (ALP cites
    Ostrovsky and Shoup 1997, *Private Information Storage*, the first to do so with less communication than there are
    cells). The present method is a distributed point function: a device sends each of two servers a key, which the
    server expands to a share of the one-hot vector. Nothing is expanded here; the class computes the costs, for
    comparison with those of `simulator.aggregation.secret_sharing.AdditiveSharing`.

    Sizes are those of Boyle, Gilboa and Ishai 2016, *Function Secret Sharing: Improvements and Extensions*, fig 1 and
    sec 3.2: a key is the root's seed (λ bits), a correction word of a seed and two bits (λ + 2) for each level of the
    tree, and a last one that holds the value; n(λ + 2) + λ + log₂|G| bits for 2ⁿ cells. A leaf's seed of λ bits
    holds λ/64 counters, which saves log₂(λ/64) levels ("early termination"). Keys in their 2015 paper, *Function Secret
    Sharing*, were about 4 times as long.

    Parameters
    ----------
    cells
        Counters that can be written to, V ≥ 1.
    counter_bits
        Bits of a counter, log₂|G|: 1…128.
    """

    cells: int
    counter_bits: int = COUNTER_BITS

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("cells", self.cells, at_least=1)
        check_integer("counter_bits", self.counter_bits, at_least=1, at_most=SEED_BITS)

    @property
    def leaves(self) -> int:
        """Leaves of the tree that hold the counters."""
        return -(-self.cells // (SEED_BITS // self.counter_bits))

    @property
    def levels(self) -> int:
        """Levels of the tree below its root."""
        return (self.leaves - 1).bit_length()

    @property
    def key_bits(self) -> int:
        """Bits of one server's key."""
        leaf_bits = SEED_BITS // self.counter_bits * self.counter_bits
        return SEED_BITS + self.levels * (SEED_BITS + 2) + leaf_bits

    @property
    def report_nbytes(self) -> int:
        """Bytes that a device sends: a key for each of two servers."""
        return 2 * -(-self.key_bits // 8)

    @property
    def device_expansions(self) -> int:
        """Calls of the generator (one seed to two) that a device makes: along its cell's path in both trees."""
        return 2 * self.levels

    @property
    def server_expansions(self) -> int:
        """Calls of the generator that a server makes to expand a key over all cells: one per node above the leaves."""
        return sum(-(-self.leaves // 2**height) for height in range(1, self.levels + 1))

    @property
    def vector_nbytes(self) -> int:
        """Bytes of the same report sent as one vector and one seed."""
        return -(-self.cells * self.counter_bits // 8) + SEED_BITS // 8

    @property
    def saving(self) -> float:
        """Bytes of the report as a vector and a seed over those as keys; below 1 for few cells."""
        return self.vector_nbytes / self.report_nbytes

    @classmethod
    def break_even(cls, *, counter_bits: int = COUNTER_BITS) -> int:
        """Return the least number of cells from which on keys are shorter than a vector and a seed."""
        # Keys grow with the logarithm of the cells: from FEW_CELLS on they are shorter for any size of counter.
        longer = [cells for cells in range(1, FEW_CELLS) if cls(cells, counter_bits).saving <= 1.0]
        return longer[-1] + 1
