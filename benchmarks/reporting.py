"""Every mechanism's reports, coins and tally included, and its sampled counts, beside pure-ldp, on one core.

pure-ldp is optional: ``pip install pure-ldp 'xxhash<4'``. It makes and adds up one report at a time, so it is given
fewer devices and compared by the rate.
"""

import argparse
import importlib
import sys
import tracemalloc
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from timing import seconds, spread

from mechanisms.local import (
    BinarySamplingPrivacy,
    DistributedLaplace,
    HadamardResponse,
    KRandomizedResponse,
    LocalHashing,
    LocalMechanism,
    LongitudinalUnary,
    NoPrivacy,
    OptimisedUnary,
    RandomizedResponse,
    SamplingPrivacy,
    SubsetSelection,
    SymmetricUnary,
    ThresholdHistogram,
)

Truth = npt.NDArray[np.int32]
# Number of reports that pure-ldp makes in about a second.
PEER_DEVICES = {"k_randomized_response": 200_000, "oue": 10_000, "olh": 1_000}


def build(cells: int, epsilon: float, devices: int) -> dict[str, LocalMechanism]:
    """Return every mechanism, with ε per report where the mechanism takes one."""
    return {
        "no_privacy": NoPrivacy(cells=cells),
        "sampling_privacy": SamplingPrivacy(cells=cells, sampling=0.45),
        "sampling_privacy, binary": BinarySamplingPrivacy(cells=cells, sampling=0.45),
        "randomized_response": RandomizedResponse(cells=cells, first_coin=0.8, second_coin=0.2),
        "k_randomized_response": KRandomizedResponse(cells=cells, epsilon=epsilon),
        "sue": SymmetricUnary(cells=cells, epsilon=epsilon),
        "oue": OptimisedUnary(cells=cells, epsilon=epsilon),
        "the": ThresholdHistogram(cells=cells, epsilon=epsilon),
        "olh": LocalHashing(cells=cells, epsilon=epsilon),
        "subset_selection": SubsetSelection(cells=cells, epsilon=epsilon),
        "hadamard_response": HadamardResponse(cells=cells, epsilon=epsilon),
        "longitudinal_unary": LongitudinalUnary(cells=cells, epsilon_permanent=2 * epsilon, epsilon_first=epsilon),
        "distributed_laplace": DistributedLaplace(cells=cells, epsilon=epsilon, devices=devices),
    }


def report(mechanism: LocalMechanism, truth: Truth, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Collect the reports of every device, one batch at a time, and return the counts of all rounds."""
    counts = np.zeros((mechanism.rounds, *mechanism.tally_shape), dtype=np.int64)
    for start in range(0, len(truth), mechanism.batch):
        batch = truth[start : start + mechanism.batch]
        coins = mechanism.toss(mechanism.enrol(len(batch), rng=rng), rng=rng)
        for number in range(mechanism.rounds):
            counts[number] += mechanism.tally(mechanism.answer(number + 1, batch, coins))
    return counts


def peak_megabytes(work: Callable[[], object]) -> float:
    """Return the peak memory in megabytes of one more run: allocations of Python and numpy."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def find_oracles(cells: int, epsilon: float) -> Iterator[tuple[str, Callable[[Truth], object]]]:
    """Yield the oracles of pure-ldp that have the same names as ours; none if pure-ldp is not installed."""
    try:
        peer = importlib.import_module("pure_ldp")
        # The package imports all its oracles, and one of them needs a dependency that its requirements do not list.
        package = types.ModuleType("pure_ldp.frequency_oracles")
        package.__path__ = [str(Path(str(peer.__file__)).parent / "frequency_oracles")]
        sys.modules.setdefault(package.__name__, package)
        found = {
            name: importlib.import_module(f"pure_ldp.frequency_oracles.{folder}")
            for name, folder in (
                ("k_randomized_response", "direct_encoding"),
                ("oue", "unary_encoding"),
                ("olh", "local_hashing"),
            )
        }
    except ImportError as error:
        print(f"pure-ldp cannot be imported here ({error}): ours alone")
        return
    domain = {"epsilon": epsilon, "d": cells + 1, "index_mapper": int}
    pairs = {
        "k_randomized_response": ("DEClient", "DEServer", domain),
        "oue": ("UEClient", "UEServer", {**domain, "d": cells, "use_oue": True, "index_mapper": lambda cell: cell - 1}),
        "olh": ("LHClient", "LHServer", {**domain, "use_olh": True}),
    }
    for name, (client, server, parameters) in pairs.items():

        def ask(
            truth: Truth, name: str = name, parts: tuple[str, str, dict[str, object]] = (client, server, parameters)
        ) -> None:
            device = getattr(found[name], parts[0])(**parts[2])
            tally = getattr(found[name], parts[1])(**parts[2])
            for cell in truth.tolist():
                tally.aggregate(device.privatise(cell))

        yield name, ask


def main() -> None:
    """Measure the mechanisms and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--cells", type=int, default=1_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="names of mechanisms; all by default")
    chosen = parser.parse_args()
    rng = np.random.default_rng(1)
    # All devices are in cells: pure-ldp's unary encoding has no value for "outside".
    truth = rng.integers(1, chosen.cells + 1, size=chosen.devices).astype(np.int32)
    true_counts = np.bincount(truth, minlength=chosen.cells + 1)
    mechanisms = build(chosen.cells, chosen.epsilon, chosen.devices)
    oracles = dict(find_oracles(chosen.cells, chosen.epsilon))

    print(f"{chosen.devices:,} devices, {chosen.cells:,} cells, ε = {chosen.epsilon:g}")
    print(f"{'':24} {'million devices/s':>24} {'peak':>8} {'sample_counts':>24}")
    for name in chosen.only or mechanisms:
        mechanism = mechanisms[name]

        def ours(mechanism: LocalMechanism = mechanism) -> None:
            report(mechanism, truth, rng)

        def sample(mechanism: LocalMechanism = mechanism) -> None:
            mechanism.sample_counts(true_counts, rng=rng)

        ours()  # compiles
        mine, theirs = [], []
        some = truth[: PEER_DEVICES.get(name, 0)]
        for _ in range(chosen.repetitions):
            mine += [chosen.devices / 1e6 / taken for taken in seconds(ours, repetitions=1, warm_up=0)]
            if name in oracles:
                asked = seconds(lambda ask=oracles[name], some=some: ask(some), repetitions=1, warm_up=0)
                theirs += [len(some) / 1e6 / taken for taken in asked]
        counted = [taken * 1e3 for taken in seconds(sample, repetitions=chosen.repetitions)]
        memory = f"{peak_megabytes(ours):.0f} MB"
        print(f"{name:24} {spread(mine):>24} {memory:>8} {spread(counted, unit='ms'):>24}", flush=True)
        if theirs:
            ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
            print(f"{'    pure-ldp':24} {spread(theirs, digits=4):>24} {'':8} ours {spread(ratios, digits=0)} times")


if __name__ == "__main__":
    main()
