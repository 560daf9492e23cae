"""Page of reproductions: published values beside computed ones, with plots, in one HTML file that opens offline."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from simulator.pages.charts import Chart, Series
from simulator.pages.charts.spec import over_names
from simulator.pages.charts.styles import PUBLISHED, styles_of
from simulator.pages.document import Document, PageSection, asset, render, write_document
from simulator.papers.data import without_folder
from simulator.papers.published_results import CITATIONS, OWN, Reproduction, Value
from simulator.results.formatting import MISSING, number, scientific, whole


def shown(value: Value) -> str:
    """Return a value as text: four significant digits of a float, every digit of an integer.

    Parameters
    ----------
    value
        A value of a row; None is written as a dash.

    Returns
    -------
    text
        For example ``1,234``, ``24.39``, ``6.83 × 10⁻¹⁰``, ``∞``, ``yes``.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if value is None or value == 0 or math.isinf(value):
        return MISSING if value is None else number(value)
    if isinstance(value, int):
        return whole(value)
    if not 1e-3 <= abs(value) < 1e7:
        return scientific(value, decimals=2)
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


SIMULATED = ", simulated"
"""Suffix in the name of a series that shows by simulation what another shows by theory."""
MANY = 6
"""With more series than this, the legend omits a simulated one that accompanies a theoretical one."""


def styled(chart: Chart) -> Chart:
    """Return a panel with the style of each series, and its names placed.

    Published series are dark, hollow and dashed; computed ones filled and coloured. A theoretical series and its
    simulation have one style. Intervals of a line become a band.
    """
    families = {
        published: list(dict.fromkeys(_family(each) for each in chart.series if (each.style is PUBLISHED) is published))
        for published in (True, False)
    }
    every = {each.name for each in chart.series}
    series: list[Series] = []
    for each in chart.series:
        published = each.style is PUBLISHED
        names = families[published]
        look = styles_of(names)[_family(each)]
        accompanies = each.name.endswith(SIMULATED) and len(names) > MANY and _family(each) in every
        drawn = replace(each, style=look, legend="" if accompanies else None)
        if published:
            mark = "linked" if each.mark == "line" else each.mark
            drawn = replace(
                drawn, name=f"{each.name} (published)", style=PUBLISHED._replace(symbol=look.symbol), mark=mark
            )
        if each.mark == "line" and each.low is not None:
            series.append(replace(drawn, mark="band", y=(), legend=""))
            drawn = replace(drawn, low=None, high=None)
        series.append(drawn)
    x = chart.x
    if any(isinstance(at, str) for each in series for at in each.x):
        series, x = over_names(series, x.title)
    series.sort(key=lambda each: each.look.hollow)  # published marks are above the computed ones
    entries = sum(bool(each.label) for each in series)
    return replace(chart, series=series, x=x, height=400 + 22 * max(0, entries - 4))


def _family(series: Series) -> str:
    """Return the common name of a theoretical series and its simulation."""
    return series.name.removesuffix(SIMULATED)


def build_page(done: Sequence[Reproduction], *, seed: int) -> str:
    """Build the page of one or several entries.

    Parameters
    ----------
    done
        The results of entries, in the order shown.
    seed
        Seed of everything that was drawn.

    Returns
    -------
    html
        One page with its style, scripts and data inside; it loads nothing.
    """
    several = len(done) > 1
    title = "The founding papers’ tables and figures, computed anew" if several else done[0].entry.title
    entries = [
        PageSection(
            result.entry.name,
            result.entry.name,
            result.entry.title if several else "Published beside computed",
            template="entry",
            values={"result": result, "charts": [styled(chart) for chart in result.charts]},
        )
        for result in done
    ]
    # This project's own tables compare theory with simulation and have no published values.
    of_papers = [result.counts for result in done if result.entry.paper != OWN]
    document = Document(
        title=f"{title} · crowdveil",
        kicker=f"reproduction, seed {seed}",
        heading=title,
        header="reproduction_header",
        sections=[*([PageSection("index", "", template="index")] if several else []), *entries],
        made_of=f"with seed {seed}",
        values={
            "done": done,
            "counts": [sum(numbers) for numbers in zip((0, 0, 0), *of_papers, strict=True)],
            "citations": CITATIONS,
            "shown": shown,
            "without_folder": without_folder,
        },
        style=asset("reproduction.css"),
    )
    return render(document)


def write_page(done: Sequence[Reproduction], path: Path, *, seed: int) -> Path:
    """Build the page and write it atomically; its folder is created if it does not exist.

    Raises
    ------
    OSError
        If the page cannot be written to `path`.
    """
    return write_document(build_page(done, seed=seed), path)
