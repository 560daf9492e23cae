"""Run directory: written completely or not at all, and the reader of its `run.json`."""

import json
import math
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError
from pyproj import CRS
from pyproj.exceptions import CRSError

import scenarios
from mechanisms.privacy.claim import Reason
from scenarios import Scenario, ScenarioError
from scenarios.overrides import parse_toml
from simulator.files.atomic_write import publish, publish_numbered, remove_leftovers, staging_directory
from simulator.files.errors import UserError
from simulator.results import schema
from simulator.results.claims import with_rows_at_delta_zero
from simulator.results.run_record import RUN_FORMAT, RunRecord, Settings
from simulator.results.statements import say
from simulator.results.tables import with_times

COMPLETE = "run.json"
"""File that is written last, so that its presence means a complete run."""

SCENARIO = "scenario.toml"
"""File with the scenario, all values resolved."""

LATEST = "latest"
"""Name of the link to the newest run in the same folder."""


class DirectoryError(UserError):
    """A run directory that may not be written."""


def check_free(directory: Path, *, overwrite: bool, numbered: bool = False) -> None:
    """Check that a run may be written to `directory`, or with `numbered` beside it, before it is simulated.

    Files that a killed process left beside it are removed or restored first.

    Raises
    ------
    DirectoryError
        If the path is taken: by a run, unless `overwrite` is set; or by anything else, since replacing would lose it.
    """
    remove_leftovers(directory.parent)
    above = next(parent for parent in directory.absolute().parents if parent.exists())
    obstacle = ""
    if not above.is_dir() or not os.access(above, os.W_OK):
        why = f"{above} cannot" if above.is_dir() else f"{above} is a file"
        obstacle = f"must be in a directory that can be written, and {why}"
    elif numbered or not os.path.lexists(directory):
        return
    elif directory.is_symlink():
        # The directory that the link leads to would be replaced although the user did not name it.
        obstacle = "must not be a link; name the directory itself"
    elif not directory.is_dir():
        obstacle = "must be a directory, but is a file"
    elif any(directory.iterdir()) and not (directory / COMPLETE).is_file():
        obstacle = "must be a new directory or an earlier run, and this one has other files"
    elif any(directory.iterdir()) and not overwrite:
        obstacle = "it contains an earlier run; overwrite it (--overwrite), or name another"
    if obstacle:
        raise DirectoryError(f"out (--out): {obstacle}; got {directory}")


def fill_directory(directory: Path, fill: Callable[[Path], None], *, overwrite: bool, numbered: bool = False) -> Path:
    """Let `fill` write into a staging directory, then move that into place in one step.

    After any failure, Ctrl-C included, `directory` is unchanged and the staging directory is removed; a killed
    process's staging directory is removed by the next run beside it. With `numbered`, the path is the first of
    `directory`, `directory-2`, `directory-3` … that is free at the end.

    Returns
    -------
    Path
        The directory that was filled.

    Raises
    ------
    DirectoryError
        If the path is taken and may not be replaced; it may have been taken since `check_free`. The run is then kept in
        the first of `directory-2`, `directory-3` … that is free, and the message names it.
    OSError
        If it cannot be written.
    """
    with staging_directory(directory) as staging:
        fill(staging)
        if numbered:
            return publish_numbered(staging, directory)
        try:
            check_free(directory, overwrite=overwrite)
            publish(staging, directory, replace=overwrite)
        except (DirectoryError, FileExistsError) as error:
            kept = publish_numbered(staging, directory)
            raise DirectoryError(
                f"out (--out): something exists already and is not replaced, so this run is kept in {kept}; "
                f"got {directory}"
            ) from error
    return directory


def link_latest(directory: Path) -> None:
    """Point the link `latest` beside a run to this run, in one step; do nothing if links cannot be made."""
    link = directory.with_name(LATEST)
    if link.exists() and not link.is_symlink():
        return  # a file or a run to which a user gave this name
    with suppress(OSError), staging_directory(link) as staging:
        made = staging / LATEST
        made.symlink_to(directory.name, target_is_directory=True)
        made.replace(link)


class UnfinishedRunError(UserError):
    """The directory holds no finished run that can be read; the message states why."""


