"""Sphinx extension that writes pages before the site is built: the gallery, the internals, and what tests verified.

They are written into folders that git ignores: docs/reference/gallery and docs/reference/api.
"""

import json
import os
import re
import tomllib
from hashlib import sha256
from pathlib import Path
from textwrap import dedent
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import scenarios

ROOT = Path(__file__).parents[1]
PACKAGES = ("mechanisms", "scenarios", "simulator")
REFERENCE = ROOT / "docs" / "reference"
GALLERY = "reference/gallery/index"

SMALLER = {"server-noise": {"campaigns.occupancy.queries": 2}}
"""Values with which a scenario takes seconds in the gallery, where as shipped it would take minutes."""


def write_internals() -> None:
    """Write a page for each package of the source, which documents its modules one by one."""
    for package in (folder.parent for name in PACKAGES for folder in (ROOT / name).rglob("__init__.py")):
        name = ".".join(package.relative_to(ROOT).parts)
        modules = [f"{name}.{file.stem}" for file in sorted(package.glob("*.py")) if file.stem != "__init__"]
        parts = [f"{name}\n{'=' * len(name)}\n", f".. automodule:: {name}\n"]
        options = "   :members:\n   :ignore-module-all:\n   :exclude-members: RunPlots\n"  # the API has it
        parts += [f"{each}\n{'-' * len(each)}\n\n.. automodule:: {each}\n{options}" for each in modules]
        _write(REFERENCE / "api" / "internals" / f"{name}.rst", "\n".join(parts))


def sources_digest() -> str:
    """Return a digest of the packages' sources, by which the cache of executed pages is named."""
    digest = sha256()
    for file in sorted(
        each for name in PACKAGES for each in (ROOT / name).rglob("*") if each.suffix in {".py", ".toml"}
    ):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def missing_data(text: str) -> list[str]:
    """Return the data files that a scenario names and that are not there; samples are shipped."""
    folder = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))
    files = re.findall(r'"data:([^"]+)"', text)
    return [file for file in files if not file.startswith("samples/") and not (folder / file).exists()]


def write_gallery() -> None:
    """Write a page for each shipped scenario, and the index of all."""
    entries = []
    for shipped in scenarios.shipped():
        text = shipped.path.read_text(encoding="utf-8")
        _write(REFERENCE / "gallery" / f"{shipped.name}.md", gallery_page(shipped.name, shipped.description, text))
        entries.append(f"- [{shipped.name}]({shipped.name}.md) {shipped.description}")
    index = """\
        # Gallery

        Every scenario that comes with crowdveil, run when this site was built: pictures, what the run found, how long
        it took, and the scenario to copy. `crowdveil run NAME` runs it on your machine. SP, ALP, LQS and HDK are the
        [papers](../glossary.md#papers). Devices elsewhere answer too, and are in none of the cells.

        {entries}

        ```{toctree}
        :hidden:
        :glob:

        *
        ```
        """
    _write(REFERENCE / "gallery" / "index.md", dedent(index).replace("{entries}", "\n".join(entries)))


def gallery_page(name: str, description: str, text: str) -> str:
    """Return the page of a scenario, in the notebook form of MyST."""
    comment = re.search(r"(?m)^#:schema.*\n((?:#.*\n)+)", text)
    about = re.sub(r"(?m)^# ?", "", comment[1]) if comment else ""
    about = re.sub(r"\s*Finding \(seed 1\):.*?(?=\n\n|\Z)", "", about, flags=re.DOTALL)
    source = text.partition("\n")[2]
    parts = [f"# {name}", description]
    if absent := missing_data(text):
        parts.append(
            f"The data of this scenario are not part of the project. `{absent[0]}` was not there when this page was "
            "made, so it has no picture. [Data](../data.md) states how to get them."
        )
    else:
        parts += _cells(name, tomllib.loads(text))
    parts += ["## About it", about.strip(), "## The scenario", f"```toml\n{source.strip()}\n```"]
    head = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---"
    return "\n\n".join([head, *parts]) + "\n"


