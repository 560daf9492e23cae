"""The built-in kinds of every role: one record of plain data each, from which unions, messages and titles are made.

A new kind needs its own file, its parameter model, its record here, its documentation and its tests.
"""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from mechanisms.declared import MECHANISMS, Declared


class Kind(NamedTuple):
    """One kind of a role.

    Attributes
    ----------
    name
        The value that selects it in a scenario file.
    model
        Class of its section, as ``module:Class``; it is imported when a section of this kind is read.
    constructor
        What builds it, as ``module:attribute``; only `simulator.experiment.assembly` resolves this name.
    capabilities
        What other code asks about it; each role lists its capabilities below.
    title
        Its name in reports, which name mechanisms, engines, deployments and releases.
    reader
        What reads files of this kind, in `simulator.formats`, as ``module:attribute``: those of a road format, of a
        recording that an engine replays, and of the table whose places are cells.
    needs
        A package that it needs and that may not be installed, and the extra of this project that installs it.
    """

    name: str
    model: str
    constructor: str
    capabilities: frozenset[str] = frozenset()
    title: str = ""
    reader: str = ""
    needs: tuple[str, str] | None = None


_BUILD = "simulator.experiment.assembly."
_RECORDED = "simulator.formats.recordings."
_PLACES = f"{_RECORDED}places:read_places"
_DRIVEN = "simulated_traffic:DrivenTraffic"
_SIMULATED = f"{_BUILD}engine:build_simulated"


def _kind(role_model: str, name: str, constructor: str, *capabilities: str, title: str = "") -> Kind:
    return Kind(name, f"scenarios.{role_model}", constructor, frozenset(capabilities), title)


def _mechanism(declared: Declared) -> Kind:
    model = f"scenarios.mechanisms:{declared.class_name}Section"
    return Kind(declared.kind, model, declared.build, declared.capabilities, declared.title)


def _roads(name: str, class_: str, reader: str = "") -> Kind:
    built_by = "read" if reader else name
    kind = _kind(f"roads:{class_}", name, f"{_BUILD}city:{built_by}_roads")
    return kind._replace(reader=reader and f"simulator.formats.{reader}")


def _cells(name: str, class_: str, reader: str = "") -> Kind:
    kind = _kind(f"cells:{class_}", name, f"{_BUILD}cells:{name}_cells")
    return kind._replace(reader=reader)


def _recorded(name: str, title: str, class_: str, reader: str, *capabilities: str) -> Kind:
    build = f"{_BUILD}engine:build_recorded"
    kind = _kind(f"recorded_traffic:{class_}", name, build, "recorded", *capabilities, title=title)
    return kind._replace(reader=f"{_RECORDED}{reader}")


def _deployment(
    name: str, title: str, constructor: str, *capabilities: str, model: str = "channel:Aggregation"
) -> Kind:
    return _kind(model, name, f"simulator.aggregation.{constructor}", *capabilities, title=title)


_NOISE = "mechanisms.privacy.integer_noise:IntegerNoise"


def _latency(name: str, law: str) -> Kind:
    return _kind(f"channel:{law}Latency", name, f"simulator.sensing.channel:{law}Delay")


def _release(name: str, title: str, class_: str, *capabilities: str) -> Kind:
    return _kind(f"release:{class_}", name, f"{_BUILD}releases:build_{name}", *capabilities, title=title)


def _refinement(name: str, class_: str) -> Kind:
    return _kind(f"refinements:{class_}", name, f"mechanisms.refinement:{name}")


def _attack(name: str, class_: str, constructor: str, *capabilities: str) -> Kind:
    return _kind(f"attacks:{class_}Section", name, f"simulator.attacks.{constructor}", *capabilities)


