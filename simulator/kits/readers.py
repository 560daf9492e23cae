"""Checks of a user's own reader of roads: `check_reader`.

The table lists, in order, the fault that each check finds:

============= ========================================================================================================
interface     the method missing; no `RawNetwork`, columns missing, links of nodes that are not there, or no network
repeatable    another network from a second reading
randomness    use of numpy's or Python's global random numbers
============= ========================================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulator.kits.kit import check_randomness, report_of, require_methods
from simulator.kits.mechanisms.findings import ConformanceReport, Findings, checks_of
from simulator.roads import RoadNetwork
from simulator.roads.raw_network import RawNetwork, build, check_tables


@dataclass(frozen=True, eq=False)
class ReaderTrial:
    """The function that makes a reader, what it read, and the network that a run makes of it."""

    make: Callable[[], Any]
    raw: RawNetwork
    network: RoadNetwork

    def again(self) -> RawNetwork:
        """Return what another reader reads."""
        return _read(self.make)


def _read(make: Callable[[], Any]) -> RawNetwork:
    return check_tables(make().read(), "read")


def _prepare(make: Callable[..., Any], _: int, findings: Findings) -> ReaderTrial:
    require_methods("roads", make())
    raw = _read(make)
    network, report = build(raw)
    for note in report.notes():
        findings.note(str(note))
    return ReaderTrial(make, raw, network)


def check_repeatable(trial: ReaderTrial, findings: Findings) -> None:
    """Check that a second reader makes the same network of the same files."""
    again, _ = build(trial.again())
    same = again.node_names == trial.network.node_names and np.array_equal(again.node_xy, trial.network.node_xy)
    for name in ("from_node", "to_node", "length_m", "speed_mps", "lanes", "capacity_vph"):
        same = same and np.array_equal(getattr(again.links, name), getattr(trial.network.links, name))
    findings.expect(same, "read returns another network the second time")
    findings.figures |= {"nodes": len(again.node_names), "links": len(again.links)}


CHECKS = {**checks_of(globals()), "randomness": check_randomness}


def check_reader(make: Callable[[], Any], *, seed: int = 0) -> ConformanceReport:
    """Run all checks on a reader of roads, with the files that `make` gives it.

    Parameters
    ----------
    make
        A class or function that makes the reader, called without arguments. Several are made.
    seed
        Not used: a reader draws nothing.

    Returns
    -------
    ConformanceReport
        The result of each check; its ``raise_for_failures`` raises an error if any failed.
    """
    return report_of(make, _prepare, CHECKS, seed)
