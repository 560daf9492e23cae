"""The report: one self-contained HTML page that opens offline."""

import base64
import gzip
import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from importlib.util import cache_from_source
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined, Template
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from simulator.charts.page import Page
from simulator.files.atomic_write import write_file
from simulator.reporting.attacks_section import attacks_section
from simulator.reporting.claims_section import claims_section
from simulator.reporting.constant_error_section import growth_section, loss_section
from simulator.reporting.deployments_section import deployments_section
from simulator.reporting.errors_section import occupancy_section, scores_section
from simulator.reporting.findings_section import first_screen
from simulator.reporting.map_section import map_section
from simulator.reporting.traffic_section import flow_check_section, traffic_section
from simulator.results import formatting
from simulator.results.run import RunResult, opened
from simulator.results.store import UnfinishedRunError

PACKED_FROM = 200_000
"""Characters of data for a page's script from which they are compressed."""
FORMATS: dict[str, Callable[[float | None], str]] = {
    name: getattr(formatting, name)
    for name in (
        "number",
        "signed",
        "parameter",
        "claimed",
        "at_least",
        "whole",
        "percent",
        "size",
        "duration",
    )
}


def data(value: object, format_name: str = "number", *, shown: str | None = None) -> Markup:
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
    known = formatting.real(value)
    text = FORMATS[format_name](known) if shown is None else shown
    return escape(text) if known is None else Markup('<data value="{}">{}</data>').format(repr(known), text)


def _bytecode_cache() -> FileSystemBytecodeCache | None:
    """Return the cache of compiled templates, beside this module's own bytecode; None if Python writes none there."""
    folder = Path(cache_from_source(__file__)).parent
    return None if sys.dont_write_bytecode or not os.access(folder, os.W_OK) else FileSystemBytecodeCache(str(folder))


@cache
def environment() -> Environment:
    """Return the environment of the templates in ``page``: every value is escaped, and an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("simulator.reporting", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        bytecode_cache=_bytecode_cache(),
    )
    words = {name: getattr(formatting, name) for name in ("listed", "sentence_case", "inner_case")}
    made.filters |= {**FORMATS, **words, "data": data}
    made.globals["related"] = formatting.related
    return made


def render_page(
    template: Template, title: str, page: Mapping[str, object], values: Mapping[str, object], *, style: str = ""
) -> str:
    """
    Render a page with the style and scripts common to all pages.

    Parameters
    ----------
    template
        A template of `environment` that extends ``base.html.j2``.
    title
        Shown on the browser's tab.
    page
        Data for the page's script; `charts` holds the charts to draw.
    values
        Values of the template's own names.
    style
        CSS for this page, placed after the common CSS.

    Returns
    -------
    html
        One page with its style, scripts and data inside. A content security
        policy lets it load nothing, and run no script but its own.
    """
    scripts = [_asset(name) for name in ("charts.js", "cells.js", "motion.js", "report.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(script) for script in scripts)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    style = _asset("report.css") + style
    text = _as_json(page)
    packed = base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode() if len(text) >= PACKED_FROM else None
    frame = {"title": title, "page": text, "packed": packed, "style": style, "policy": policy, "scripts": scripts}
    return template.render({**frame, **values})


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


def _asset(name: str) -> str:
    return resources.files("simulator.reporting").joinpath("page", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


ROUND_COUNTS = ("asked", "answered", "counted", "late", "lost", "rejected", "unpaired", "duplicates")
ANSWERED = ("counted", "late", "lost", "rejected", "unpaired")
"""What became of each answer."""


def rounds_section(run: RunResult, _page: Page) -> dict[str, object]:
    """
    Tabulate the devices asked, answered and counted, by mechanism and round.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    values
        Values for the section's template.
    """
    keys = ["campaign", "mechanism", "round"]
    totals = run.rounds.groupby(keys, sort=False, observed=True)[[*ROUND_COUNTS, "bytes_up"]].sum().reset_index()
    fates = totals[[*ANSWERED]].sum(axis=1)
    return {
        "columns": ROUND_COUNTS,
        "several": run.rounds["campaign"].nunique() > 1,
        "rows": totals.to_dict("records"),
        "balanced": bool((fates == totals["answered"]).all()),
    }


def scenario_section(run: RunResult, _page: Page) -> dict[str, object]:
    """
    Check that at each query every vehicle is in one state.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    values
        Values for the section's template, which states what was simulated, with which software, and how long it took.
    """
    queries = [
        (query, query.departed == query.waiting + query.on_road + query.arrived + query.absent)
        for query in run.record.traffic_at_queries
    ]
    return {
        "queries": queries,
        "unbalanced": sum(not balanced for _, balanced in queries),
        "coordinates": _in_words(run.record.city.crs),
    }


def _in_words(crs: str | None) -> str:
    """Return the name of a coordinate system for its PROJJSON, with its number if it has one."""
    if not crs or not crs.startswith("{"):
        return crs or formatting.MISSING
    known = json.loads(crs)
    number = f" ({known['id']['authority']}:{known['id']['code']})" if "id" in known else ""
    return f"{known['name']}{number}"


FILE_NAME = "report.html"
SECTIONS: dict[str, tuple[str, Callable[[RunResult, Page], dict[str, object] | None]]] = {
    "map": ("City", map_section),
    "occupancy": ("Error by occupancy", occupancy_section),
    "scores": ("Error by mechanism", scores_section),
    "growth": ("Growth and cost", growth_section),
    "loss": ("Lost reports", loss_section),
    "deployments": ("Parties", deployments_section),
    "attacks": ("Attacks", attacks_section),
    "claims": ("Privacy claims", claims_section),
    "flows": ("Published flows", flow_check_section),
    "rounds": ("Answers", rounds_section),
    "traffic": ("Traffic", traffic_section),
    "scenario": ("Scenario", scenario_section),
}
"""Sections in the page's order: name in the navigation, and what prepares the values of the template of its name."""


