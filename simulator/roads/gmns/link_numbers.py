"""What GMNS links are to a queue: metres, metres per second, lanes, vehicles per hour and lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulator.files.counted import counted
from simulator.roads.class_defaults import class_defaults, filled_in_words
from simulator.roads.doubts import speed_doubts
from simulator.roads.read_report import FilledDefault

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from simulator.roads.gmns.links import GmnsLinks

SHORTEST_M = 1.0
"""Length of a link that has neither a length nor a shape, and whose nodes are at the same place."""
MOST_LIKELY_VPH = 3000.0
"""Vehicles per hour and lane; a higher capacity is hardly one of a lane and an hour."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkNumbers:
    """The numbers of every usable link, in the order of the rows.

    A length that is missing or 0 becomes that of the link's shape, or the straight distance between its nodes, and
    never less than 1 m. A speed, lanes or a capacity that is missing or 0 is taken by class of road
    (:mod:`simulator.roads.class_defaults`), and where the class has none, as the caller says.

    Parameters
    ----------
    columns
        ``length_m``, ``speed_mps``, ``lanes``, ``capacity_vph`` (per lane), each of shape (usable links,).
    defaults
        Lengths filled in.
    remarks
        What was taken by class of road, one sentence a value.
    doubts
        What speaks against capacities being of a lane and an hour.
    """

    columns: dict[str, NDArray[np.float64]]
    defaults: tuple[FilledDefault, ...]
    remarks: tuple[str, ...]
    doubts: tuple[str, ...]

    @classmethod
    def from_links(
        cls,
        links: GmnsLinks,
        *,
        shape_m: NDArray[np.float64],
        straight_m: NDArray[np.float64],
        length_m: float,
        speed_mps: float,
        default_speed_mps: float,
        default_lanes: int,
        capacity_vph: float,
    ) -> LinkNumbers:
        """Turn a table's numbers into ours.

        Parameters
        ----------
        links
            As read.
        shape_m
            Metres of each usable link's shape, NaN where it has none, shape (usable links,).
        straight_m
            Metres between the nodes of each usable link, likewise.
        length_m, speed_mps
            What one unit of the table is.
        default_speed_mps, default_lanes, capacity_vph
            Where the class of road has no default.

        Returns
        -------
        LinkNumbers
            All above 0.
        """
        given = {name: values[links.usable] for name, values in links.numbers.items()}
        classes = [links.classes[row] for row in np.flatnonzero(links.usable).tolist()]
        with np.errstate(over="ignore"):
            metres, defaults = _lengths(given["length"] * length_m, shape_m, straight_m)
        known = [class_defaults(kind) for kind in classes]
        columns, remarks = {"length_m": metres}, []
        for ours, theirs, unit, default, shown in (
            ("speed_mps", "free_speed", speed_mps, default_speed_mps, "{:g} m/s"),
            ("lanes", "lanes", 1.0, float(default_lanes), "{:g}"),
            ("capacity_vph", "capacity", 1.0, capacity_vph, "{:g} vehicles/h"),
        ):
            values = given[theirs] * unit
            by_class = [default if taken is None else float(getattr(taken, ours)) for taken in known]
            missing = ~(values > 0)
            columns[ours] = np.where(missing, by_class, values)
            filled = [(classes[row], shown.format(by_class[row])) for row in np.flatnonzero(missing).tolist()]
            said = filled_in_words(ours, filled, links=len(classes))
            if said is not None:
                remarks.append(f"{links.table.file}: {said}")
        high = int((columns["capacity_vph"] > MOST_LIKELY_VPH).sum())
        given_mps = np.where(given["free_speed"] > 0, columns["speed_mps"], np.nan)
        doubts: list[str] = [*speed_doubts(given_mps, metres, file=links.table.file)]
        if high:
            of_all = counted(len(classes), "link")
            said = f"capacity is above {MOST_LIKELY_VPH:,.0f} vehicles/h and lane in {high:,} of {of_all}"
            doubts.append(f"{links.table.file}: {said}: is it of a whole link, or of a day?")
        return cls(columns, tuple(defaults), tuple(remarks), tuple(doubts))

    def data(self, row: int) -> dict[str, Any]:
        """Return the attributes of a usable link as a graph takes them."""
        data: dict[str, Any] = {name: float(values[row]) for name, values in self.columns.items()}
        data["lanes"] = int(data["lanes"])
        return data


def _lengths(
    given_m: NDArray[np.float64], shape_m: NDArray[np.float64], straight_m: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[FilledDefault]]:
    """Take lengths as given, else of shapes, else straight, else the shortest there is."""
    metres, defaults = given_m.copy(), []
    for value, said in (
        (shape_m, "the length of its shape"),
        (np.where(straight_m >= SHORTEST_M, straight_m, np.nan), "the straight distance between its nodes"),
        (np.full(len(metres), SHORTEST_M), f"{SHORTEST_M:g} m"),
    ):
        filled = ~(metres > 0) & (value > 0)
        metres[filled] = value[filled]
        if filled.any():
            defaults.append(FilledDefault("length_m", said, int(filled.sum())))
    return metres, defaults
