"""Result of planning: the parameters found for each mechanism and a target, or the reason that there are none."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tomli_w

from mechanisms.planning.target import Target


@dataclass(frozen=True)
class PlannedClaim:
    """A claim about one view at the planned parameters, for one pair of ε and δ.

    Parameters
    ----------
    view : str
        The view's name.
    queries : int
    crowd, k, devices : int, optional
        The view's parameters; None if it does not have them.
    epsilon : float
        Infinite if no finite ε holds, NaN if none is known.
    delta : float
        NaN if not known.
    kind : {"exact", "bound", "infinite", "unknown"}
        The kind of the ε at δ = 0, or of the δ at another ε.
    basis : str
        The reason for the claim.
    """

    view: str
    queries: int
    crowd: int | None
    k: int | None
    devices: int | None
    epsilon: float
    delta: float
    kind: str
    basis: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form: null for a number that is infinite or not known, which `kind` distinguishes."""
        return {
            "view": self.view,
            "queries": self.queries,
            "crowd": self.crowd,
            "k": self.k,
            "devices": self.devices,
            "epsilon": finite(self.epsilon),
            "delta": finite(self.delta),
            "kind": self.kind,
            "basis": self.basis,
        }


@dataclass(frozen=True)
class Plan:
    """Parameters of one mechanism that meet a target, or the reason that none do.

    Parameters
    ----------
    name : str
        Name of the mechanism's family: its kind, and which form of it.
    kind : str
        Its kind in a scenario file.
    meets : bool
        Whether these parameters meet the target.
    reason : str, optional
        Why no parameters meet the target; or, if some do, a remark on them.
    parameters : mapping
        As in a scenario file; empty if none meet the target.
    release : mapping, optional
        What is done before publishing, as in a scenario file's ``[release]``; None for nothing.
    std_error : float
        Root mean square error of a cell of the target's occupancy, in vehicles; NaN if no parameters meet the target.
    error_interval : (lower, upper) of float
        The interval that holds the error of a simulation of `target.simulated` cells with probability 95 %.
    excess_kurtosis : float
        Excess kurtosis of that error, which widens the interval if the tails are heavier than normal.
    epsilon : float
        The least ε known for the target's view, at the target's δ; infinite if none is, NaN without claims.
    claims : sequence of PlannedClaim
        Claims about every view: ε at δ = 0, and δ at the target's ε.
    cut_short : str, optional
        If the search for these parameters was cut short: after how many candidates, and how much the last ones
        improved the result.
    mechanism : object
        The mechanism itself; None if no parameters meet the target.
    """

    name: str
    kind: str
    meets: bool
    reason: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    release: Mapping[str, Any] | None = None
    std_error: float = math.nan
    error_interval: tuple[float, float] = (math.nan, math.nan)
    excess_kurtosis: float = math.nan
    epsilon: float = math.nan
    claims: Sequence[PlannedClaim] = ()
    cut_short: str | None = None
    mechanism: Any = field(default=None, repr=False, compare=False)

    @property
    def scenario(self) -> str | None:
        """Text for a scenario file: ``[[mechanisms]]``, and ``[release]`` if there is one; None if not met."""
        if not self.meets:
            return None
        # Written table by table: one call would put arrays of small tables on one line.
        written = "[[mechanisms]]\n" + tomli_w.dumps({"name": self.name, "kind": self.kind, **self.parameters})
        if self.release is not None:
            written += "\n[release]\n" + tomli_w.dumps({**self.release, "mechanisms": [self.name]})
        return written

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "mechanism": self.name,
            "kind": self.kind,
            "parameters": dict(self.parameters),
            "release": None if self.release is None else dict(self.release),
            "meets": self.meets,
            "reason": self.reason,
            "std_error": finite(self.std_error),
            "error_interval": None if math.isnan(self.error_interval[0]) else list(self.error_interval),
            "epsilon": finite(self.epsilon),
            "claims": [claim.to_dict() for claim in self.claims],
            "cut_short": self.cut_short,
            "scenario": self.scenario,
        }


@dataclass(frozen=True)
class Planning:
    """Every mechanism's plan for one target.

    Parameters
    ----------
    target : Target
    plans : sequence of Plan
        In the order of the families.
    """

    target: Target
    plans: Sequence[Plan]

    @property
    def best(self) -> Plan | None:
        """The plan of least error, or of least ε for an error target; None if no mechanism meets the target."""
        meeting = [plan for plan in self.plans if plan.meets]
        if self.target.error is None:
            return min(meeting, key=lambda plan: plan.std_error, default=None)
        return min(meeting, key=lambda plan: (plan.epsilon, plan.std_error), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        target = self.target
        best = self.best
        return {
            "target": {
                "cells": target.cells,
                "population": target.population,
                "occupancy": target.expected,
                "view": target.view,
                "epsilon": target.epsilon,
                "delta": target.delta,
                "error": target.error,
                "queries": target.queries,
                "crowd": target.crowd,
                "k": target.k,
                "simulated": target.simulated,
            },
            "plans": [plan.to_dict() for plan in self.plans],
            "best": None if best is None else best.name,
        }


def finite(number: float) -> float | None:
    """Return the number, or None if it is infinite or NaN, which JSON cannot represent."""
    return float(number) if math.isfinite(number) else None