def read_record(path: Path) -> RunRecord:
    """
    Read `run.json` in the current format or an earlier one.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    record
        Its content; what earlier formats lack has its default.

    Raises
    ------
    UnfinishedRunError
        If the file is missing, is not a run record, or has a later format.
    """
    if not path.is_file():
        raise UnfinishedRunError(f"{path.parent}: no finished run here: run.json is not in it")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"), parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise UnfinishedRunError(f"{path}: not JSON: {error}") from error
    if not isinstance(facts, dict):
        raise UnfinishedRunError(f"{path}: must be a JSON object")
    number = facts.get("format", 1)
    if number not in range(1, RUN_FORMAT + 1):
        rule = f"must be a whole number from 1 to {RUN_FORMAT}, the formats that this version of crowdveil reads"
        raise UnfinishedRunError(
            f"{path}: format: {rule}; got {number!r}, written by version {facts.get('version', 'unknown')}"
        )
    try:
        record = RunRecord.model_validate(facts)
        if record.city.crs is not None:
            CRS.from_user_input(record.city.crs)
    except CRSError as error:
        words = "must be a coordinate system, as crowdveil wrote it"
        raise UnfinishedRunError(f"{path}: city.crs: {words}: {' '.join(str(error).split())[:200]}") from error
    except ValidationError as error:
        raise UnfinishedRunError(f"{path}: {_faults_in_words(error)}") from error
    return record


def _finite(text: str) -> float:
    """Return a number of a JSON file, which has neither infinite ones nor NaN.

    Raises
    ------
    ValueError
        If it is one of them.
    """
    if not math.isfinite(number := float(text)):
        raise ValueError(f"numbers must be finite; got {text[:20]}")
    return number


def write_record(record: RunRecord, directory: Path) -> None:
    """Write `run.json` in one step, with the fields that were set."""
    facts = record.model_dump(mode="json", by_alias=True, exclude_unset=True)
    staged = directory / f"{COMPLETE}.partial"
    staged.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    staged.replace(directory / COMPLETE)


def read_scenario(directory: Path) -> Scenario:
    """Read the scenario of a run, whose data files need not exist any more.

    Raises
    ------
    UnfinishedRunError
        If the directory has none, or it is none.
    """
    read_settings(directory)
    try:
        return scenarios.load(directory / SCENARIO, files_exist=False)
    except ScenarioError as error:
        raise UnfinishedRunError(_one_line(f"{directory / SCENARIO}: {'; '.join(map(str, error.faults))}")) from error


