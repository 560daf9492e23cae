"""`crowdveil data`: lists, checks and fetches data sets."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.commands import Group
from simulator.cli.common import meter, print_json, print_rows
from simulator.cli.options import Json, command, data_set_names
from simulator.datasets.check import FileCheck, check_data_set, check_file, describe_data_set
from simulator.datasets.fetch import UnreachableError, fetch_file, import_pooch, server_of
from simulator.datasets.manifest import DataFile, DataSet, data_root, folder_of, read_manifest
from simulator.files.errors import InputError

app = typer.Typer(cls=Group, help="Data sets: list, check, fetch.", add_completion=False)


@app.command("list")
def list_data(*, as_json: Json = False) -> None:
    """List the known data sets, and what of them is under CROWDVEIL_DATA; exit code 0 even where nothing is."""
    rows = [describe_data_set(data_set) for data_set in read_manifest()]
    if as_json:
        print_json(rows)
        return
    lines: list[tuple[str, str]] = []
    for row in rows:
        present = f"{row['present']}/{row['files']} present" if row["files"] else "not listed"
        changed = f", {row['changed']} changed" if row["changed"] else ""
        lines.append((row["folder"], row["title"]))
        lines.append(("", f"{present}{changed}; fetchable: {row['fetchable']}; licence: {row['licence']}"))
    print_rows(lines)
    if rows and rows[0]["root"] is None:
        typer.echo("CROWDVEIL_DATA is not set or names no folder, so only the samples are present.", err=True)


@app.command("check")
@command
def check_data(
    folders: Annotated[list[str] | None, typer.Argument(autocompletion=data_set_names)] = None, *, as_json: Json = False
) -> None:
    """Compare what is there with the manifest's checksums.

    Exit code 0 if every listed file that is there is right, 2 if one differs, or nothing of a data set named is there.

    Parameters
    ----------
    folders : [FOLDER]…
        Data sets; by default all that are present.
    """
    manifest = read_manifest()
    asked = [manifest.data_set(folder) for folder in dict.fromkeys(folders or ())]
    root = data_root() if any(data_set.folder != "samples" for data_set in asked or manifest) else None
    every = {data_set.folder: check_data_set(data_set, root) for data_set in asked or manifest}
    shown = every if asked else {folder: of_folder for folder, of_folder in every.items() if _any_present(of_folder)}
    checks = [check for of_folder in shown.values() for check in of_folder]
    if as_json:
        print_json([{"folder": c.folder, "file": c.name, "state": c.state, "detail": c.detail} for c in checks])
    else:
        for check in checks:
            typer.echo(str(check))
        count = Counter(check.state for check in checks)
        typer.echo(
            f"{count['ok']} ok, {count['missing']} missing, {count['differs']} differ, {count['unlisted']} unlisted"
        )
    faults = [str(check) for check in checks if check.state == "differs"]
    faults += [
        f"{data_set.folder}: none of its files is under CROWDVEIL_DATA = {root}. To get it: {data_set.how_to_obtain}"
        for data_set in asked
        if not _any_present(every[data_set.folder])
    ]
    if faults:
        raise InputError(faults)


@app.command("fetch")
@command
def fetch_data(
    folders: Annotated[list[str], typer.Argument(autocompletion=data_set_names)],
    *,
    to: Path | None = None,
    overwrite: bool = False,
) -> None:
    """Get data sets from their owners, and check them; explain how to get files without an address.

    A file that is present and correct is kept, one that differs too unless --overwrite is given. Exit code 0 if in the
    end every file requested is present and correct, 2 if not.

    Parameters
    ----------
    folders : FOLDER…
        Data sets, or one file: FOLDER/FILE.
    to
        The folder of data sets; the one that CROWDVEIL_DATA names if not given.
    overwrite
        Replace files that differ.
    """
    manifest = read_manifest()
    asked: dict[str, tuple[DataSet, list[DataFile]]] = {}
    for name in folders:
        folder, _, inside = name.rstrip("/").partition("/")
        data_set = manifest.data_set(folder)
        _, files = asked.setdefault(folder, (data_set, []))
        files += [file for file in ((data_set.file(inside),) if inside else data_set.files) if file not in files]
    root = to if to is not None else data_root()
    where = {folder_of(folder, root) / file.name: file.url for folder, (_, files) in asked.items() for file in files}
    if any(url is not None and (overwrite or not path.exists()) for path, url in where.items()):
        import_pooch()  # before any file is checked
    faults: list[str] = []
    dead: set[str] = set()
    for data_set, files in asked.values():
        terms = f"licence: {data_set.licence}\n  cite: {data_set.citation}"
        typer.echo(f"{data_set.folder}: {data_set.title}\n  {terms}", err=True)
        faults += _fetch(data_set, files, root, overwrite=overwrite, dead=dead)
    if faults:
        raise InputError(faults)


def _fetch(data_set: DataSet, files: Sequence[DataFile], root: Path, *, overwrite: bool, dead: set[str]) -> list[str]:
    """Get the files of one data set, telling of each; return what is wrong in the end.

    `dead` are the servers that could not be reached: none is tried twice.
    """
    folder = folder_of(data_set.folder, root)
    faults: list[str] = []
    by_hand: list[str] = []
    for file in files:
        if file.url is None or server_of(file.url) in dead:
            check = check_file(data_set, file, folder)
            by_hand += [] if check.state == "ok" or file.url is not None else [str(check)]
        else:
            try:
                with meter(f"{data_set.folder}/{file.name}", file.bytes) as add:
                    check = fetch_file(data_set, file, folder, overwrite=overwrite, progress=add)
            except InputError as error:
                faults += error.faults
                dead |= {server_of(file.url)} if isinstance(error, UnreachableError) else set()
                continue
            faults += [] if check.state == "ok" else [str(check)]
        typer.echo(f"  {check.name}: {check.state}{f' ({check.detail})' if check.detail else ''}", err=True)
    if by_hand or not data_set.files:
        what = "; ".join(by_hand) or f"{data_set.folder}: its files cannot be checked, since no checksums are known"
        faults.append(f"{what}. To get it: {data_set.how_to_obtain} (owner: {data_set.owner_page})")
    return faults


def _any_present(checks: Sequence[FileCheck]) -> bool:
    return any(check.state != "missing" for check in checks)
