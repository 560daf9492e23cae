"""Private write: what writing into one of many cells costs when neither of two servers may learn which."""

from dataclasses import dataclass

from mechanisms.parameter import check_integer

SEED_BITS = 128
"""λ, the seed of the generator: AES-128's."""
WORD_BITS = 64
FEW_CELLS = 4096


@dataclass(frozen=True)
class PrivateWrite:
    """Two-server private writes by distributed point functions: bytes and operations a report.

    The papers assume that a device can write into a cell's counter while no server learns where (ALP cites Ostrovsky
    and Shoup 1997, *Private Information Storage*, the first to do so with less communication than there are cells).
    Today's way is a distributed point function: a device sends each of two servers a key, which the server expands to
    a share of the one-hot vector. Nothing is expanded here; these are the costs, beside those of `AdditiveSharing`.

    Sizes are those of Boyle, Gilboa and Ishai 2016, *Function Secret Sharing: Improvements and Extensions*, fig 1 and
    sec 3.2: a key is the root's seed (λ bits), a correction word of a seed and two bits (λ + 2) for each level of the
    tree, and a last one that carries the value; n(λ + 2) + λ + log₂|G| bits for 2ⁿ cells. A leaf's seed of λ bits
    holds λ/64 counters, which saves log₂(λ/64) levels ("early termination"). Their 2015 paper, *Function Secret
    Sharing*, had about 4 times as much.

    Parameters
    ----------
    cells
        Counters that can be written to, V ≥ 1.
    counter_bits
        Bits of a counter, log₂|G|: 1…128.
    """

    cells: int
    counter_bits: int = WORD_BITS

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_integer("cells", self.cells, at_least=1)
        check_integer("counter_bits", self.counter_bits, at_least=1, at_most=SEED_BITS)

    @property
    def counters_per_leaf(self) -> int:
        """Counters that one leaf's seed holds."""
        return SEED_BITS // self.counter_bits

    @property
    def leaves(self) -> int:
        """Leaves of the tree that hold the counters."""
        return -(-self.cells // self.counters_per_leaf)

    @property
    def levels(self) -> int:
        """Levels of the tree below its root."""
        return (self.leaves - 1).bit_length()

    @property
    def key_bits(self) -> int:
        """Bits of one server's key."""
        return SEED_BITS + self.levels * (SEED_BITS + 2) + self.counters_per_leaf * self.counter_bits

    @property
    def report_nbytes(self) -> int:
        """Bytes a device sends: a key for each of two servers."""
        return 2 * -(-self.key_bits // 8)

    @property
    def device_expansions(self) -> int:
        """Calls of the generator (one seed to two) that a device makes: both paths to its cell."""
        return 2 * self.levels

    @property
    def server_expansions(self) -> int:
        """Calls of the generator that a server makes to expand one key over all cells: a node above leaves each."""
        return sum(-(-self.leaves // 2**height) for height in range(1, self.levels + 1))

    @property
    def server_additions(self) -> int:
        """Counters that a server adds to, a report: all of them."""
        return self.cells

    @property
    def vector_nbytes(self) -> int:
        """What the same report costs as one vector and one seed."""
        return -(-self.cells * self.counter_bits // 8) + SEED_BITS // 8

    @property
    def saving(self) -> float:
        """How many times fewer bytes than as a vector; below 1 for few cells."""
        return self.vector_nbytes / self.report_nbytes

    @classmethod
    def break_even(cls, *, counter_bits: int = WORD_BITS) -> int:
        """Return the number of cells from which on keys are shorter than a vector and a seed."""
        # Keys grow with the logarithm: beyond so many cells they are shorter for any counter.
        longer = [cells for cells in range(1, FEW_CELLS) if cls(cells, counter_bits).saving <= 1.0]
        return longer[-1] + 1
