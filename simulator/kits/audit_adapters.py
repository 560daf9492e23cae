"""Randomisers of other packages under audit: pure-ldp, multi-freq-ldpy and OpenDP, and a user's own."""

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.compiled import compiled
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.kits.kit import seeded_global_randomness

OWN_GENERATOR = "OpenDP draws from the operating system's random numbers: no seed repeats these figures."
OLD_HASH = "local hashing of pure-ldp and of multi-freq-ldpy needs xxhash below 4"
PERMANENT = 2.0
"""ε of a longitudinal protocol's permanent report, in units of that of one report."""


@dataclass(frozen=True)
class Randomiser:
    """What is audited.

    Parameters
    ----------
    privatise
        The report of a value, 0…k − 1.
    outcome
        What of a report is compared; the report itself by default. A report with its own hash function becomes the
        values that it supports.
    estimate
        Estimated number of devices of each value from a list of reports; None if there is no estimator.
    numbers
        Whether each report is a number that estimates its value.
    note
        What is said beside the figures.
    """

    privatise: Callable[[int], Any]
    outcome: Callable[[Any], Any] | None = None
    estimate: Callable[[list[Any]], Any] | None = None
    numbers: bool = False
    note: str = ""

    def reports(self, *, values: int, trials: int, seed: int) -> list[list[Any]]:
        """Return the reports of each value; the global generators of Python, NumPy and Numba are seeded around them."""
        with seeded_global_randomness(seed):
            _seed_compiled(seed)
            return [[self.privatise(value) for _ in range(trials)] for value in range(values)]

    def outcomes(self, reports: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return what of each report is compared."""
        return reports if self.outcome is None else [[self.outcome(report) for report in row] for row in reports]


@compiled
def _seed_compiled(seed: int) -> None:  # pragma: no cover - compiled
    """Seed the generator of compiled code, which is not restored: no code of this project draws from it."""
    np.random.seed(seed)  # noqa: NPY002, TID251 - other people's code draws from it


def of_function(function: Callable[..., Any], seed: int) -> Randomiser:
    """Return a user's function of a value as a randomiser; if it takes `rng`, it is given a generator."""
    if "rng" in signature(function).parameters:
        return Randomiser(partial(function, rng=np.random.default_rng(seed)))
    return Randomiser(function)


def _pure_ldp(values: int, epsilon: float, *, module: str, name: str, **option: bool) -> Randomiser:
    """Return a client of pure-ldp with its server's estimates.

    The family is imported without the package of all oracles, which imports what pip does not install.
    """
    peer = import_extra("pure_ldp.core", needed="this audit needs pure-ldp", extra="peers")
    oracles = "pure_ldp.frequency_oracles"
    if oracles not in sys.modules:
        package = ModuleType(oracles)
        package.__path__ = [str(Path(peer.__file__).parents[1] / "frequency_oracles")]
        sys.modules[oracles] = package
    family = import_extra(f"{oracles}.{module}", needed=OLD_HASH, extra="peers")
    kinds = (getattr(family, f"{name}{end}") for end in ("Client", "Server"))
    client, server = (kind(epsilon, values, index_mapper=int, **option) for kind in kinds)

    def estimate(reports: list[Any]) -> NDArray[np.float64]:
        server.reset()
        for report in reports:
            server.aggregate(report)
        return np.array([server.estimate(value, suppress_warnings=True) for value in range(values)])

    outcome = _supported(values, client.g) if module == "local_hashing" else None
    return Randomiser(client.privatise, outcome, estimate)


def _supported(values: int, buckets: int) -> Callable[[Any], Any]:
    """Return what makes of a report (bucket, seed) the values whose hash is in the bucket."""
    xxhash = import_extra("xxhash", needed=OLD_HASH, extra="peers")
    if int(xxhash.VERSION.partition(".")[0]) >= 4:  # it refuses the text that both packages hash
        raise InputError([f"{OLD_HASH}: pip install 'crowdveil[peers]'"])
    texts = [str(value) for value in range(values)]

    def supported(report: Any) -> tuple[bool, ...]:
        bucket, seed = int(report[0]), int(report[1])
        return tuple(xxhash.xxh32(text, seed=seed).intdigest() % buckets == bucket for text in texts)

    return supported


def _multi_freq(
    values: int,
    epsilon: float,
    *,
    name: str,
    more: tuple[bool, ...] = (),
    sized: bool = True,
    outcome: Callable[[Any], Any] | None = None,
    long: bool = False,
) -> Randomiser:
    """Return a client of multi-freq-ldpy with its first aggregator, whose frequencies are kept in 0…1.

    Parameters
    ----------
    name
        The protocol's name in the package.
    more
        What clients and aggregators take after ε.
    sized
        Whether the aggregator takes the number of values.
    outcome
        What of a report is compared; of local hashing the values that it supports.
    long
        Whether the protocol is longitudinal.
    """
    full = f"multi_freq_ldpy.{'long_freq_est' if long else 'pure_frequency_oracles'}.{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own compilation
        peer = import_extra(full, needed="this audit needs multi-freq-ldpy", extra="peers")
    client, aggregator = getattr(peer, f"{name}_Client"), getattr(peer, f"{name}_Aggregator_MI")
    given = (PERMANENT * epsilon, epsilon) if long else (epsilon, *more)

    def estimate(reports: list[Any]) -> NDArray[np.float64]:
        return np.asarray(aggregator(reports, *((values,) if sized else ()), *given)) * len(reports)

    if name == "LH":
        outcome = _supported(values, round(np.exp(epsilon)) + 1)
    note = f"ε of one report, with ε = {given[0]:g} of the permanent one." if long else ""
    return Randomiser(lambda value: client(value, values, *given), outcome, estimate, note=note)


def _opendp() -> Any:
    prelude = import_extra("opendp.prelude", needed="this audit needs OpenDP", extra="peers")
    prelude.enable_features("contrib")
    return prelude


def _opendp_response(values: int, epsilon: float) -> Randomiser:
    true = float(np.exp(epsilon) / (np.exp(epsilon) + values - 1))
    false = (1.0 - true) / (values - 1)

    def estimate(reports: list[int]) -> Any:
        return (np.bincount(reports, minlength=values) - len(reports) * false) / (true - false)

    peer = _opendp().m.make_randomized_response(list(range(values)), true)
    return Randomiser(peer, None, estimate, note=f"{OWN_GENERATOR} The estimator is the usual one, not OpenDP's.")


def _opendp_laplace(values: int, epsilon: float, *, kind: type) -> Randomiser:
    dp = _opendp()
    domain = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=int)
    scale = (values - 1) / epsilon
    peer = dp.m.make_laplace(domain, dp.absolute_distance(T=kind), scale=scale)
    note = f"{OWN_GENERATOR} Scale {scale:g}: values differ by at most {values - 1}."
    return Randomiser(lambda value: peer(kind(value)), numbers=True, note=note)


