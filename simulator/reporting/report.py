"""The report: one self-contained HTML page that opens offline."""

import base64
import hashlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from simulator.files.atomic_write import write_file
from simulator.reporting.attacks_section import attacks_section
from simulator.reporting.constant_error_section import loss_section
from simulator.reporting.deployments_section import deployments_section
from simulator.reporting.details_section import claims_section, rounds_section, scenario_section
from simulator.reporting.errors_section import growth_section, occupancy_section, scores_section
from simulator.reporting.flow_section import flow_check_section
from simulator.reporting.formatting import clock, duration, listed, number, parameter, percent, real, size, whole
from simulator.reporting.map_section import header, map_section
from simulator.reporting.markup import element
from simulator.reporting.run_reader import FinishedRun
from simulator.reporting.traffic_section import traffic_section

FORMATS: dict[str, Callable[[float | None], str]] = {
    "number": number,
    "parameter": parameter,
    "whole": whole,
    "percent": percent,
    "size": size,
    "duration": duration,
    "clock": clock,
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
    known = real(value)
    text = FORMATS[format_name](known) if shown is None else shown
    return escape(text) if known is None else Markup('<data value="{}">{}</data>').format(repr(known), text)


@cache
def environment() -> Environment:
    """Return the environment of the templates in ``page``: every value is escaped, and an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("simulator.reporting", "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters |= {**FORMATS, "data": data, "listed": listed}
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    return made


def render_page(template: str, title: str, page: Mapping[str, object], *, style: str = "", **values: object) -> str:
    """
    Render a page with the style and scripts common to all pages.

    Parameters
    ----------
    template
        File name of a template that extends ``base.html.j2``.
    title
        Shown on the browser's tab.
    page
        Data for the page's script; `figures` holds the figures to plot.
    style
        CSS for this page, placed after the common CSS.
    **values
        Values of the template's own names.

    Returns
    -------
    html
        One page with its style, scripts and data inside. A content security
        policy lets it load nothing, and run no script but its own.
    """
    from plotly.offline import get_plotlyjs  # noqa: PLC0415  slow to import

    scripts = [get_plotlyjs(), _asset("report.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(_hash(script) for script in scripts)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    style = _asset("report.css") + style
    made = environment().get_template(template)
    return made.render(title=title, page=page, style=style, policy=policy, scripts=scripts, **values)


def build_document(title: str, body: str, page: dict[str, Any], *, style: str = "") -> str:
    """
    Assemble a page from HTML that is already made.

    Parameters
    ----------
    title
        Shown on the browser's tab; escaped by this function.
    body
        Trusted HTML: header, main, footer.
    page, style
        As of `render_page`.

    Returns
    -------
    html
        The page.
    """
    return render_page("base.html.j2", title, page, style=style, body=Markup(body))  # noqa: S704  trusted


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


FILE_NAME = "report.html"
_LINKS = (
    ("map", "City"),
    ("occupancy", "Error by occupancy"),
    ("scores", "Error by mechanism"),
    ("growth", "Growth and cost"),
    ("loss", "Lost reports"),
    ("deployments", "Who holds what"),
    ("attacks", "Attacks"),
    ("claims", "Who learns what"),
    ("flows", "Published flows"),
    ("rounds", "Answers"),
    ("traffic", "Traffic"),
    ("scenario", "Scenario"),
)


def build_report(directory: str | os.PathLike[str]) -> str:
    """
    Build the report of a finished run.

    Parameters
    ----------
    directory
        The run directory; nothing else is read.

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
    run = FinishedRun(Path(directory))
    page: dict[str, Any] = {
        "figures": {},
        "mechanisms": [{"name": name, "label": run.label(name)} for name in (*run.facts, *run.refined)],
        # The map first shows the mechanism of most interest: the first other than no privacy.
        "first": next((facts.name for facts in run.facts.values() if facts.kind != "no_privacy"), None),
    }
    sections = [
        map_section(run, page),
        occupancy_section(run, page),
        scores_section(run),
        growth_section(run, page),
        loss_section(run, page),
        deployments_section(run),
        attacks_section(run, page),
        claims_section(run),
        flow_check_section(run, page),
        rounds_section(run),
        traffic_section(run, page),
        scenario_section(run),
    ]
    shown = [(name, words) for name, words in _LINKS if any(f'id="{name}"' in section for section in sections)]
    links = element("nav", *(element("a", words, href=f"#{name}") for name, words in shown), aria_label="Sections")
    body = (
        header(run)
        + links
        + '<noscript><p class="note">The maps and plots need JavaScript; the tables do not.</p></noscript>'
        + element("main", *sections)
        + element(
            "footer",
            element("p", "Made by crowdveil from the run’s own files; it loads nothing from any network."),
        )
    )
    return build_document(f"{run.run.get('scenario', '')} · crowdveil report", body, page)


def write_report(directory: str | os.PathLike[str]) -> Path:
    """
    Build the report and write it atomically into the run directory.

    Parameters
    ----------
    directory
        The run directory.

    Returns
    -------
    path
        The file written.

    Raises
    ------
    UnfinishedRunError
        If the directory holds no finished run.
    """
    return write_document(build_report(directory), Path(directory) / FILE_NAME)