def _cells(name: str, content: dict[str, Any]) -> list[str]:
    """Return the code of a scenario's page: the run, its finding, its pictures."""
    changed = SMALLER.get(name, {})
    arguments = "".join(f', overrides={{"{key}": {value!r}}}' for key, value in changed.items())
    less = "".join(
        f" It is run with `{key} = {value}` here, so that it takes seconds." for key, value in changed.items()
    )
    guessing = any(attack["kind"] != "poisoning" for attack in content.get("attacks", ()))
    told = "attacks" if guessing else "errors"
    run = f'import crowdveil as cv\n\nresult = cv.run("{name}"{arguments})'
    timed = "import time\nbegun = time.perf_counter()"
    finding = (
        "from IPython.display import Markdown\n"
        "from simulator.pages.findings_section import sentences\n"
        "took = time.perf_counter() - begun\n"
        'Markdown(" ".join(sentences(result)[:1]) + f"\\n\\nThe run took {took:.1f} s.")'
    )
    return [
        *([less.strip()] if less else []),
        _cell(timed, "remove-cell"),
        _cell(run),
        _cell(finding, "remove-input"),
        _cell("result.plot.map();", alt=f"Map of the cells of {name}, coloured by the number of vehicles"),
        _cell(f"result.plot.{told}();", alt=f"Plot of the {told} of {name}"),
    ]


def _cell(code: str, tag: str = "", *, alt: str = "") -> str:
    options = f":tags: [{tag}]\n" if tag else f"---\nmystnb:\n  image:\n    alt: {alt}\n---\n" if alt else ""
    return f"```{{code-cell}} ipython3\n{options}{code}\n```"


def write_verification() -> None:
    """Write the page of what tests compared, from the record that they made."""
    record = json.loads((ROOT / "docs" / "verification.json").read_text(encoding="utf-8"))
    rows = [
        f"| {family['what']} | {family['comparisons']:,} | {family['tests']:,} | {_share(name, family)} |"
        for name, family in record["families"].items()
    ]
    head = "| what is compared | comparisons | tests | largest deviation, of the allowed one |\n|---|---|---|---|"
    about = f"Recorded on {record['date']}, from commit `{record['commit']}`."
    _write(REFERENCE / "api" / "verification_table.md", "\n".join([about, "", head, *rows, ""]))


def _share(name: str, family: dict[str, Any]) -> str:
    if name.startswith("published"):
        return ""
    share = family["largest_share"]
    return "equal" if share == 0.0 else "below 0.1 %" if share < 0.001 else f"{100 * share:.2g} %"


def add_thumbnails(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the first picture of each scenario's page before its line in the index of the gallery."""
    if docname != GALLERY:
        return
    for item in doctree.findall(nodes.list_item):
        link = next(iter(item.findall(nodes.reference)), None)
        if link is None:
            continue
        pictures = app.env.get_doctree(f"reference/gallery/{link.astext()}").findall(nodes.image)
        picture = next(iter(pictures), None)
        if picture is not None:
            shown = nodes.image(uri=picture["uri"], candidates=picture["candidates"], alt="", classes=["thumbnail"])
            link.insert(0, shown)


def name_no_empty_heads(_app: Sphinx, doctree: nodes.document) -> None:
    """Make cells of the empty heads in tables that a notebook shows: a screen reader announces every head."""
    for raw in doctree.findall(nodes.raw):
        raw.children = [nodes.Text(raw.astext().replace("<th></th>", "<td></td>"))]


def _write(path: Path, text: str) -> None:
    """Write a page if it has changed, so that Sphinx does not read it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_pages(_app: Sphinx) -> None:
    """Write all pages."""
    write_internals()
    write_gallery()
    write_verification()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("doctree-resolved", add_thumbnails)
    app.connect("doctree-read", name_no_empty_heads)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
