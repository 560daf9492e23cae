"""Cells that are places: stations and locations, out of a table or of the data owners' own."""

from difflib import get_close_matches
from typing import Any

import numpy as np

import scenarios
from simulator.cells import CellsError, NamedPlaces
from simulator.experiment.build.static import file_format
from simulator.experiment.ground import Ground
from simulator.traffic.static import Owners, PlaceList, Sites


def build_stations(section: Any, ground: Ground) -> tuple[NamedPlaces, list[str]]:
    """Make cells of the stations of a table.

    Raises
    ------
    CellsError, TrafficError
        If the table cannot be read, or a station that is wanted is not in it.
    """
    sites, notes = _of_file(section, ground)
    return _cells("stations", section, sites, _chosen(section, sites.names or [])), notes


def build_locations(section: Any, ground: Ground) -> tuple[NamedPlaces, list[str]]:
    """Make cells of the locations of a table, or of those where data owners are.

    Raises
    ------
    CellsError, TrafficError
        If there are none, or one that is wanted is not among them.
    """
    owners = ground.recorded
    if section.file is not None:
        sites, notes = _of_file(section, ground)
        named = owners.sites.names if isinstance(owners, Owners) else None
        if named is not None and not set(named) & set(sites.names or []):
            words = f"no location has the name of a data owner's place, as {named[0]!r}"
            raise CellsError([f"{section.file}: {words}; locations are called {_some(sites.names or [])}"])
        return _cells("locations", section, sites, _chosen(section, sites.names or [])), notes
    if not isinstance(owners, Owners):
        raise CellsError(['file is required: only with engine = "static" are there places without it'])
    if owners.sites.names is None:
        raise CellsError(["the data owners' places have no names: name their column as traffic.columns.place"])
    names, notes = owners.sites.names, []
    if section.top is None:
        chosen = _chosen(section, names)
        if section.names is None and owners.sites.side_m is None:
            chosen = np.flatnonzero(owners.at_sites() > 0)
    else:
        number = owners.at_sites()
        busiest = np.argsort(-number, kind="stable")[: section.top]
        chosen = busiest[number[busiest] > 0]
        there = int((number > 0).sum())
        words = f"cells: the {len(chosen):,} busiest of {there:,} places, {_some([names[i] for i in chosen])}"
        notes.append(
            f"{words}: chosen by the truth itself, which no mechanism protects; name places to choose without it"
        )
    return _cells("locations", section, owners.sites, chosen), notes


def _of_file(section: Any, ground: Ground) -> tuple[Sites, list[str]]:
    places = PlaceList.from_file(
        scenarios.locate(section.file),
        columns=section.columns.mapping(),
        format_=file_format(section),
        given=section.crs,
        crs=ground.crs,
    )
    return places.sites, list(places.notes)


def _chosen(section: Any, names: list[str]) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """Return which places are cells, in their order."""
    if section.names is None:
        return np.arange(len(names))
    place = {name: i for i, name in enumerate(names)}
    faults = []
    for name in section.names:
        if name not in place:
            close = get_close_matches(name, names[:100_000], n=1)
            faults.append(f"names: there is no place {name!r}" + (f"; do you mean {close[0]!r}?" if close else ""))
    if faults:
        raise CellsError(faults)
    return np.array([place[name] for name in section.names], dtype=np.int64)


def _cells(kind: str, section: Any, sites: Sites, chosen: "np.ndarray[Any, np.dtype[np.int64]]") -> NamedPlaces:
    names = sites.names or []
    return NamedPlaces.build(
        kind,
        [names[place] for place in chosen.tolist()],
        sites.xy[chosen],
        crs=sites.crs,
        radius_m=section.radius_m,
        labels=section.labels,
        side_m=sites.side_m,
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
