"""Directory of a study: results are added in parts as they come, and joined into one file a table at the end.

::

    study.json        what was varied, versions, how far the study is
    design.parquet    every point of the study, finished or not
    points.parquet    the finished points; scores.parquet, claims.parquet, …: their tables; with the design's columns
    parts/N/          results that are not in these files yet: the same tables, without the columns of the design
    earlier/N/        results of points that are not in the design: of another version, or of other values

A part appears whole or not at all, and belongs to one process, which holds the lock of the directory. A point is
finished if it is in a table `points`, so nothing is lost or counted twice when a process is killed at any moment.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simulator.files.atomic_write import publish, remove_leftovers, staging_directory, write_file
from simulator.files.errors import InputError
from simulator.studies.design import LABELS
from simulator.studies.point import PointResult

if sys.platform != "win32":
    import fcntl

FACTS, DESIGN, POINTS, WARNINGS, FAILURES = "study.json", "design", "points", "warnings", "failures"
_PARTS, _EARLIER, _LOCK = "parts", "earlier", ".lock"
_NO_RESULTS = {DESIGN, FAILURES}
_FACTORS = b"factors"
"""Key of a file's metadata that lists its columns of varied values, which other designs do not have."""
_MOST_PARTS = 64
"""Parts that are joined into one part when there are as many, so that a long study does not leave a file a point."""


