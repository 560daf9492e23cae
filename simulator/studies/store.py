"""Directory of a study: results are added in parts as they come, and joined into one file a table at the end.

::

    study.json        what was varied, versions, how far the study is
    design.parquet    every point of the study, finished or not
    points.parquet    the finished points; scores.parquet, claims.parquet, …: their tables; with the design's columns
    parts/N/          results that are not in these files yet: the same tables, without the columns of the design
    earlier/N/        results of points that are not in the design: of another version, or of other values

A part appears whole or not at all, and belongs to one process, which holds the lock of the directory. A folder of
tables counts if it has `points.parquet`: of the directory itself, whose tables are replaced one after another, this
file is removed before all others and written after them. Hence, if a process is killed at any moment, nothing is lost
or counted twice:

- A point is finished if all its tables hold it, in one folder of tables.
- Before a table of the directory is replaced, a part or `earlier` holds every point that it holds.
- A folder is deleted after the tables that hold its points instead were read back.
"""

import errno
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import scenarios
from scenarios import Scenario
from simulator.files.atomic_write import is_staging_name, publish, remove_leftovers, staging_directory, write_file
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.studies.design import LABELS
from simulator.studies.point import PointResult

if sys.platform != "win32":
    import fcntl

FACTS, DESIGN, POINTS, WARNINGS, FAILURES = "study.json", "design", "points", "warnings", "failures"
SCENARIO = "scenario.toml"
_PARTS, _EARLIER, _LOCK = "parts", "earlier", ".lock"
_FACT_TYPES = {"format": int, "name": str, "source_sha256": str, "factors": list, "keep": str}
"""Facts that are needed of a study, and their types."""
STUDY_FORMAT = 1
_NO_RESULTS = {DESIGN, FAILURES}
_NEVER_EMPTY = {"scores", "rounds", "deciles", "asked_deciles"}
"""Tables that have rows of every point, if a study keeps them."""
_TABLES = b"tables"
"""Key of a file's metadata that names the tables that were written with it. Files of earlier versions have none."""
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
        if self.path.exists() and not self.path.is_dir():
            raise InputError([f"out (--out): must be a directory, but is a file; got {self.path}"])
        inside = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        # A process that was killed while it wrote the facts for the first time leaves what they were staged in.
        others = {name for name in inside - {_LOCK} if not is_staging_name(name)}
        if others and FACTS not in inside:
            raise InputError([f"out (--out): must be new or hold a study, and this has other files; got {self.path}"])
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / _LOCK).open("a+") as lock:
            if sys.platform != "win32":
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    lock.seek(0)
                    holder = f"process {lock.read().strip() or 'unknown'} is working on the study in this directory"
                    raise InputError(
                        [f"out (--out): {holder}; wait for it, or name another; got {self.path}"]
                    ) from None
                except OSError:  # a file system without locks
                    pass
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            for folder in (self.path, self.path / _PARTS, self.path / _EARLIER):
                remove_leftovers(folder)
            for folder in (*self._folders(_PARTS), *self._folders(_EARLIER)):
                if not (folder / f"{POINTS}.parquet").is_file():  # its deletion was interrupted
                    shutil.rmtree(folder)
            yield

    def facts(self) -> dict[str, Any]:
        """Return the content of `study.json`.

        Raises
        ------
        InputError
            If there is no study in the directory, or its record cannot be read.
        """
        path = self.path / FACTS
        try:
            facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError([f"{self.path}: no study here: {FACTS} is not in it"]) from None
        except (ValueError, RecursionError) as error:
            raise InputError([f"{path}: not JSON: {error}"]) from error
        remedy = "it is not what crowdveil wrote; restore it, or name another directory"
        if not isinstance(facts, dict):
            raise InputError([f"{path}: must be a table of facts: {remedy}"])
        for name, kind in _FACT_TYPES.items():
            if not isinstance(facts.get(name), kind):
                raise InputError([f"{path}: {name} must be of type {kind.__name__}: {remedy}; got {facts.get(name)!r}"])
        if facts["format"] > STUDY_FORMAT:
            raise InputError(
                [f"{path}: format {facts['format']} is of a newer crowdveil; this one reads {STUDY_FORMAT}"]
            )
        return facts

    def write_scenario(self, scenario: Scenario) -> None:
        """Write `scenario.toml`, with references relative to the directory."""
        text = f"# The first setting of the study.\n{scenarios.dump(scenario, folder=self.path)}"
        write_file(self.path / SCENARIO, lambda path: path.write_text(text, encoding="utf-8"), overwrite=True)

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Write `study.json`."""
        text = json.dumps(facts, indent=2, ensure_ascii=False, default=str) + "\n"
        write_file(self.path / FACTS, lambda path: path.write_text(text, encoding="utf-8"), overwrite=True)

    def write_table(self, name: str, table: pd.DataFrame) -> None:
        """Write a table of the directory, replacing it in one step."""
        write_file(self.path / f"{name}.parquet", partial(_write, _arrow(table)), overwrite=True)

    def read_table(self, name: str) -> pd.DataFrame:
        """Return a table of the directory; with no row if there is none.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        path = self.path / f"{name}.parquet"
        return _read(path).to_pandas() if path.is_file() else pd.DataFrame({"key": pd.Series(dtype="str")})

    def add(self, results: Sequence[PointResult]) -> None:
        """Add finished points as one part."""
        types = {"key": "str", "wall_s": "float64", "peak_nbytes": "Int64"}
        points = pd.DataFrame([[getattr(result, name) for name in types] for result in results], columns=list(types))
        warnings = [(result.key, text) for result in results for text in result.warnings]
        tables = {POINTS: points.astype(types)}
        for name in results[0].tables:
            tables[name] = _keyed({result.key: result.tables[name] for result in results})
        tables[WARNINGS] = pd.DataFrame(warnings, columns=["key", "warning"], dtype="str")
        self._write_part(_PARTS, {name: _arrow(table) for name, table in tables.items()})
        if len(parts := self._parts(_PARTS)) >= _MOST_PARTS:
            self._write_part(_PARTS, _joined(_held_by(parts)))
            _delete(parts)

    def finished(self) -> set[str]:
        """Return the keys of all finished points, points of an earlier design included."""
        return set().union(*_held_by(self.sources()).values())

    def results(self, keys: Iterable[str]) -> dict[str, pd.DataFrame]:
        """Return all tables of some finished points, without the columns of the design."""
        wanted = set(keys)
        return {name: _of_keys(table, wanted).to_pandas() for name, table in _joined(_held_by(self.sources())).items()}

    def compact(self, design: pd.DataFrame) -> None:
        """Join all results: results of the design's points into one file a table, all others into `earlier`.

        Parameters
        ----------
        design
            `Design.table` of every point.

        Raises
        ------
        OSError
            If what was written cannot be read back; then nothing is deleted.
        """
        held = _held_by(self.sources())
        tables, keys = _joined(held), set(design["key"])
        finished = set().union(*held.values())
        of_parts = set().union(*(held_keys for folder, held_keys in held.items() if folder != self.path))
        kept = []
        if left := finished - keys:
            kept = [self._write_part(_EARLIER, {name: _of_keys(table, left) for name, table in tables.items()})]
        if only_here := (held.get(self.path, set()) & keys) - of_parts:
            self._write_part(_PARTS, {name: _of_keys(table, only_here) for name, table in tables.items()})
        factors = [name for name in design.columns if name not in LABELS]
        if tables:
            (self.path / f"{POINTS}.parquet").unlink(missing_ok=True)
        for name, table in sorted(tables.items(), key=lambda named: named[0] == POINTS):
            labelled = design.merge(table.to_pandas(), on="key", how="inner", validate="one_to_many")
            labelled = labelled.sort_values("point", kind="stable", ignore_index=True)
            made = _arrow(labelled, {_TABLES: " ".join(tables).encode(), _FACTORS: "\n".join(factors).encode()})
            write_file(self.path / f"{name}.parquet", partial(_write, made), overwrite=True)
        if tables and _held(self.path) != finished & keys:
            raise _not_read_back(self.path)
        _delete(folder for folder in (*self._parts(_PARTS), *self._parts(_EARLIER)) if folder not in kept)

    def finish(self, design: pd.DataFrame, failed: pd.DataFrame, facts: Mapping[str, Any]) -> None:
        """Join all results, and record which points failed and how far the study is.

        Parameters
        ----------
        design
            As in `compact`.
        failed
            Points with ``error``; those that are finished nevertheless are left out.
        facts
            The content of ``study.json``, without how far the study is.

        Raises
        ------
        OSError
            If something cannot be written.
        """
        self.compact(design)
        finished = self.finished() & set(design["key"])
        failed = failed[~failed["key"].isin(finished)]
        self.write_table(FAILURES, failed)
        far = {"finished": len(finished), "failed": len(failed), "complete": len(finished) == len(design)}
        self.write_facts({**facts, **far})

    def take_over(self, others: Iterable["StudyDirectory"]) -> None:
        """Add the finished points of other directories."""
        self._write_part(_PARTS, _joined(_held_by(folder for other in others for folder in other.sources())))

    def sources(self) -> list[Path]:
        """Return the folders with finished points, those that count first where a point is in several."""
        # Parts are looked up first: those that are joined meanwhile are then either here or in the directory itself.
        parts = [*self._parts(_PARTS), *self._parts(_EARLIER)]
        return [self.path, *parts] if (self.path / f"{POINTS}.parquet").is_file() else parts

    def _parts(self, folder: str) -> list[Path]:
        return [path for path in self._folders(folder) if (path / f"{POINTS}.parquet").is_file()]

    def _folders(self, folder: str) -> list[Path]:
        return sorted((self.path / folder).glob("[0-9]*"))

    def _write_part(self, folder: str, tables: Mapping[str, pa.Table]) -> Path:
        """Write tables as one new part of a folder, and return the part; no table makes no part.

        Raises
        ------
        OSError
            If what was written cannot be read back.
        """
        numbers = [int(path.name) for path in self._folders(folder)]
        target = self.path / folder / f"{max(numbers, default=0) + 1:06d}"
        if not tables:
            return target
        with staging_directory(target) as staging:
            for name, table in tables.items():
                named = table.replace_schema_metadata({_TABLES: " ".join(tables).encode()})
                _write(named, staging / f"{name}.parquet")
            publish(staging, target, replace=False)
        if _held(target) != set(tables[POINTS]["key"].to_pylist()):
            raise _not_read_back(target)
        return target