class PageError(ValueError):
    """A page could not be made, by a fault of the page; the message names the directory, which holds all results."""

    exit_code = 1


@contextmanager
def page_faults(directory: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Turn any error in the block that is of neither the input nor the system into a `PageError` about a page."""
    try:
        yield
    except (UnfinishedRunError, OSError, MemoryError):
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}: {error}"
        raise PageError(f"{directory}: all results are saved in it, but not {what}, which failed: {where}") from error


@np.errstate(over="ignore", invalid="ignore")
def build_report(run: RunResult | str | os.PathLike[str]) -> str:
    """
    Build the report of a finished run.

    Parameters
    ----------
    run
        The run, or its directory; nothing else is read.

    Returns
    -------
    html
        One page with its style, scripts and data inside. A content security
        policy lets it load nothing, and run no script but its own.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no finished run.
    """
    run = opened(run).leading
    page = Page(
        mechanisms=[{"name": name, "label": run.label(name)} for name in (*run.mechanisms, *run.refined)],
        first=run.first_private,
    )
    page.data["clock"] = run.record.clock.of_page(max([0.0, *run.record.traffic.times_s]))
    sections = {name: prepare(run, page) for name, (_, prepare) in SECTIONS.items()}
    values: dict[str, object] = {
        "run": run,
        "finding": first_screen(run),
        "links": {name: words for name, (words, _) in SECTIONS.items() if sections[name] is not None},
    }
    template = environment().get_template("report.html.j2")
    return render_page(template, f"{run.record.scenario} · crowdveil report", page.data, values | sections)


def write_report(run: RunResult | str | os.PathLike[str]) -> Path:
    """
    Build the report and write it atomically into the run directory.

    Parameters
    ----------
    run
        The run, which has been saved, or its directory.

    Returns
    -------
    path
        The file written.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no finished run.
    PageError
        If a fault of the page ends it.
    """
    run = opened(run)
    with page_faults(run.saved_in, FILE_NAME):
        return write_document(build_report(run), run.saved_in / FILE_NAME)
