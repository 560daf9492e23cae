"""The parts of the report that show the errors: by occupancy, by mechanism, by devices asked."""

from typing import Any

from simulator.reporting import figures
from simulator.reporting.constant_error import cost_paragraphs, equation, growth_sentence, sampling_mechanisms
from simulator.reporting.finished_run import FinishedRun
from simulator.reporting.markup import Safe, data, definitions, element, figure, same_scale, table, text
from simulator.reporting.numerals import listed, number, parameter, percent, real, whole

Figures = dict[str, Any]


def occupancy_section(run: FinishedRun, page: Figures) -> Safe:
    """
    Show the errors against how many vehicles were in the cell.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; gains the figures.

    Returns
    -------
    html
        The section.
    """
    drawn: list[Safe] = []
    group: list[Figures] = []
    for mechanism in dict.fromkeys(run.estimates["mechanism"]):
        name = str(mechanism)
        spec = figures.occupancy(run, name)
        page["figures"][f"occupancy-{len(group)}"] = spec
        thinned = spec["drawn_every"]
        caption = run.label(name) + (f" (one point in {thinned} drawn)" if thinned > 1 else "")
        described = (
            f"{run.label(name)}: error of each estimate against the vehicles in the cell, with the band theory expects."
        )
        drawn.append(figure(f"occupancy-{len(group)}", caption, described=described))
        group.append(spec)
    figures.share_scales(group)
    asked = {
        whole(facts.record["theory"]["asked"])
        for facts in run.facts.values()
        if (facts.record.get("theory") or {}).get("asked")
    }
    at = f" with {listed(sorted(asked))} devices asked" if asked else ""
    return element(
        "section",
        element("h2", "Error against how full the cell is"),
        element(
            "p",
            "Each point is one cell in one query. The grey band is where theory puts 95 % of the points "
            f"(±1.96 σ{at}).",
        ),
        same_scale("occupancy"),
        element("div", *drawn, class_="grid"),
        id="occupancy",
    )


def scores_section(run: FinishedRun) -> Safe:
    """
    Tabulate the errors by mechanism.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        The section.
    """
    several = run.scores["campaign"].nunique() > 1
    largest = float(run.scores["rmse"].max() or 0)
    heads = [
        "Mechanism",
        *(["Campaign"] if several else []),
        "RMSE",
        "RMSE in theory",
        "Mean absolute error",
        "Bias",
    ]
    heads += ["Largest error", "Coverage", "Busiest cells found", "Interval"]
    rows = []
    for row in run.scores.to_dict("records"):
        rmse = real(row["rmse"])
        share = 100 * rmse / largest if rmse is not None and largest > 0 else 0
        bar = Safe(f'<i class="bar" style="width:{share:.1f}%"></i>')
        cells: list[object] = [run.label(str(row["mechanism"]))]
        cells += [row["campaign"]] if several else []
        cells.append(Safe(f"{data(rmse, number(rmse))}{bar}"))
        cells += [_number(row, column) for column in ("theory_rmse", "mae", "bias", "max_error")]
        cells += [_share(row, column) for column in ("coverage", "hot_cells_recall")]
        cells.append(row.get("interval") or "–")
        rows.append(cells)
    meaning = definitions(
        [
            ("RMSE", "root mean square error over all cells and queries, in vehicles"),
            ("Bias", "the mean of estimate minus truth: near 0 if the estimator is unbiased"),
            (
                "Coverage",
                "how often the 95 % interval held the truth; its construction is named under Interval",
            ),
            (
                "Busiest cells found",
                "the share of the truly busiest cells that the estimates also rank busiest",
            ),
        ],
        class_="terms",
    )
    caption = "Error by mechanism, in vehicles a cell"
    return element(
        "section",
        element("h2", "Error by mechanism"),
        table(caption, heads, rows, class_="scores"),
        meaning,
        id="scores",
    )


def _number(row: dict[Any, Any], column: str) -> Safe:
    value = real(row.get(column))
    return data(value, number(value))


def _share(row: dict[Any, Any], column: str) -> Safe:
    value = real(row.get(column))
    return data(value, percent(value))


def growth_section(run: FinishedRun, page: Figures) -> Safe:
    """
    Show how the error grows with the devices asked and, of Sampling Privacy, what its constancy costs.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; gains the figure.

    Returns
    -------
    html
        The section; empty where there is nothing to draw.
    """
    spec = figures.growth(run)
    sampled = sampling_mechanisms(run)
    if spec is None and not sampled:
        return Safe("")
    parts: list[object] = []
    private = [facts for facts in run.facts.values() if facts.kind != "no_privacy"]
    sentences = [sentence for facts in private if (sentence := growth_sentence(run, facts))]
    if sentences:
        parts.append(element("ul", *(element("li", sentence) for sentence in sentences)))
    if spec is not None:
        page["figures"]["growth"] = spec
        occupancies = {
            parameter(value)
            for facts in private
            if (value := (facts.record.get("scaling") or {}).get("occupancy")) is not None
        }
        held = f" for a cell with {listed(sorted(occupancies))} vehicles in it" if occupancies else ""
        caption = f"Lines: the standard error in theory{held}. Points: this run. Both axes are logarithmic."
        if any(facts.kind == "no_privacy" for facts in run.facts.values()):
            caption += " An estimate without privacy has no error, and so no place on a logarithmic axis."
        parts.append(
            figure(
                "growth",
                caption,
                described="Error per cell against the number of devices asked. " + " ".join(sentences),
            )
        )
    for facts in sampled:
        title = "What that costs" if len(sampled) == 1 else f"What that costs: {facts.label}"
        parts += [
            element("h3", title),
            element(
                "p",
                "The paper (SP: Joy and Gerla, Differential Privacy By Sampling) states one ε, in "
                f"{equation(facts)}. It covers less than it seems:",
            ),
            element("ol", *cost_paragraphs(run, facts), class_="costs"),
        ]
    heading = "Constant error, and what it costs" if sampled else "Error against the number of devices asked"
    return element("section", element("h2", heading), *(text(part) for part in parts), id="growth")