@dataclass(frozen=True, eq=False)
class Study:
    """Results of a study.

    Every table has the columns of the design: `key`, `point`, `setting`, `replicate`, `seed`, and one column for each
    varied key path, of the type of its values.

    Attributes
    ----------
    path
        Its directory.
    name
        Name of the study: its scenario's name.
    factors
        Key paths of what was varied.
    points
        One row per finished point, with `wall_s` and `peak_nbytes`.
    scores, claims, attacks
        The tables of all runs, with the columns that they have in a run directory.
    failures
        The points that failed, with `error`.
    warnings
        What may mislead a reader of a point, with `warning`.
    missing
        Number of points that are not finished.
    facts
        Content of `study.json`.
    """

    path: Path
    name: str
    factors: tuple[str, ...]
    points: pd.DataFrame
    scores: pd.DataFrame
    claims: pd.DataFrame
    attacks: pd.DataFrame
    failures: pd.DataFrame
    warnings: pd.DataFrame
    missing: int
    facts: dict[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a study from its directory; of one that was interrupted, the points that are finished.

        Raises
        ------
        InputError
            If the directory holds no study.
        """
        directory = StudyDirectory(Path(path))
        facts, design = directory.facts(), directory.read_table(DESIGN)
        if not len(design):
            raise InputError([f"{path}: the study has no point yet: the command that began it goes on"])
        results = directory.results(design["key"])
        names = (POINTS, "scores", "claims", "attacks", WARNINGS)
        empty = pd.DataFrame({"key": pd.Series(dtype="str")})
        tables = {name: design.merge(results.get(name, empty), on="key", how="inner") for name in names}
        failures = directory.read_table(FAILURES)
        missing = len(design) - len(tables[POINTS])
        return cls(
            directory.path,
            facts["name"],
            tuple(name for name in design.columns if name not in LABELS),
            **tables,
            failures=failures[~failures["key"].isin(tables[POINTS]["key"])],
            missing=missing,
            facts=facts,
        )

    def table(self, name: str) -> pd.DataFrame:
        """Return any table that the study kept, such as ``estimates``, with the columns of the design.

        Raises
        ------
        KeyError
            If it was not kept; `--keep` chooses the tables.
        """
        directory = StudyDirectory(self.path)
        design = directory.read_table(DESIGN)
        return design.merge(directory.results(design["key"])[name], on="key", how="inner")

    def to_xarray(self) -> Any:
        """Return the numbers of `scores` as an `xarray.Dataset`.

        Its dimensions are `replicate`, the varied key paths, `campaign` and `mechanism`; NaN where there is no run.

        Raises
        ------
        InputError
            If xarray is not installed; the message names the extra ``xarray``.
        """
        import_extra("xarray", needed="Study.to_xarray needs xarray", extra="xarray")
        indexed = self.scores.set_index(["replicate", *self.factors, "campaign", "mechanism"])
        return indexed.drop(columns=["point", "setting", "seed"]).select_dtypes("number").to_xarray()

    def __repr__(self) -> str:
        varied = ", ".join(self.factors) or "nothing"
        return f"<Study: {self.name}, {len(self.points)} points, varied: {varied}, in {self.path}>"


def _keyed(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return tables of several points as one, with the column `key` first."""
    with_keys = [table.assign(key=key)[["key", *table.columns]] for key, table in tables.items()]
    filled = [table for table in with_keys if len(table)] or with_keys[:1]
    return pd.concat(filled, ignore_index=True)


def _arrow(table: pd.DataFrame, metadata: Mapping[bytes, bytes] | None = None) -> pa.Table:
    made = pa.Table.from_pandas(table, preserve_index=False)
    return made.replace_schema_metadata({**(made.schema.metadata or {}), **(metadata or {})})


def _write(table: pa.Table, path: Path) -> None:
    """Write a file and read it back.

    Raises
    ------
    OSError
        If what is read differs.
    """
    pq.write_table(table, path, write_page_checksum=True)
    read = pq.read_table(path, page_checksum_verification=True)
    if read.shape != table.shape or ("key" in table.column_names and not read["key"].equals(table["key"])):
        raise _not_read_back(path)


def _not_read_back(path: Path) -> OSError:
    return OSError(errno.EIO, "what was written cannot be read back", str(path))


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a table.

    Raises
    ------
    InputError
        If the file is not what was written.
    """
    try:
        return pq.read_table(path, columns=columns)
    except FileNotFoundError:  # deleted by the process that works in the directory
        raise
    except (pa.ArrowException, OSError) as error:
        remedy = "remove it, and the points that only it holds are run again"
        raise InputError([f"{path}: cannot be read: {str(error).splitlines()[0]}; {remedy}"]) from error


def _tables_of(folder: Path) -> list[str]:
    """Return the names of a folder's tables of results; none where one of them is missing."""
    files = {path.stem for path in folder.glob("*.parquet")} - _NO_RESULTS
    metadata = _read(folder / f"{POINTS}.parquet", ["key"]).schema.metadata or {}
    names = metadata.get(_TABLES, b"").decode().split() or sorted(files)
    return names if files.issuperset(names) else []


def _held(folder: Path) -> set[str]:
    """Return the keys of the points that all tables of a folder hold."""
    filled = {POINTS, *_NEVER_EMPTY}.intersection(_tables_of(folder))
    keys = [set(_read(folder / f"{name}.parquet", ["key"])["key"].to_pylist()) for name in filled]
    return set.intersection(*keys) if keys else set()


def _held_by(folders: Iterable[Path]) -> dict[Path, set[str]]:
    return {folder: _held(folder) for folder in folders}


def _delete(folders: Iterable[Path]) -> None:
    """Delete folders: first the file that makes the points of a folder count."""
    for folder in folders:
        (folder / f"{POINTS}.parquet").unlink()
        shutil.rmtree(folder)


def _of_keys(table: pa.Table, keys: Iterable[str]) -> pa.Table:
    return table.filter(pc.is_in(table["key"], pa.array(keys, type=table.schema.field("key").type)))


def _joined(held: Mapping[Path, set[str]]) -> dict[str, pa.Table]:
    """Return the tables of folders as one, without the design's columns, each point from the first that holds it."""
    seen: set[str] = set()
    collected: dict[str, list[pa.Table]] = {}
    for folder, held_keys in held.items():
        keys = held_keys - seen
        seen |= keys
        for name in _tables_of(folder):
            table = _read(folder / f"{name}.parquet")
            factors = (table.schema.metadata or {}).get(_FACTORS, b"").decode().split("\n")
            labels = [column for column in table.column_names if column in {*LABELS, *factors} and column != "key"]
            table = table.drop_columns(labels).replace_schema_metadata(None)
            collected.setdefault(name, []).append(_of_keys(table, keys))
    return {name: pa.concat_tables(tables, promote_options="permissive") for name, tables in collected.items()}
