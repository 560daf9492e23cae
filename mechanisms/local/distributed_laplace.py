"""Distributed discrete Laplace noise: every device adds a share of the noise, and only the sum is published."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy

from mechanisms.compiled import Floats, Integers, Mask, expit, logit
from mechanisms.declared import Declared, declaration
from mechanisms.local.common.base import DeclaredMechanism
from mechanisms.local.common.estimators import proportion_variance
from mechanisms.local.common.intervals import LEVEL, CountLaw, QuadraticVariance
from mechanisms.local.common.packed_bits import BATCH_BYTES, BATCH_DEVICES
from mechanisms.local.common.response_counts import ResponseCounts, check_where, estimate_between, estimate_nothing
from mechanisms.local.mechanism import Counts, Estimate, NoMemory, Truth, Vectors, Where
from mechanisms.parameter import ParameterError, check_integer, check_true_counts
from mechanisms.privacy.claim import Claim
from mechanisms.privacy.integer_noise import PartialNoise
from mechanisms.privacy.laplace_noise import noise_claim
from mechanisms.privacy.view import Adjacency, ReleasedCounts, Report


@dataclass(frozen=True, eq=False)
class SparseVectors:
    """Vectors of one round.

    Parameters
    ----------
    rows : (n, cells) scipy.sparse.csr_array of int64
        One vector per device, without duplicate entries or explicit zeros.
    """

    rows: Any

    def __post_init__(self) -> None:
        """Check that the rows are a two-dimensional int64 sparse array."""
        if not isinstance(self.rows, scipy.sparse.csr_array) or self.rows.dtype != np.int64 or self.rows.ndim != 2:
            raise ParameterError("rows", "must be a two-dimensional csr_array of int64", type(self.rows).__name__)

    @classmethod
    def from_entries(
        cls, devices: Integers, cells: Integers, values: Integers, shape: tuple[int, int]
    ) -> "SparseVectors":
        """Build n vectors from entries (device from 0, cell from 0, value); duplicate entries are added."""
        rows: Any = scipy.sparse.csr_array(scipy.sparse.coo_array((values, (devices, cells)), shape=shape))
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return cls(rows)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the stored entries."""
        return int(self.rows.data.nbytes + self.rows.indices.nbytes + self.rows.indptr.nbytes)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __getitem__(self, index: Any) -> "SparseVectors":
        """Return the vectors of some devices: a slice, a boolean mask or an array of indices."""
        return SparseVectors(scipy.sparse.csr_array(self.rows[index]))

    @classmethod
    def joined(cls, parts: "Sequence[SparseVectors]") -> "SparseVectors":
        """Return the vectors of several groups of devices as the vectors of one group."""
        return cls(scipy.sparse.csr_array(scipy.sparse.vstack([part.rows for part in parts])))

    def __repr__(self) -> str:
        """Return the numbers of devices and entries."""
        return f"<SparseVectors of {len(self)} devices, {self.rows.nnz} entries>"

    def to_dense(self) -> Integers:
        """Return a dense (n, cells) int64 array; meant for few devices."""
        return np.asarray(self.rows.toarray())

    def total(self, where: Mask) -> Integers:
        """Return the sum of the masked devices' vectors (all, if the mask is empty), (cells,) int64."""
        # numpy.bincount would add in floating point, numpy.add.at adds integers.
        entries = np.repeat(where, np.diff(self.rows.indptr)) if where.size else slice(None)
        totals = np.zeros(self.rows.shape[1], dtype=np.int64)
        np.add.at(totals, self.rows.indices[entries], self.rows.data[entries])
        return totals


# Number of values to which the noise distribution is merged; probability beyond them on either side; exponent at
# which e^−TAIL is negligible.
ATOMS, OUTSIDE, TAIL = 128, 1e-5, 40.0
# Bytes of an entry of a sparse vector while it is sorted, and of a device's row.
ENTRY_BYTES, ROW_BYTES = 64, 64