def read_settings(directory: Path) -> Settings:
    """Read what a run's page needs of its scenario, which may be of an earlier version.

    Raises
    ------
    UnfinishedRunError
        If the directory has no scenario, or it is none.
    """
    path = directory / SCENARIO
    if not path.is_file():
        raise UnfinishedRunError(f"{directory}: {SCENARIO} is not in it")
    try:
        return Settings.model_validate(parse_toml(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise UnfinishedRunError(f"{path}: {_faults_in_words(error)}") from error
    except ValueError as error:
        raise UnfinishedRunError(_one_line(f"{path}: not TOML: {error}")) from error


@contextmanager
def damage_named(directory: Path) -> Iterator[None]:
    """Turn any error in the block that has no message of its own into one that names a run directory.

    Its files are checked when they are read (`RunResult.load`); this is for what no check knows.

    Raises
    ------
    UnfinishedRunError
        With the error and its place.
    """
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        own = isinstance(error, UserError | ScenarioError)
        cause = error.__cause__ if type(error).__name__ == "PageError" else error
        if own or cause is None:
            raise
        frame = traceback.extract_tb(cause.__traceback__)[-1]
        where = f"{type(cause).__name__} in {Path(frame.filename).name}, line {frame.lineno}: {cause}"
        raise UnfinishedRunError(
            _one_line(f"{directory}: its files do not fit one another; run the scenario again ({where})")
        ) from error


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _faults_in_words(error: ValidationError) -> str:
    return _one_line("; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()))


class StoredTables(dict[str, Any]):
    """The tables of a run directory by name; each is read when it is first asked for; None if a run has none.

    Parameters
    ----------
    directory
        The directory.
    record
        Content of its `run.json`.

    Raises
    ------
    UnfinishedRunError
        If a file is missing; and when a table is read, if that cannot be, lacks a column that such a table has in every
        format, or has another type, mechanism or cell than `run.json`.
    """

    def __init__(self, directory: Path, record: RunRecord) -> None:
        super().__init__()
        self._directory, self._record = directory, record
        held = {path.stem for path in directory.glob("*.parquet")}
        for name, table in schema.TABLES.items():
            if name in held:
                continue
            if not table.optional and (record.format > 1 or name not in {"servers", "attacks"}):
                raise UnfinishedRunError(f"{directory}: {name}.parquet is not in it")
            self[name] = None if table.optional else table.frame()

    def __missing__(self, name: str) -> Any:
        """Read a table."""
        table = _in_current_form(name, _read_table(self._directory, name, self._record), self._record)
        if fault := next(_misfits(name, table, self), ""):
            raise UnfinishedRunError(_one_line(f"{self._directory / name}.parquet: {fault}: {_REMEDY}"))
        self[name] = table
        return table


_REMEDY = "restore the file, or run the scenario again"


def _read_table(folder: Path, name: str, record: RunRecord) -> Any:
    """Read a table and check it."""
    import geopandas as gpd  # noqa: PLC0415 - slow to import

    path = folder / f"{name}.parquet"
    read = gpd.read_parquet if name in {"cells", "roads", "surroundings"} else pd.read_parquet
    try:
        table = read(path)
    except Exception as error:
        # A damaged file may make the libraries raise anything.
        raise UnfinishedRunError(_one_line(f"{path}: cannot be read as Parquet: {error}; {_REMEDY}")) from error
    if fault := schema.TABLES[name].fault(table) or _foreign(name, table, record):
        raise UnfinishedRunError(_one_line(f"{path}: {fault}: {_REMEDY}"))
    return table


def _foreign(name: str, table: pd.DataFrame, record: RunRecord) -> str:
    """Return in words which mechanism, campaign or cell of a table is none of the record; empty if all are."""
    mechanisms = {*(one.name for one in record.mechanisms), *(one.name for one in record.refinements)}
    campaigns = {query.campaign for query in record.traffic_at_queries} | {one.campaign for one in record.deployments}
    known = {"mechanism": mechanisms, "campaign": campaigns if name in _OF_CAMPAIGNS else set()}
    for column, names in known.items():
        if names and column in table and (others := {*map(str, table[column].dropna())} - names):
            return f"{COMPLETE} has no {column} {', '.join(sorted(others))}"
    cells = record.city.cells
    numbered = {"cell": 1, "truth": 0, "guess": 0} if name == "guesses" else {"cell": 1}
    for column, least in numbered.items():
        if cells and column in table and not table[column].between(least, cells).all():
            return f"column {column} must be from {least} to {cells}"
    if name == "cells" and cells and len(table) != cells:
        return f"must have {cells} rows, one for each cell"
    return _bad_shape(table["geometry"], needed=name != "cells") if "geometry" in table else ""


_OF_CAMPAIGNS = {"estimates", "rounds", "servers", "scores", "guesses"}
"""Tables whose column `campaign` holds the name of one campaign."""


def _bad_shape(shapes: Any, *, needed: bool) -> str:
    """Return in words what is wrong with a column of shapes, which may all be missing if none is `needed`."""
    if shapes.crs is None:
        return "column geometry must have a coordinate system"
    missing = shapes.isna() | shapes.is_empty
    if missing.all() and not needed:
        return ""
    if missing.any() or not np.isfinite(shapes.total_bounds).all():
        return "column geometry must have a shape with finite coordinates in every row"
    return ""


def _misfits(name: str, table: Any, tables: Mapping[str, Any]) -> Iterator[str]:
    """Yield in words how a table does not fit itself or another one of the run."""
    keys = [*schema.TABLES[name].keys]
    if keys and table.duplicated(keys).any():
        yield f"two rows have the same {', '.join(keys)}"
    if name == "roads":
        yield from _faults_of_roads(table)
    elif "link" in table and tables["roads"] is not None:
        links = len(tables["roads"])
        if not table["link"].between(0, links - 1).all():
            yield f"column link must be from 0 to {links - 1}, a link of roads.parquet"
    if "vehicle" in table and not table["vehicle"].between(0, _MOST_VEHICLES).all():
        yield "column vehicle must be the number of a vehicle, from 0"
    if name in {"entries", "places"}:
        vehicle, time_s = (np.diff(table[column].to_numpy(), prepend=-1) for column in ("vehicle", "time_s"))
        if (vehicle < 0).any() or ((vehicle == 0) & (time_s < 0)).any():
            yield "rows must ascend by vehicle, then by time"
        if name == "entries" and not (table["event"].to_numpy()[vehicle != 0] == "departure").all():
            yield "the first event of each vehicle must be its departure"
    if name in {"links", "detectors"} and not (table["from_s"] < table["to_s"]).all():
        yield "from_s must be below to_s"
    if name == "estimates":
        estimated, scored = (
            pd.MultiIndex.from_frame(each[["campaign", "mechanism"]].astype(str)) for each in (table, tables["scores"])
        )
        if not estimated.unique().isin(scored).all():
            yield "scores.parquet lacks one of its pairs of campaign and mechanism"


_MOST_VEHICLES = 2**31 - 1


def _faults_of_roads(roads: Any) -> Iterator[str]:
    """Yield in words what is wrong with the links of a run."""
    first, other = roads["from_node"].to_numpy(), roads["to_node"].to_numpy()
    if not np.array_equal(roads["link"], np.arange(len(roads))) or (np.diff(first) < 0).any():
        yield "the links must be numbered from 0, in the order of from_node"
    if (first < 0).any() or (other < 0).any():
        yield "nodes must be numbered from 0"
    if (roads[["length_m", "speed_mps", "lanes"]] <= 0).any(axis=None):
        yield "length_m, speed_mps and lanes must be above 0"
    if not roads.geom_type.isin(["LineString", "MultiLineString"]).all():
        yield "column geometry must have lines"


_RELEASED_BY = r"Released by (?P<release>.+?), campaigns? (?P<campaign>[^:]+): "
"""How the basis of a claim about a release begins, which in earlier runs alone names the release and its campaigns."""


_OF_EARLIER = {"statistic": "count", "participation": 1.0, "assumed_participation": 1.0, "partition": "cells"}
"""Values of columns in runs of versions that counted the devices asked, in one partition, and nothing else."""


def _in_current_form(name: str, table: Any, record: RunRecord) -> Any:
    """Return a table of any version with the columns that it has in this one; those that are not known are null."""
    if name == "cells":
        table = table.to_crs(4326).sort_values("cell").reset_index(drop=True)
    if name == "claims":
        table = _claims(table)
    if "time_s" in table and "time" not in table:
        table = with_times(table, record.clock)
    known = (column for column in schema.TABLES[name].columns if not column.optional)
    missing = [column for column in known if column.name not in table]
    types = {column.name: "Int64" if column.type == "int64" else column.type for column in missing}
    made = {name: pd.Series(_OF_EARLIER.get(name), index=table.index, dtype=of) for name, of in types.items()}
    return table.assign(**made)


def _claims(claims: pd.DataFrame) -> pd.DataFrame:
    """Return claims with their campaigns, release, adjacency and reason.

    Claims of earlier versions name a release, its campaigns and the reason in the basis only, and do not state their
    adjacency: claims of published values hide at least a device that enters or leaves a cell.
    """
    if "reason" not in claims:
        differ = claims["basis"].fillna("").str.startswith(say(Reason.ROUNDS_DIFFER))
        claims = claims.assign(reason=differ.map({True: Reason.ROUNDS_DIFFER.value, False: None}))
    if "campaign" not in claims:
        claims = claims.assign(campaign=None)
    if "release" not in claims:
        named = claims["basis"].fillna("").str.extract(_RELEASED_BY)
        campaigns = named["campaign"].str.split(", ").where(named["release"].notna(), claims["campaign"])
        claims = claims.assign(release=named["release"], campaign=campaigns).explode("campaign", ignore_index=True)
    if "adjacency" not in claims:
        released = claims["view"].str.startswith("released")
        claims = claims.assign(adjacency=np.where(released, "enter_leave", "move"))
    return with_rows_at_delta_zero(claims)
