"""Plan: the parameters found for one mechanism and a target, or why there are none; and all mechanisms together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tomli_w

from mechanisms.planning.target import Target


@dataclass(frozen=True)
class PlannedClaim:
    """What is proved about one view at the planned parameters, at one ε.

    Parameters
    ----------
    view : str
        As views are named.
    queries : int
    crowd, k, devices : int, optional
        The view's parameters; None where it has none.
    epsilon : float
        Infinite where no finite ε holds, NaN where none is known.
    delta : float
        NaN where not known.
    kind : {"exact", "bound", "infinite", "unknown"}
        How good the ε at δ = 0, or the δ at another ε, is.
    basis : str
        Why.
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
        """Return the JSON form: null for what is infinite, as the kind says, or not known."""
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
    """Parameters of one mechanism that meet a target, or why none do.

    Parameters
    ----------
    name : str
        What the plan calls the mechanism: its kind, and which form of it.
    kind : str
        Its kind in a scenario file.
    meets : bool
        Whether these parameters meet the target.
    reason : str, optional
        Why none do; or, if some do, what one should know of them.
    parameters : mapping
        As a scenario file gives them; empty where none meet the target.
    release : mapping, optional
        What is done before publishing, as a scenario file's ``[release]`` gives it; None for nothing.
    std_error : float
        Root mean square error of a cell of the target's occupancy, in vehicles; NaN where there is no plan.
    error_interval : (lower, upper) of float
        Where that of a simulation of `target.simulated` cells falls with 95 %.
    excess_kurtosis : float
        Of that error: how much heavier its tails are than a normal error's, which the interval allows for.
    epsilon : float
        The least ε known for the target's view, at the target's δ; infinite where none is, NaN without claims.
    claims : sequence of PlannedClaim
        About every view: ε at δ = 0, and δ at the target's ε.
    cut_short : str, optional
        If the search for these parameters was cut short: after how much work, and what the last of it improved.
    mechanism : object
        The mechanism itself; None where there is no plan.
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
        """What to paste into a scenario file: ``[[mechanisms]]``, perhaps ``[release]``; None without a plan."""
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
        """The plan of least error; for an error, that of the least ε. None where no mechanism meets the target."""
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
    """Return the number, or None for what JSON has not."""
    return float(number) if math.isfinite(number) else None