@dataclass(frozen=True, kw_only=True)
class DistributedLaplace(DeclaredMechanism):
    """A device sends its one-hot vector plus, in every cell, a (Pólya) difference of two NB(1/N, 1 − α) variables.

    Goryczka and Xiong 2017, *A Comprehensive Comparison of Multiparty Secure Additions with Differential
    Privacy*, sec 3; Ács and Castelluccia 2011 for the idea. Summed over N devices the noise of a cell is exactly
    discrete Laplace noise, P(k) = α^|k|·(1 − α)/(1 + α) with α = e^(−ε/Δ), of variance 2α/(1 − α)² whatever N is.
    A move between cells changes two counts by 1, so Δ = 2. A move to outside changes one count and has ε/2 (with one
    cell Δ = 1). A device outside every cell has a vector of zeros before the noise is added.

    **Private behind secret shares only.** A device's own vector shows its cell, except where a rare entry of noise is
    added; only the sum is protected. If fewer than N devices are counted, there is less noise than intended, and if
    more are counted, there is more: `std_error` and `released_claim` depend on the number counted.

    Parameters
    ----------
    cells : int
        The number of cells V, at least 1.
    epsilon : float
        ε of the summed counts; in 1e-6…50.
    devices : int
        N, the devices expected to be counted; each adds 1/N of the noise.

    Raises
    ------
    ParameterError
        If a parameter is out of range or NaN.
    """

    cells: int
    epsilon: float
    devices: int
    declared: ClassVar[Declared] = declaration("distributed_laplace")

    @property
    def sensitivity(self) -> int:
        """Δ, the total change of the counts by one device's move: 2, or 1 if there is only one cell."""
        return min(2, self.cells)

    @property
    def alpha(self) -> float:
        """α = e^(−ε/Δ)."""
        return math.exp(-self.epsilon / self.sensitivity)

    @property
    def noise_variance(self) -> float:
        """2α/(1 − α)², the variance of a cell's noise over N devices."""
        return 2.0 * self.alpha / self._success**2

    @property
    def tally_shape(self) -> tuple[int]:
        """(V,): one noisy count per cell; there is none for outside."""
        return (self.cells,)

    @property
    def report_bits(self) -> int:
        """Number of bits of a report as sent: one 64-bit word per cell, as in each secret share."""
        return 64 * self.cells

    @property
    def batch(self) -> int:
        """Number of devices per batch; on average their noise takes at most about 64 MB, whatever a device's share."""
        return max(1, min(BATCH_DEVICES, int(BATCH_BYTES / (ROW_BYTES + ENTRY_BYTES * self._jumps))))

    def toss(self, memory: NoMemory, *, rng: np.random.Generator) -> SparseVectors:
        """Draw every device's noise for every cell, as non-zero entries only.

        NB(r, 1 − α) is the sum of a Poisson number, of mean −r·ln(1 − α), of logarithmic variables (Quenouille
        1949). So the number of jumps of all devices is one Poisson variable. Each jump is in a uniform device and cell,
        and goes up or down with probability 1/2.
        """
        n = memory.devices
        jumps = int(rng.poisson(n * self._jumps))
        place = rng.integers(max(n, 1) * self.cells * 2, size=jumps)
        sizes = rng.logseries(self.alpha, size=jumps).astype(np.int64, copy=False)
        values = np.where(place & 1, sizes, -sizes)
        devices, cells = np.divmod(place >> 1, self.cells)
        return SparseVectors.from_entries(devices, cells, values, (n, self.cells))

    def answer(self, round: int, truth: Truth, coins: SparseVectors) -> SparseVectors:  # noqa: A002 - the paper's word
        """Return the sum of each device's one-hot vector and its noise, (n, V) sparse."""
        self.check_answer(round, truth, len(coins))
        inside = np.flatnonzero(truth)
        noise = coins.rows.tocoo()
        devices, cells = noise.coords
        return SparseVectors.from_entries(
            np.concatenate([devices.astype(np.int64), inside]),
            np.concatenate([cells.astype(np.int64), truth[inside] - np.int64(1)]),
            np.concatenate([noise.data, np.ones(len(inside), dtype=np.int64)]),
            (len(coins), self.cells),
        )

    def encode(self, reports: SparseVectors) -> Vectors:
        """Return the vectors as a dense (n, V) int64 array: what devices split into secret shares."""
        return self._check_reports(reports).to_dense()

    def tally(self, reports: SparseVectors, where: Where | None = None) -> Counts:
        """Return the sum of the vectors, (V,) int64."""
        mask = check_where(where, devices=len(self._check_reports(reports)))
        return reports.total(mask)

    def estimate_from(self, counts: Counts, received: ResponseCounts) -> Estimate:
        """Return the noisy counts, or M·C/n if n of M asked devices were counted.

        Parameters
        ----------
        counts : (1, V) int64
        received : ResponseCounts
            Of one round.

        Returns
        -------
        Estimate
            Unbiased. If all devices were counted and their number is N, the interval is exact, from the discrete
            Laplace distribution. Else it inverts the distribution of the noise of those counted and of a simple random
            sample of the devices.
        """
        seen = counts[0]
        if received.silent or received.devices == 0:
            return estimate_nothing(received, self.cells)
        count = seen * (received.devices / received.counted[0])
        if not received.ideal or received.devices != self.devices:
            return estimate_between(count, self.variance(received), self._ends(seen, received), received)
        within, limit = self._half_width(), float(received.devices)
        lower, upper = np.clip(count - within, 0.0, limit), np.clip(count + within, 0.0, limit)
        return Estimate(count, np.full(self.cells, math.sqrt(self.noise_variance)), lower, upper, "exact")

    def variance(self, received: ResponseCounts) -> QuadraticVariance:
        """Return the variance of the noise of the devices counted, plus the variance of sampling them.

        The noise of n devices has the variance 2α/(1 − α)²·n/N. If not all were counted, it is scaled and the variance
        of a simple random sample is added.
        """
        sample = proportion_variance(true_yes=1.0, false_yes=0.0, received=received)
        if received.devices == 0:
            return sample
        rate = received.devices / received.counted[0]
        noise = rate**2 * self.noise_variance * received.counted[0] / self.devices
        return QuadraticVariance(sample.constant + noise, sample.linear, sample.square)

    def sample_counts(self, true_counts: Counts, *, rng: np.random.Generator) -> Counts:
        """Draw (1, V) counts: the truth plus NB(n/N, 1 − α) − NB(n/N, 1 − α) for n devices, independent by cell."""
        truth = check_true_counts(true_counts, self.cells)
        if not truth.any():
            return np.zeros((1, self.cells), dtype=np.int64)
        up, down = rng.negative_binomial(truth.sum() / self.devices, self._success, size=(2, self.cells))
        counts: Counts = (truth[1:] + up - down).astype(np.int64, copy=False)
        return counts[np.newaxis]

    def claim_report(self, view: Report) -> Claim:
        """Return the claim of a plain vector, or of the shares of all servers: it contains one device's noise only.

        Its ε is finite but large, and grows with 2·ln N.
        """
        source = f"One device's own vector, to which it added one of the {self.devices:,} shares of a sum's noise"
        return self._noise_claim(view.queries, view.adjacency, counted=1, source=source)

    def claim_counts(self, view: ReleasedCounts) -> Claim:
        """Return the claim of published counts: of N devices exactly ε, at δ = 0; otherwise see `released_claim`."""
        counted = self.devices if view.counted is None else view.counted
        return self.released_claim(counted=counted, queries=view.queries, adjacency=view.adjacency)

    def released_claim(self, *, counted: int, queries: int = 1, adjacency: Adjacency = "move") -> Claim:
        """Return the claim about the published counts of `counted` devices; fewer than N devices add less noise.

        Parameters
        ----------
        counted : int
            Number of devices whose vectors were added up, at least 1.
        queries : int
            T, the number of queries.
        adjacency : {"move", "enter_leave"}
            A move changes two counts, entering or leaving one.
        """
        check_integer("counted", counted, at_least=1)
        check_integer("queries", queries, at_least=1)
        source = f"The sum of {counted} devices' vectors, {self.devices} being expected"
        if counted < self.devices:
            source += f": {counted / self.devices:.6g} of discrete Laplace noise on each count"
        return self._noise_claim(queries, adjacency, counted=counted, source=source)

    @property
    def _success(self) -> float:
        """Return 1 − α without loss of precision."""
        return -math.expm1(-self.epsilon / self.sensitivity)

    @property
    def _jumps(self) -> float:
        """Return the mean number of noise jumps in a device's vector, counting jumps up and down separately."""
        return -2.0 * self.cells * math.log(self._success) / self.devices

    def _noise_claim(self, queries: int, adjacency: Adjacency, *, counted: int, source: str) -> Claim:
        """Return the claim about a sum over `counted` devices."""
        noise = PartialNoise(self.epsilon / self.sensitivity, counted / self.devices)
        changed = self.cells if adjacency == "move" else 1
        return noise_claim(noise, cells=changed, queries=queries, source=source)

    def _half_width(self) -> int:
        """Return the least h with P(|noise| > h) = 2α^(h + 1)/(1 + α) at most 1 − LEVEL."""
        allowed = (1.0 - LEVEL) * (1.0 + self.alpha) / 2
        return max(0, math.ceil(-math.log(allowed) * self.sensitivity / self.epsilon) - 1)

    def _ends(self, seen: Integers, received: ResponseCounts) -> tuple[Floats, Floats]:
        """Return the ends of the interval if the devices counted are not exactly the N expected.

        They are computed at ATOMS of the observed counts at most and interpolated linearly between these; as functions
        of the count they are almost linear.
        """
        nodes = np.unique(seen)
        nodes = nodes[np.unique(np.linspace(0, len(nodes) - 1, ATOMS).astype(np.int64))]
        n, rows = received.counted[0], len(nodes)
        law = CountLaw.of_proportion(true_yes=1.0, false_yes=0.0, devices=received.devices, counted=n, rows=rows)
        lower, upper = law.solve(nodes, self._noise_atoms(n / self.devices))
        return np.floor(np.interp(seen, nodes, lower)), np.ceil(np.interp(seen, nodes, upper))

    def _noise_atoms(self, share: float) -> tuple[Floats, Floats]:
        """Return values and probabilities of the noise of a share of the N devices, from its Fourier transform.

        Values are merged to ATOMS at most, each group to its greatest value, so that intervals do not get narrower.
        """
        scale = self.epsilon / self.sensitivity
        unit = max(1.0, TAIL / scale / 2**18)
        half = 2 ** math.ceil(math.log2(TAIL / (scale * unit) + 8.0))
        success = -math.expm1(-scale * unit)
        turn = np.exp(2j * np.pi * np.arange(2 * half) / (2 * half))
        law = np.abs(success / (1.0 - (1.0 - success) * turn)) ** (2.0 * share)
        masses = np.maximum(np.roll(np.fft.ifft(law).real, half), 0.0)
        below = masses.cumsum() / masses.sum()
        values = (np.arange(2 * half) - half) * unit
        kept = np.flatnonzero((below > OUTSIDE) & (below - masses < 1.0 - OUTSIDE))
        if len(kept) > ATOMS:
            kept = np.unique(np.searchsorted(below, expit(np.linspace(logit(OUTSIDE), -logit(OUTSIDE), ATOMS))))
        chance = np.diff(below[kept], prepend=0.0)
        chance[-1] = 1.0 - below[kept[-2]] if len(kept) > 1 else 1.0
        return values[kept], chance

    def _check_reports(self, reports: SparseVectors) -> SparseVectors:
        """Reject vectors over a different number of cells."""
        if not isinstance(reports, SparseVectors) or reports.rows.shape[1] != self.cells:
            raise ParameterError("reports", f"must be SparseVectors over {self.cells} cells", reports)
        return reports
