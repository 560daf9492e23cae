"""A run directory made without the simulator: consistent, of any size, from the distributions in the papers."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import geopandas as gpd
import numpy as np
import pandas as pd
from shapely.geometry import box

SAMPLING, P_YES, P_NO, FIRST = 0.45, 0.84, 0.04, 0.8
EPSILONS = (0.5, 1.0, 2.0, 4.0)
KINDS = {"exact": "no_privacy", "sampling": "sampling_privacy", "randomized": "randomized_response"}


@dataclass
class SyntheticRun:
    """What to make; `write` makes it."""

    columns: int = 4
    rows: int = 3
    queries: int = 6
    mean: float = 30.0
    outside: int = 1000
    mechanisms: tuple[str, ...] = ("exact", "sampling", "randomized")
    campaigns: tuple[str, ...] = ("rush",)
    scenario: str = "manhattan"
    description: str = "Generated avenues and streets; six queries in half an hour."
    warnings: tuple[str, ...] = ()
    seed: int = 7
    attacks: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def cells(self) -> int:
        return self.columns * self.rows

    def sigma(self, mechanism: str, truth: Any, asked: float) -> Any:
        truth = np.asarray(truth, dtype=float)
        if mechanism == "exact":
            return np.zeros_like(truth)
        if mechanism == "sampling":
            return np.sqrt(truth * (1 - SAMPLING) / SAMPLING)
        return np.sqrt(truth * P_YES * (1 - P_YES) + (asked - truth) * P_NO * (1 - P_NO)) / FIRST

    def write(self, directory: Path) -> Path:
        rng = np.random.default_rng(self.seed)
        directory.mkdir(parents=True, exist_ok=True)
        estimates = pd.concat([self._estimates(campaign, rng) for campaign in self.campaigns])
        estimates.to_parquet(directory / "estimates.parquet")
        self._cells().to_parquet(directory / "cells.parquet")
        rounds = self._rounds(estimates)
        rounds.to_parquet(directory / "rounds.parquet")
        self._scores(estimates).to_parquet(directory / "scores.parquet")
        self._claims().to_parquet(directory / "claims.parquet")
        columns = ["name", "attack", "coalition", "mechanism", "prior", "success", "theory", "metric", "value", "unit"]
        self.attacks.reindex(columns=columns).to_parquet(directory / "attacks.parquet")
        toml = f"[scenario]\nname = {json.dumps(self.scenario)}\nseed = {self.seed}\n"
        (directory / "scenario.toml").write_text(toml, encoding="utf-8")
        (directory / "run.json").write_text(json.dumps(self._run(estimates, rounds)), encoding="utf-8")
        return directory

    def _cells(self) -> Any:
        size, names, shapes = 0.0045, [], []
        for cell in range(self.cells):
            row, column = divmod(cell, self.columns)
            west, south = -74.0 + column * size, 40.70 + row * size * 0.76
            shapes.append(box(west, south, west + size, south + size * 0.76))
            names.append(f"{row + 1}/{column + 1}")
        frame = pd.DataFrame({"cell": np.arange(1, self.cells + 1), "name": names})
        return gpd.GeoDataFrame(frame, geometry=shapes, crs=4326)

    def _estimates(self, campaign: str, rng: np.random.Generator) -> pd.DataFrame:
        row, column = np.divmod(np.arange(self.cells), self.columns)
        distance = np.hypot((row + 0.5) / self.rows - 0.6, (column + 0.5) / self.columns - 0.4)
        busy = np.exp(-4 * distance) if self.cells > 1 else np.ones(1)
        busy /= busy.mean()
        frames = []
        for query in range(1, self.queries + 1):
            truth = rng.poisson(self.mean * busy * (1 + 0.3 * np.sin(query)))
            asked = int(truth.sum()) + self.outside
            frames += [self._answers((campaign, query, name), truth, asked, rng) for name in self.mechanisms]
        return pd.concat(frames, ignore_index=True)

    def _answers(self, key: tuple[str, int, str], truth: Any, asked: int, rng: np.random.Generator) -> pd.DataFrame:
        campaign, query, mechanism = key
        if mechanism == "exact":
            estimate = truth.astype(float)
        elif mechanism == "sampling":
            estimate = rng.binomial(truth, SAMPLING) / SAMPLING
        else:
            yes = rng.binomial(truth, P_YES) + rng.binomial(asked - truth, P_NO)
            estimate = (yes - P_NO * asked) / FIRST
        half = 1.96 * self.sigma(mechanism, np.maximum(estimate, 0) + 2, asked)
        return pd.DataFrame(
            {
                "campaign": campaign, "query": query, "time_s": 300.0 * query, "mechanism": mechanism,
                "cell": np.arange(1, self.cells + 1), "truth": truth, "estimate": estimate,
                "std_error": self.sigma(mechanism, np.maximum(estimate, 0), asked),
                "lower": np.maximum(estimate - half, 0), "upper": np.maximum(estimate, 0) + half,
            }
        )  # fmt: skip

    def _rounds(self, estimates: pd.DataFrame) -> pd.DataFrame:
        truths = estimates.groupby(["campaign", "query", "mechanism"], sort=False)["truth"].sum().reset_index()
        frames = []
        for number in (1, 2):
            part = truths if number == 1 else truths[truths["mechanism"] == "sampling"]
            asked = part["truth"] + self.outside
            late, lost = asked // 100, asked // 50
            frames.append(
                part.drop(columns="truth").assign(
                    round=number, asked=asked, answered=asked, counted=asked - late - lost, late=late, lost=lost,
                    rejected=0, unpaired=0, unheard=0, duplicates=0, messages_up=3 * asked, bytes_up=12 * asked,
                    bytes_down=17 * asked, estimate_s=61.0,
                )
            )  # fmt: skip
        return pd.concat(frames, ignore_index=True)

    def _scores(self, estimates: pd.DataFrame) -> pd.DataFrame:
        rows = []
        for (campaign, mechanism), group in estimates.groupby(["campaign", "mechanism"], sort=False):
            error = group["estimate"] - group["truth"]
            asked = group.groupby("query")["truth"].transform("sum") + self.outside
            sigma = self.sigma(str(mechanism), group["truth"], asked)
            rows.append(
                {
                    "campaign": campaign, "mechanism": mechanism, "mae": error.abs().mean(),
                    "rmse": np.sqrt((error**2).mean()), "bias": error.mean(), "max_error": error.abs().max(),
                    "coverage": group["truth"].between(group["lower"], group["upper"]).mean(), "hot_cells_recall": 0.9,
                    "theory_rmse": np.sqrt((sigma**2).mean()), "interval": _interval(str(mechanism)),
                }
            )  # fmt: skip
        return pd.DataFrame(rows)

    def _claims(self) -> pd.DataFrame:
        blank = (1 - SAMPLING) / (self.cells + 1)
        alone = float(np.log((blank + SAMPLING) / blank))
        second = [max(0.0, blank + SAMPLING - np.exp(epsilon) * blank) for epsilon in EPSILONS]
        # With one answer about every cell, a device that moves changes two bits.
        here = np.array([P_YES * (1 - P_NO), P_YES * P_NO, (1 - P_YES) * (1 - P_NO), (1 - P_YES) * P_NO])
        there = here[[3, 1, 2, 0]]
        yes_no = [float(np.maximum(here - np.exp(epsilon) * there, 0).sum()) for epsilon in EPSILONS]
        rows: list[dict[str, Any]] = []
        for name in self.mechanisms:
            if name == "sampling":
                rows += claim(name, "report_round_1", 0.0, "exact", [0.0] * 4, basis="drawn before the truth")
                rows += claim(name, "report_round_2", alone, "exact", second, basis="SP eq 29")
                rows += claim(name, "linked_reports", np.inf, "infinite", [SAMPLING] * 4, basis="the pair (0, v)")
                for crowd, deltas in ((1, [SAMPLING] * 4), (20, [0.21, 0.08, 3.2e-3, 1.4e-5])):
                    basis = "exact binomial tails"
                    rows += claim(name, "released_differences", np.inf, "infinite", deltas, crowd=crowd, basis=basis)
            elif name == "randomized":
                epsilon = float(np.log(here[0] / there[0]))
                rows += claim(name, "report_round_1", epsilon, "exact", yes_no, basis="two bits change")
            else:
                rows += claim(name, "report_round_1", np.inf, "infinite", [1.0] * 4, basis="the truth is sent")
        return pd.DataFrame(rows)

    def _run(self, estimates: pd.DataFrame, rounds: pd.DataFrame) -> dict[str, Any]:
        truth = (
            estimates[estimates["mechanism"] == self.mechanisms[0]]
            .groupby(["campaign", "query"], sort=False)["truth"]
            .sum()
        )
        asked = float(truth.mean()) + self.outside
        mechanisms = [self._mechanism(name, asked) for name in self.mechanisms]
        return {
            "version": "0.1.0", "scenario": self.scenario, "description": self.description, "seed": self.seed,
            "scenario_sha256": "ab" * 32, "packages": {"numpy": "2.0", "simpy": "4.1"}, "data": {},
            "wall_s": {"build": 0.8, "compile": 0.01, "demand": 0.1, "routing": 0.9, "traffic": 1.3, "sensing": 0.2,
                       "protocol": 0.6, "total": 4.2},
            "vehicles": 20_000, "link_crossings": 812_345, "queries": self.queries * len(self.campaigns),
            "device_answers": int(rounds["answered"].sum()),
            "memory_bytes": {"vehicles": 420_000, "routes": 1_900_000, "peak": 310_000_000},
            "city": {"nodes": 620, "links": 1834, "length_km": 214.6, "cells": self.cells, "crs": "EPSG:32618",
                     "notes": ["Every node is reachable from every other."]},
            "traffic_at_queries": [
                {"campaign": campaign, "query": query, "time_s": 300.0 * query, "departed": int(count) + 900,
                 "waiting": 12, "on_road": int(count) - 12, "arrived": 900, "stuck_released": 3}
                for (campaign, query), count in truth.items()
            ],
            "mechanisms": mechanisms,
            "warnings": list(self.warnings),
        }  # fmt: skip

    def _mechanism(self, name: str, asked: float) -> dict[str, Any]:
        grid = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500]
        scaling = [10.0**power for power in range(3, 8)]
        sigmas = [float(self.sigma(name, self.mean, n)) for n in scaling]
        printed: dict[str, Any] = {"epsilon": None, "equation": "", "note": ""}
        if name == "sampling":
            epsilon = float(np.log(1 + SAMPLING * (self.cells + 1) / (1 - SAMPLING)))
            printed = {"epsilon": epsilon, "equation": "SP eq 29", "note": "round two alone"}
        if name == "randomized":
            printed = {"epsilon": 3.04, "equation": "SP eq 30", "note": "forgets the answer No"}
        return {
            "name": name,
            "kind": KINDS[name],
            "parameters": {"sampling": SAMPLING, "form": "multi"} if name == "sampling" else {},
            "rounds": 2 if name == "sampling" else 1,
            "interval": _interval(name),
            "theory": {"asked": asked, "occupancy": grid, "std_error": list(self.sigma(name, grid, asked))},
            "scaling": {"occupancy": self.mean, "asked": scaling, "std_error": sigmas},
            "printed": printed,
        }


def _interval(mechanism: str) -> str:
    return {"sampling": "binomial inversion", "exact": "exact"}.get(mechanism, "score")


def claim(
    mechanism: str,
    view: str,
    epsilon: float,
    kind: str,
    deltas: list[float],
    *,
    basis: str,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """The rows of one view: δ = 0, then each ε with its δ."""
    keys = {"queries": 1, "crowd": None, "k": None, "colluding": None, "servers": None, **parameters}
    first = {
        "mechanism": mechanism,
        "view": view,
        **keys,
        "epsilon": epsilon,
        "delta": 0.0,
        "kind": kind,
        "basis": basis,
    }
    rest = [
        {**first, "epsilon": value, "delta": delta, "kind": "exact" if kind == "infinite" else kind}
        for value, delta in zip(EPSILONS, deltas, strict=False)
    ]
    return [first, *rest]