class StudyDirectory:
    """The results of a study on disk.

    Parameters
    ----------
    path
        The directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the directory and hold its lock, which the system releases when the process ends, however it ends.

        Raises
        ------
        InputError
            If another process works in the directory, or it holds something else than a study.
        """
        inside = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        if self.path.exists() and not self.path.is_dir():
            raise InputError([f"out (--out): must be a directory, but is a file; got {self.path}"])
        if inside - {_LOCK} and FACTS not in inside:
            raise InputError([f"out (--out): must be new or hold a study, and this has other files; got {self.path}"])
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("a+") as lock:
            if sys.platform != "win32":
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.seek(0)
                    words = f"process {lock.read().strip() or 'unknown'} is working on the study in this directory"
                    raise InputError([f"out (--out): {words}; wait for it, or name another; got {self.path}"]) from None
                except OSError:  # a file system without locks
                    pass
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            remove_leftovers(self.path)
            remove_leftovers(self.path / _PARTS)
            yield

    def facts(self) -> dict[str, Any]:
        """Return the content of `study.json`.

        Raises
        ------
        InputError
            If there is no study in the directory, or its record cannot be read.
        """
        try:
            facts: dict[str, Any] = json.loads((self.path / FACTS).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError([f"{self.path}: no study here: {FACTS} is not in it"]) from None
        except ValueError as error:
            raise InputError([f"{self.path / FACTS}: not JSON: {error}"]) from error
        return facts

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write `study.json`."""
        text = json.dumps(facts, indent=2, ensure_ascii=False, default=str) + "\n"
        write_file(self.path / FACTS, lambda path: path.write_text(text, encoding="utf-8"), overwrite=True)

    def write_table(self, name: str, table: pd.DataFrame, factors: Sequence[str] = ()) -> None:
        """Write a table of the directory, replacing it in one step; `factors` are columns of the design in it."""
        made = pa.Table.from_pandas(table, preserve_index=False)
        made = made.replace_schema_metadata({**(made.schema.metadata or {}), _FACTORS: "\n".join(factors).encode()})
        write_file(self.path / f"{name}.parquet", lambda path: pq.write_table(made, path), overwrite=True)

    def read_table(self, name: str) -> pd.DataFrame:
        """Return a table of the directory; with no row if there is none."""
        path = self.path / f"{name}.parquet"
        return pd.read_parquet(path) if path.is_file() else pd.DataFrame({"key": pd.Series(dtype="str")})

    def add(self, results: Sequence[PointResult]) -> None:
        """Add finished points as one part."""
        names = list(results[0].tables) if results else []
        points = pd.DataFrame(
            {
                "key": pd.Series([one.key for one in results], dtype="str"),
                "wall_s": pd.Series([one.wall_s for one in results], dtype="float64"),
                "peak_nbytes": pd.Series([one.peak_nbytes for one in results], dtype="Int64"),
            }
        )
        warnings = [(one.key, text) for one in results for text in one.warnings]
        tables = {name: _keyed({one.key: one.tables[name] for one in results}) for name in names}
        tables[WARNINGS] = pd.DataFrame(warnings, columns=["key", "warning"], dtype="str")
        self._write_part(_PARTS, {POINTS: points, **tables})
        if len(parts := self._parts(_PARTS)) >= _MOST_PARTS:
            self._write_part(_PARTS, _joined(parts))
            for part in parts:
                shutil.rmtree(part)

    def finished(self) -> set[str]:
        """Return the keys of all finished points, those of an earlier design included."""
        return {key for folder in self.sources() for key in _keys_of(folder)}

    def results(self, keys: Iterable[str]) -> dict[str, pd.DataFrame]:
        """Return all tables of some finished points, without the columns of the design."""
        wanted = set(keys)
        return {name: _of_keys(table, wanted).to_pandas() for name, table in _joined(self.sources()).items()}

    def compact(self, design: pd.DataFrame) -> None:
        """Join all results: those of the design's points into one file a table, all others into `earlier`.

        Parameters
        ----------
        design
            `Design.table` of every point.
        """
        sources, keys = self.sources(), set(design["key"])
        tables = _joined(sources)
        left = {key for folder in sources for key in _keys_of(folder)} - keys
        if left:
            self._write_part(_EARLIER, {name: _of_keys(table, left) for name, table in tables.items()})
        factors = [name for name in design.columns if name not in LABELS]
        # The table of points is written last: it says which rows of the others count.
        for name in sorted(tables, key=lambda name: name == POINTS):
            labelled = design.merge(tables[name].to_pandas(), on="key", how="inner", validate="one_to_many")
            self.write_table(name, labelled.sort_values("point", kind="stable", ignore_index=True), factors)
        for folder in sources:
            if folder != self.path:
                shutil.rmtree(folder)

    def take_over(self, others: Iterable["StudyDirectory"]) -> None:
        """Add the finished points of other directories."""
        self._write_part(_PARTS, _joined([folder for one in others for folder in one.sources()]))

    def sources(self) -> list[Path]:
        """Return the folders with finished points, those that count first where a point is in several."""
        # Parts are looked up first: those that are joined meanwhile are then either here or in the directory itself.
        parts = [*self._parts(_PARTS), *self._parts(_EARLIER)]
        return [self.path, *parts] if (self.path / f"{POINTS}.parquet").is_file() else parts

    def _parts(self, folder: str) -> list[Path]:
        return sorted(path.parent for path in (self.path / folder).glob(f"[0-9]*/{POINTS}.parquet"))

    def _write_part(self, folder: str, tables: Mapping[str, Any]) -> None:
        numbers = [int(path.name) for path in (self.path / folder).glob("[0-9]*")]
        target = self.path / folder / f"{max(numbers, default=0) + 1:06d}"
        with staging_directory(target) as staging:
            for name, table in tables.items():
                path = staging / f"{name}.parquet"
                if isinstance(table, pd.DataFrame):
                    table.to_parquet(path, index=False)
                else:
                    pq.write_table(table, path)
            publish(staging, target, replace=False)


def _keyed(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return tables of several points as one, with the column `key` first."""
    with_keys = [table.assign(key=key)[["key", *table.columns]] for key, table in tables.items()]
    filled = [table for table in with_keys if len(table)] or with_keys[:1]
    return pd.concat(filled, ignore_index=True)


def _keys_of(folder: Path) -> list[str]:
    keys: list[str] = pq.read_table(folder / f"{POINTS}.parquet", columns=["key"])["key"].to_pylist()
    return keys


def _of_keys(table: pa.Table, keys: Iterable[str]) -> pa.Table:
    return table.filter(pc.is_in(table["key"], pa.array(keys, type=table.schema.field("key").type)))


def _joined(folders: Iterable[Path]) -> dict[str, pa.Table]:
    """Return the tables of several folders as one, without the design's columns, each point from the first only."""
    seen: set[str] = set()
    collected: dict[str, list[pa.Table]] = {}
    for folder in folders:
        keys = set(_keys_of(folder)) - seen
        seen |= keys
        for path in folder.glob("*.parquet"):
            if path.stem in _NO_RESULTS:
                continue
            table = pq.read_table(path)
            factors = (table.schema.metadata or {}).get(_FACTORS, b"").decode().split("\n")
            labels = [name for name in table.column_names if name in {*LABELS, *factors} and name != "key"]
            table = table.drop_columns(labels).replace_schema_metadata(None)
            collected.setdefault(path.stem, []).append(_of_keys(table, keys))
    return {name: pa.concat_tables(tables, promote_options="permissive") for name, tables in collected.items()}
