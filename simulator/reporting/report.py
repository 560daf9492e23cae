"""The report: one HTML page that opens offline and asks nothing of any network."""

import os
from pathlib import Path
from typing import Any

from simulator.reporting.attacks import attacks_section
from simulator.reporting.deployed import deployments_section
from simulator.reporting.document import build_document, write_document
from simulator.reporting.errors import growth_section, occupancy_section, scores_section
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.flow_check import flow_check_section
from simulator.reporting.markup import element
from simulator.reporting.picture import header, map_section
from simulator.reporting.records import claims_section, rounds_section, scenario_section
from simulator.reporting.traffic import traffic_section
from simulator.reporting.under_loss import loss_section

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
        # The map opens with what people come to see: the first mechanism that protects anything.
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
    Build the report and put it into the run directory, whole or not at all.

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
