"""Trip tables: how many trips lead from each place to each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.files.counted import counted

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]

SHOWN = 20
"""Faults of one kind that are told one by one."""


@dataclass(frozen=True, eq=False)
class TripTable:
    """Trips between places that are known by name, in the order of origin and destination.

    Attributes
    ----------
    file
        Where they are from, for messages.
    places
        Names of places, as the file writes them.
    origin, destination
        (entries,) int32, indices of `places`.
    trips
        (entries,) float64, 0 or more; need not be whole.
    row
        (entries,) int64, row or line of the file; of summed ones, the first.
    unit
        "row" or "line".
    from_s, to_s
        (entries,) float64: when these trips depart, evenly between; equal where all depart at one moment. None where
        the file does not say.
    notes
        What was summed.
    """

    file: str
    places: list[str]
    origin: IntArray
    destination: IntArray
    trips: FloatArray
    row: LongArray
    unit: str = "row"
    from_s: FloatArray | None = None
    to_s: FloatArray | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def sorted(
        cls,
        file: str,
        places: list[str],
        origin: IntArray,
        destination: IntArray,
        trips: FloatArray,
        row: LongArray,
        *,
        unit: str,
        from_s: FloatArray | None = None,
        to_s: FloatArray | None = None,
    ) -> "TripTable":
        """Sort entries by origin, destination and time."""
        keys: list[npt.NDArray[Any]] = [row, destination, origin]
        if from_s is not None and to_s is not None:
            keys = [row, to_s, from_s, destination, origin]
        order = np.lexsort(keys)
        return cls(
            file,
            places,
            origin[order],
            destination[order],
            trips[order],
            row[order],
            unit,
            None if from_s is None else from_s[order],
            None if to_s is None else to_s[order],
        )

    @classmethod
    def summed(
        cls,
        file: str,
        places: list[str],
        origin: IntArray,
        destination: IntArray,
        trips: FloatArray,
        row: LongArray,
        *,
        unit: str,
        from_s: FloatArray | None = None,
        to_s: FloatArray | None = None,
    ) -> "TripTable":
        """Sort entries, and add up those that have everything but their trips in common, saying how many those were."""
        table = cls.sorted(file, places, origin, destination, trips, row, unit=unit, from_s=from_s, to_s=to_s)
        keys = [key for key in (table.origin, table.destination, table.from_s, table.to_s) if key is not None]
        first = np.ones(len(table), dtype=np.bool_)
        first[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        if first.all():
            return table
        again = table.row[~first]
        table.notes.append(
            f"{table.title}: {counted(len(again), unit)}, {unit} {again.min():,} the first, with the origin, "
            f"destination and time of an earlier one: their trips are added up"
        )
        totals = np.zeros(len(table))
        totals[first] = np.add.reduceat(table.trips, np.flatnonzero(first))
        return table.kept(first, trips=totals)

    @property
    def title(self) -> str:
        """Name of the file without its folders: notes are read elsewhere."""
        return Path(self.file).name

    @property
    def has_times(self) -> bool:
        """Whether the file says when trips depart."""
        return self.from_s is not None

    @property
    def total(self) -> float:
        """All trips, those within a place included."""
        return float(self.trips.sum())

    def kept(self, which: npt.NDArray[np.bool_], *, trips: FloatArray | None = None) -> "TripTable":
        """Return the table of some entries only, perhaps with other trips."""
        return TripTable(
            self.file,
            self.places,
            self.origin[which],
            self.destination[which],
            (self.trips if trips is None else trips)[which],
            self.row[which],
            self.unit,
            None if self.from_s is None else self.from_s[which],
            None if self.to_s is None else self.to_s[which],
            self.notes,
        )

    def name(self, entry: int) -> str:
        """Say where an entry stands."""
        return f"{self.file}: {self.unit} {int(self.row[entry])}"

    def __len__(self) -> int:
        return len(self.trips)

    def __repr__(self) -> str:
        return f"<TripTable: {self.total:,g} trips in {len(self):,} entries between {len(self.places):,} places>"


def capped(faults: Sequence[str], *, total: int | None = None) -> list[str]:
    """Return the first faults, and how many more there are."""
    count = len(faults) if total is None else total
    shown = list(faults[:SHOWN])
    return shown if count <= len(shown) else [*shown, f"… and {count - len(shown):,} more like these"]
