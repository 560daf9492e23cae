"""The report of a run: its sections in order, on one self-contained HTML page that opens offline."""

import json
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from simulator.files.errors import UserError
from simulator.pages.attacks_section import attacks_section
from simulator.pages.counts_section import counts_section
from simulator.pages.document import Document, PageSection, render, write_document
from simulator.pages.errors_sections import growth_section, loss_section, occupancy_section, scores_section
from simulator.pages.findings_section import first_screen
from simulator.pages.map_section import map_section
from simulator.pages.privacy_sections import claims_section, deployments_section, ledger_section
from simulator.pages.traffic_section import traffic_section
from simulator.results import formatting
from simulator.results.costs import ENERGY
from simulator.results.run import RunResult, opened
from simulator.results.store import UnfinishedRunError

ANSWERED = ("counted", "late", "lost", "rejected", "unpaired")
"""What became of each answer."""
ROUND_COUNTS = ("asked", "unheard", "silent", "answered", *ANSWERED, "duplicates")


def rounds_section(run: RunResult) -> PageSection:
    """
    Tabulate the devices asked, answered and counted, by mechanism and round.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        The section.
    """
    keys = ["campaign", "mechanism", "round"]
    totals = run.rounds.groupby(keys, sort=False, observed=True)[[*ROUND_COUNTS, "bytes_up"]].sum().reset_index()
    fates = totals[[*ANSWERED]].sum(axis=1)
    values = {
        "columns": [name for name in ROUND_COUNTS if name not in {"unheard", "silent"} or totals[name].any()],
        "several": run.rounds["campaign"].nunique() > 1,
        "rows": totals.to_dict("records"),
        "balanced": bool((fates == totals["answered"]).all()),
    }
    return PageSection("rounds", "Answers", template="rounds", values=values)


def scenario_section(run: RunResult) -> PageSection:
    """
    Check that at each query every vehicle is in one state.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    section
        It states what was simulated, with which software, and how long it took.
    """
    queries = [
        (query, query.departed == query.waiting + query.on_road + query.arrived + query.absent)
        for query in run.record.traffic_at_queries
    ]
    values = {
        "queries": queries,
        "unbalanced": sum(not balanced for _, balanced in queries),
        "coordinates": _in_words(run.record.city.crs),
    }
    return PageSection("scenario", "Scenario", template="scenario", values=values)


def _in_words(crs: str | None) -> str:
    """Return the name of a coordinate system for its PROJJSON, with its number if it has one."""
    if not crs or not crs.startswith("{"):
        return crs or formatting.MISSING
    known = json.loads(crs)
    number = f" ({known['id']['authority']}:{known['id']['code']})" if "id" in known else ""
    return f"{known['name']}{number}"


def costs_section(run: RunResult) -> PageSection:
    """
    Tabulate what a query costs a device, and the time until its estimate, by mechanism.

    Parameters
    ----------
    run
        The finished run.
    """
    values = {
        "rows": run.costs.assign(microjoules=1e6 * run.costs["connected_joules"]).to_dict("records"),
        "several": run.costs["campaign"].nunique() > 1,
        "energy": ENERGY,
    }
    return PageSection("costs", "Costs", template="costs", values=values)


FILE_NAME = "report.html"
SECTIONS: tuple[Callable[[RunResult], PageSection | None], ...] = (
    map_section,
    occupancy_section,
    scores_section,
    growth_section,
    loss_section,
    deployments_section,
    attacks_section,
    claims_section,
    ledger_section,
    counts_section,
    rounds_section,
    costs_section,
    traffic_section,
    scenario_section,
)
"""What makes each section, in the page's order; None where a run has nothing that it shows."""


class PageError(UserError):
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
    document = Document(
        title=f"{run.record.scenario} · crowdveil report",
        kicker="report of a run",
        heading=run.record.scenario,
        header="run_header",
        sections=[section for made in SECTIONS if (section := made(run)) is not None],
        made_of="from the run’s own files",
        values={"run": run, "finding": first_screen(run)},
        data=script_data(run),
    )
    return render(document)


def script_data(run: RunResult) -> dict[str, object]:
    """Return what the script of a run's page reads, beside the data of the sections."""
    names = (*run.record.mechanisms_by_name, *run.record.refined)
    return {
        "mechanisms": [{"name": name, "label": run.record.label(name)} for name in names],
        "first": run.record.first_private,
        "clock": run.record.clock.of_page(max([0.0, *run.record.traffic.times_s])),
    }


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
