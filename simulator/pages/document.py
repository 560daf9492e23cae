"""Pages: a list of sections as one self-contained HTML file that opens offline, for every report of the project."""

import base64
import gzip
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.util import cache_from_source
from itertools import count
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined, Template, select_autoescape
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from simulator.files.atomic_write import write_file
from simulator.pages.charts.spec import Chart, data
from simulator.results import formatting

PACKED_FROM = 50_000
"""Characters of data for a page's script from which they are compressed."""
FORMATS: dict[str, Callable[[float | None], str]] = {
    name: getattr(formatting, name)
    for name in ("number", "signed", "parameter", "claimed", "at_least", "whole", "percent", "size", "duration")
}
_MAP_SCRIPTS = ("cells.js", "motion.js", "map.js")
"""Scripts of a page whose data have a map."""


class ShownTable(NamedTuple):
    """A table of a section.

    Attributes
    ----------
    caption
        Above the table.
    heads
        Of the columns, each with whether its values are numbers.
    rows
        Text or markup of each cell.
    file, csv
        Name of the file and address of its download; empty where there is none.
    left_out
        The rows that are not shown, in words; empty if all are.
    """

    caption: str
    heads: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[str]]
    file: str = ""
    csv: str = ""
    left_out: str = ""


class PageGroup(NamedTuple):
    """Charts, or a table, that stand together in a section.

    Attributes
    ----------
    title
        Above them; empty for none.
    charts
        The charts, side by side where there is room.
    table
        The table below them.
    folded
        Whether only the title is shown until a reader opens the group.
    """

    title: str = ""
    charts: Sequence[Chart] = ()
    table: ShownTable | None = None
    folded: bool = False


@dataclass(frozen=True)
class PageSection:
    """A section of a page.

    Parameters
    ----------
    name
        Its address on the page. In its template it is also the name of `values`.
    title
        Its name in the navigation; empty for none.
    heading
        Its heading; by default the title.
    about
        Paragraphs below the heading.
    groups
        Its charts and tables.
    same_scale
        The group of charts (`Chart.facet`) to which a reader may give the same vertical scale; empty for none.
    notes
        Sentences below them.
    template
        The template in ``page`` that writes it, for a section whose text depends on its values; by default the template
        of any section, which shows `heading`, `about`, `groups` and `notes`.
    values
        Values for such a template.
    data
        What the page's script reads, beside the charts.
    """

    name: str
    title: str
    heading: str = ""
    about: Sequence[str] = ()
    groups: Sequence[PageGroup] = ()
    same_scale: str = ""
    notes: Sequence[str] = ()
    template: str = "section"
    values: Mapping[str, object] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """A page.

    Parameters
    ----------
    title
        Shown on the browser's tab.
    kicker, heading
        What kind of page it is, and what it is about.
    header
        The template in ``page`` of what stands below the heading, before all sections; empty for none.
    sections
        The sections in order.
    made_of
        What it was made of, in the last line.
    values
        Values that all templates see.
    data
        What the page's script reads, beside the data of the sections.
    style
        CSS for this page, placed after the common CSS.
    template
        The template in ``page`` of the whole page.
    scripts
        The scripts in ``page`` that it runs, beside the scripts of maps.
    asks_server
        Whether its scripts may ask the server that the page is from; otherwise they connect to nothing.
    """

    title: str
    kicker: str
    heading: str
    header: str
    sections: Sequence[PageSection]
    made_of: str
    values: Mapping[str, object] = field(default_factory=dict)
    data: Mapping[str, object] = field(default_factory=dict)
    style: str = ""
    template: str = "document"
    scripts: Sequence[str] = ("charts.js", "page.js")
    asks_server: bool = False


def marked(value: object, format_name: str = "number", *, shown: str | None = None) -> Markup:
    """
    Make an element that shows a formatted number and keeps its full value as machine-readable data.

    Parameters
    ----------
    value
        The number, or a marker for a missing one.
    format_name
        A key of `FORMATS`.
    shown
        The number as it is shown, where no format fits.

    Returns
    -------
    html
        A ``data`` element, or the text alone where there is no number.
    """
    number = formatting.real(value)
    text = FORMATS[format_name](number) if shown is None else shown
    return escape(text) if number is None else Markup('<data value="{}">{}</data>').format(repr(number), text)


