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
from simulator.plug_in_checks.kit import seeded_global_randomness

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


def _pure_ldp(module: str) -> Any:
    """Import a family of pure-ldp's oracles without their package, which imports what pip does not install."""
    peer = import_extra("pure_ldp.core", needed="this audit needs pure-ldp", extra="peers")
    name = "pure_ldp.frequency_oracles"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(Path(peer.__file__).parents[1] / "frequency_oracles")]
        sys.modules[name] = package
    return import_extra(f"{name}.{module}", needed=OLD_HASH, extra="peers")


def _served(client: Any, server: Any, outcome: Callable[[Any], Any] | None = None) -> Randomiser:
    """Return a client of pure-ldp with its server's estimates."""

    def estimate(reports: list[Any]) -> NDArray[np.float64]:
        server.reset()
        for report in reports:
            server.aggregate(report)
        return np.array([server.estimate(value, suppress_warnings=True) for value in range(server.d)])

    return Randomiser(client.privatise, outcome, estimate)


def _pure_ldp_grr(values: int, epsilon: float) -> Randomiser:
    peer = _pure_ldp("direct_encoding")
    return _served(*(kind(epsilon, values, index_mapper=int) for kind in (peer.DEClient, peer.DEServer)))


def _pure_ldp_unary(values: int, epsilon: float, *, optimal: bool) -> Randomiser:
    peer = _pure_ldp("unary_encoding")
    given = {"use_oue": optimal, "index_mapper": int}
    return _served(peer.UEClient(epsilon, values, **given), peer.UEServer(epsilon, values, **given))


def _pure_ldp_hashing(values: int, epsilon: float, *, optimal: bool) -> Randomiser:
    peer = _pure_ldp("local_hashing")
    given = {"use_olh": optimal, "index_mapper": int}
    client, server = peer.LHClient(epsilon, values, **given), peer.LHServer(epsilon, values, **given)
    return _served(client, server, _supported(values, client.g))


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


def _multi_freq(module: str, name: str, values: int, given: tuple[Any, ...], *, sized: bool = True) -> Randomiser:
    """Return a client of multi-freq-ldpy with its first aggregator, whose frequencies are kept in 0…1."""
    full = f"multi_freq_ldpy.{module}.{name}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own compilation
        peer = import_extra(full, needed="this audit needs multi-freq-ldpy", extra="peers")
    client, aggregator = getattr(peer, f"{name}_Client"), getattr(peer, f"{name}_Aggregator_MI")

    def estimate(reports: list[Any]) -> NDArray[np.float64]:
        found = np.asarray(aggregator(reports, *((values,) if sized else ()), *given))
        return found * len(reports)

    return Randomiser(lambda value: client(value, values, *given), None, estimate)


def _multi_freq_unary(values: int, epsilon: float, *, optimal: bool) -> Randomiser:
    return _multi_freq("pure_frequency_oracles", "UE", values, (epsilon, optimal), sized=False)


def _multi_freq_subset(values: int, epsilon: float) -> Randomiser:
    peer = _multi_freq("pure_frequency_oracles", "SS", values, (epsilon,))
    return Randomiser(peer.privatise, lambda report: tuple(sorted(int(one) for one in report)), peer.estimate)


def _multi_freq_hashing(values: int, epsilon: float) -> Randomiser:
    peer = _multi_freq("pure_frequency_oracles", "LH", values, (epsilon, True))
    return Randomiser(peer.privatise, _supported(values, round(np.exp(epsilon)) + 1), peer.estimate)


def _multi_freq_long(values: int, epsilon: float, *, name: str) -> Randomiser:
    given = (PERMANENT * epsilon, epsilon)
    peer = _multi_freq("long_freq_est", name, values, given, sized=name == "L_GRR")
    note = f"ε of one report, with ε = {given[0]:g} of the permanent one."
    return Randomiser(peer.privatise, None, peer.estimate, note=note)


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
    "pure-ldp:grr": _pure_ldp_grr,
    "pure-ldp:sue": partial(_pure_ldp_unary, optimal=False),
    "pure-ldp:oue": partial(_pure_ldp_unary, optimal=True),
    "pure-ldp:blh": partial(_pure_ldp_hashing, optimal=False),
    "pure-ldp:olh": partial(_pure_ldp_hashing, optimal=True),
    "multi-freq-ldpy:grr": lambda k, epsilon: _multi_freq("pure_frequency_oracles", "GRR", k, (epsilon,)),
    "multi-freq-ldpy:sue": partial(_multi_freq_unary, optimal=False),
    "multi-freq-ldpy:oue": partial(_multi_freq_unary, optimal=True),
    "multi-freq-ldpy:olh": _multi_freq_hashing,
    "multi-freq-ldpy:ss": _multi_freq_subset,
    "multi-freq-ldpy:l-grr": partial(_multi_freq_long, name="L_GRR"),
    "multi-freq-ldpy:l-sue": partial(_multi_freq_long, name="L_SUE"),
    "multi-freq-ldpy:l-osue": partial(_multi_freq_long, name="L_OSUE"),
    "opendp:randomized-response": _opendp_response,
    "opendp:laplace-integer": partial(_opendp_laplace, kind=int),
    "opendp:laplace-real": partial(_opendp_laplace, kind=float),
}
"""Randomisers of other packages, made from the number of values and the ε that they are asked for."""