ADAPTERS: Mapping[str, Callable[[int, float], Randomiser]] = {
    "pure-ldp:grr": partial(_pure_ldp, module="direct_encoding", name="DE"),
    "pure-ldp:sue": partial(_pure_ldp, module="unary_encoding", name="UE", use_oue=False),
    "pure-ldp:oue": partial(_pure_ldp, module="unary_encoding", name="UE", use_oue=True),
    "pure-ldp:blh": partial(_pure_ldp, module="local_hashing", name="LH", use_olh=False),
    "pure-ldp:olh": partial(_pure_ldp, module="local_hashing", name="LH", use_olh=True),
    "multi-freq-ldpy:grr": partial(_multi_freq, name="GRR"),
    "multi-freq-ldpy:sue": partial(_multi_freq, name="UE", more=(False,), sized=False),
    "multi-freq-ldpy:oue": partial(_multi_freq, name="UE", more=(True,), sized=False),
    "multi-freq-ldpy:olh": partial(_multi_freq, name="LH", more=(True,)),
    "multi-freq-ldpy:ss": partial(_multi_freq, name="SS", outcome=lambda report: tuple(sorted(map(int, report)))),
    "multi-freq-ldpy:l-grr": partial(_multi_freq, name="L_GRR", long=True),
    "multi-freq-ldpy:l-sue": partial(_multi_freq, name="L_SUE", sized=False, long=True),
    "multi-freq-ldpy:l-osue": partial(_multi_freq, name="L_OSUE", sized=False, long=True),
    "opendp:randomized-response": _opendp_response,
    "opendp:laplace-integer": partial(_opendp_laplace, kind=int),
    "opendp:laplace-real": partial(_opendp_laplace, kind=float),
}
"""Randomisers of other packages, made from the number of values and the ε that they are asked for."""