_ROLES: Mapping[str, tuple[Kind, ...]] = {
    "mechanism": tuple(_mechanism(declared) for declared in MECHANISMS),  # with their capabilities
    "roads": (
        _roads("grid", "GridSection"),
        _roads("tables", "Tables", "tables.roads:read_tables"),
        _roads("lines", "LineRoads", "geo.lines:read_lines"),
        _roads("osm", "OsmRoads", "osm.roads:read_osm")._replace(needs=("osmnx", "osm")),
        _roads("sumo", "SumoRoads", "sumo.roads:read_sumo_net")._replace(needs=("sumolib", "sumo")),
        _roads("tntp", "TntpRoads", "tntp.roads:read_tntp"),
        _roads("matsim", "MatsimRoads", "matsim.roads:read_matsim"),
        _roads("gmns", "GmnsRoads", "gmns.roads:read_gmns"),
        _roads("geopackage", "GeoPackageRoads", "geo.geopackage:read_geopackage"),
        _roads("none", "NoRoads"),
    ),
    "cells": (
        _cells("square", "SquareCells"),
        _cells("geographic", "GeographicCells"),
        _cells("h3", "HexagonCells")._replace(needs=("h3", "h3")),
        _cells("zones", "ZoneCells"),
        _cells("roads", "RoadCells"),
        _cells("stations", "StationCells", _PLACES),
        _cells("locations", "LocationCells", _PLACES),
    ),
    # "routed": vehicles drive the trips of the scenario's demand; "processes": each vehicle is a process;
    # "recorded": positions are read with the city; "links": when vehicles enter links is known.
    "engine": (
        _kind(_DRIVEN, "fleet", _SIMULATED, "routed", "links", title="fleet engine"),
        _kind(_DRIVEN, "agents", _SIMULATED, "routed", "links", "processes", title="agents engine"),
        _kind(
            "simulated_traffic:SumoTraffic", "sumo", f"{_BUILD}sumo_traffic:build_sumo", "links", title="SUMO"
        )._replace(needs=("libsumo", "sumo")),
        _recorded("trace", "recorded trace", "TraceTraffic", "recordings:read_recording", "links"),
        _recorded("static", "data owners", "StaticTraffic", "owners:read_recording"),
    ),
    "demand": (
        _kind(_DRIVEN, "uniform", f"{_BUILD}demand:draw_demand"),
        _kind(_DRIVEN, "gravity", f"{_BUILD}demand:draw_demand"),
        _kind(_DRIVEN, "trips", f"{_BUILD}demand:read_demand"),
    ),
    # "mixer": a mixer stands before the server; "per round": a server for each round; "shares": servers hold shares;
    # "divided": devices are divided over servers, whose number is known when they are built.
    "deployment": (
        _deployment("trusted", "one trusted server", "servers:Trusted"),
        _deployment("per_round", "a server for each round", "servers:PerRound", "per round"),
        _deployment("shuffled", "a server behind a mixer", "servers:ShuffledReports", "mixer"),
        _deployment("secret_shared", "servers that hold shares", "servers:SecretShared", "shares"),
        _deployment(
            "threshold_shared",
            "servers that hold threshold shares",
            "servers:ThresholdShared",
            "shares",
            model="channel:ThresholdShares",
        ),
        _deployment(
            "roadside_units",
            "a road-side unit for each district",
            "combining:RoadsideUnits",
            "divided",
            model="channel:RoadsideUnitsSection",
        ),
    ),
    "latency": (
        _latency("constant", "Constant"),
        _latency("exponential", "Exponential"),
        _latency("lognormal", "Lognormal"),
    ),
    "noise": (
        _kind("channel:GaussianNoise", "discrete_gaussian", _NOISE),
        _kind("channel:LaplaceNoise", "discrete_laplace", _NOISE),
        _kind("channel:PolyaNoise", "polya", _NOISE),
    ),
    # The statistics of campaigns that it can publish; "whole": it publishes only if all reports were received;
    # "exact": it needs the true counts of all devices.
    "release": (
        _release("none", "no release", "NoRelease", "count", "mean_speed", "median_speed"),
        _release("suppress", "suppression", "Suppress", "count"),
        _release("generalise", "generalisation", "Generalise", "count", "whole"),
        _release("recode", "local recoding", "Recode", "count", "whole", "exact"),
        _release("laplace", "Laplace noise", "Laplace", "count", "mean_speed"),
        _release("threshold", "noise and threshold", "ThresholdRelease", "count", "whole", "exact"),
        _release("smooth_median", "median with smooth sensitivity", "SmoothMedianSection", "median_speed"),
    ),
    "refinement": (
        _refinement("clip", "Clip"),
        _refinement("norm_sub", "NormSub"),
        _refinement("norm_mul", "NormMul"),
        _refinement("simplex", "Simplex"),
    ),
    # "guess": it guesses cells from what was received in one query; "shares": it needs servers that hold shares.
    "attack": (
        _attack("round_one", "RoundOne", "guessing_games:CellGame", "guess"),
        _attack("round_two", "RoundTwo", "guessing_games:CellGame", "guess"),
        _attack("link_rounds", "LinkRounds", "guessing_games:CellGame", "guess"),
        _attack("shares", "Shares", "guessing_games:CellGame", "guess", "shares"),
        _attack("known_others", "KnownOthers", "counterfactual_games:KnownOthers"),
        _attack("longitudinal", "Longitudinal", "guessing_games:LongitudinalGame"),
        _attack("poisoning", "Poisoning", "counterfactual_games:Poisoning"),
        _attack("drop_out", "DropOut", "counterfactual_games:DropOut"),
    ),
}


def kinds_of(role: str) -> tuple[Kind, ...]:
    """Return the records of a role: mechanism, roads, cells, engine, demand, deployment, latency, release and so on."""
    return _ROLES[role]


def find_kind(role: str, name: object) -> Kind | None:
    """Return the record of a built-in kind, or None if there is none of this name, as for a plug-in."""
    return next((kind for kind in _ROLES[role] if kind.name == name), None)


def names_of(role: str, capability: str | None = None) -> tuple[str, ...]:
    """Return the names of a role's kinds, or of those that have a capability."""
    return tuple(kind.name for kind in _ROLES[role] if capability is None or capability in kind.capabilities)


def is_capable(role: str, name: object, capability: str) -> bool:
    """Return whether a kind has a capability; a plug-in has none."""
    kind = find_kind(role, name)
    return kind is not None and capability in kind.capabilities


def title(role: str, name: str, default: str = "") -> str:
    """Return the name of a kind in reports; `default` for a plug-in."""
    kind = find_kind(role, name)
    return default if kind is None else kind.title


def import_dotted(dotted: str) -> Any:
    """Import what ``module:attribute`` names."""
    module, _, attribute = dotted.partition(":")
    return getattr(importlib.import_module(module), attribute)


def mechanism_classes() -> dict[str, str]:
    """Return the class in `mechanisms.local` of each kind of mechanism, by the name of the kind."""
    return {declared.kind: declared.class_name for declared in MECHANISMS}