def _bytecode_cache() -> FileSystemBytecodeCache | None:
    """Return the cache of compiled templates, beside this module's own bytecode; None if Python writes none there."""
    folder = Path(cache_from_source(__file__)).parent
    return None if sys.dont_write_bytecode or not os.access(folder, os.W_OK) else FileSystemBytecodeCache(str(folder))


@cache
def _environment() -> Environment:
    """Return the environment of the templates in ``page``: HTML escapes values, and an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("simulator.pages", "page"),
        autoescape=select_autoescape(("html.j2",)),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        bytecode_cache=_bytecode_cache(),
    )
    texts = {name: getattr(formatting, name) for name in ("listed", "sentence_case", "inner_case", "of_hundred")}
    made.filters |= {**FORMATS, **texts, "data": marked}
    made.globals["related"] = formatting.related
    return made


def written(template: str, **values: object) -> str:
    """Return the text of a template in ``page`` with these values."""
    return _environment().get_template(template).render(**values).strip()


def render(document: Document) -> str:
    """
    Render a page: its header, its navigation and its sections, with the style and scripts that it needs.

    Parameters
    ----------
    document
        The page.

    Returns
    -------
    html
        One page with its style, scripts and data inside. A content security
        policy lets it load nothing, and run no script but its own.
    """
    drawn: dict[str, object] = {}
    page = {"charts": drawn, **document.data}
    sections = []
    for section in document.sections:
        sections.append((section, _written(section, document.values, drawn)))
        page |= section.data
    mapped = "campaigns" in page
    scripts = [asset(name) for name in (*document.scripts, *(_MAP_SCRIPTS if mapped else ()))]
    if mapped:
        scripts.insert(0, _leaflet("js"))
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(script) for script in scripts)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
        + ("; connect-src 'self'" if document.asks_server else "")
    )
    text = _as_json(page)
    packed = None
    if len(text) >= PACKED_FROM:  # a page of 142,000 cells at level 9 takes 2.3 s to compress, here .3, and is as large
        packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=6, mtime=0)).decode()
    frame = {
        **document.values,
        "document": document,
        "header": _with_macros(document.header, document.values) if document.header else "",
        "sections": sections,
        "page": text,
        "packed": packed,
        "style": (_leaflet("css") if mapped else "") + asset("report.css") + document.style,
        "mapped": mapped,
        "policy": policy,
        "scripts": scripts,
    }
    return _template(document.template).render(frame)


def _template(name: str) -> Template:
    return _environment().get_template(f"{name}.html.j2")


def _with_macros(template: str, values: Mapping[str, object]) -> str:
    """Return the text of a template with these values, and the macros by the name `m`."""
    return _template("with_macros").render({**values, "template": template})


def _written(section: PageSection, values: Mapping[str, object], drawn: dict[str, object]) -> str:
    """Return a section as HTML, and add its charts to those that the page's script draws."""
    numbers = count()

    def key_of(chart: Chart) -> str:
        key = f"{section.name}-{next(numbers)}"
        drawn[key] = data(chart)
        return key

    of_section = {"section": section, section.name: section.values, "key_of": key_of}
    return _with_macros(section.template, {**values, **of_section})


def _as_json(page: object) -> Markup:
    """Return data for the page's script; a number that is not finite, which JSON cannot represent, is null."""
    try:
        return htmlsafe_json_dumps(page, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return _as_json(json.loads(json.dumps(page), parse_constant=lambda _: None))


def write_document(html: str, path: Path) -> Path:
    """
    Write a file atomically: completely or not at all.

    Parameters
    ----------
    html
        Its content.
    path
        The file; missing parent directories are created.

    Returns
    -------
    path
        The file written.
    """
    write_file(path, lambda staged: staged.write_text(html, encoding="utf-8", newline="\n"), overwrite=True)
    return path


def asset(name: str) -> str:
    """Return the text of a style or script in ``page``."""
    return resources.files("simulator.pages").joinpath("page", name).read_text(encoding="utf-8")


def _leaflet(kind: str) -> str:
    """Return Leaflet's script or style, which draws maps, without what names other files: its source and its icons."""
    text = resources.files("xstatic.pkg.leaflet").joinpath("data", f"leaflet.{kind}").read_text(encoding="utf-8")
    if kind == "js":
        return text.partition("//# sourceMappingURL")[0]
    return re.sub(r"/\*.*?\*/|[^;{}]*url\([^)]*\);", "", text, flags=re.DOTALL)


def _hash(script: str) -> str:
    """Return what a content security policy names a script inside the page by."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
