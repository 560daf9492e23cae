"""Generator of docs/data.md from the manifest: `python -m simulator.datasets.docs_generator docs/data.md`."""

import sys
from pathlib import Path

from simulator.datasets.manifest import DataSet, Manifest, read_manifest
from simulator.files.errors import InputError

BEGIN, END = "<!-- from the manifest: begin -->", "<!-- from the manifest: end -->"


def markdown(manifest: Manifest) -> str:
    """Return the table of data sets and a section on each.

    Returns
    -------
    str
        Markdown, to be placed between `BEGIN` and `END`.
    """
    lines = ["| folder | what it is | files | `fetch` | licence |", "|---|---|---|---|---|"]
    for known in manifest:
        files = str(len(known.files)) if known.files else "not listed"
        lines.append(
            f"| [`{known.folder}`](#{known.folder}) | {known.title} | {files} | {_how(known)} | {known.licence} |"
        )
    for known in manifest:
        lines += ["", f"### {known.folder}", "", *_of(known)]
    return "\n".join(lines) + "\n"


def _how(known: DataSet) -> str:
    if known.folder == "samples":
        return "shipped"
    if len(known.fetchable) == len(known.files) > 0:
        return "all"
    return f"{len(known.fetchable)} of them" if known.fetchable else "by hand"


def _of(known: DataSet) -> list[str]:
    owner = "" if known.owner_page == "none" else f"Owner: <{known.owner_page}>. "
    terms = f"Licence: {known.licence}. Cite: {known.citation}. Under a figure: “{known.attribution}”."
    lines = [
        f"{owner}Used here: {known.origin}. {terms}",
        "",
        f"To get it: {known.how_to_obtain}.",
        "",
        *(f"- {defect}" for defect in known.defects),
    ]
    if known.files:
        lines += ["", "| file | rows | loader | what it holds |", "|---|---|---|---|"]
    for file in known.files:
        rows = "" if file.rows is None else f"{file.rows:,}"
        loader = "" if file.loader is None else f"[`{file.loader}`](#loaders)"
        its_own = "" if file.licence is None else f" (licence: {file.licence})"
        lines.append(f"| `{file.name}` | {rows} | {loader} | {file.about}{its_own} |")
    return lines


def renewed(page: str, manifest: Manifest) -> str:
    """Return a page with the text between `BEGIN` and `END` generated again.

    Raises
    ------
    InputError
        If the page does not have both, in this order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError([f"the page must have a line {BEGIN}, and after it a line {END}"])
    return f"{before}{BEGIN}\n{markdown(manifest)}{END}{after}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(renewed(file.read_text(encoding="utf-8"), read_manifest()), encoding="utf-8")
