"""Report section: errors by occupancy, mechanism and devices asked, and the bias of refined estimates."""

from collections.abc import Mapping
from typing import Any

from pandas import DataFrame

from simulator.reporting import figures
from simulator.reporting.campaign_text import (
    COUNT,
    by_unit,
    published_label,
    release_notes,
    release_of,
    release_records,
    statistics,
)
from simulator.reporting.constant_error_section import cost_paragraphs, equation, growth_sentence, sampling_mechanisms
from simulator.reporting.formatting import listed, number, parameter, percent, real, whole
from simulator.reporting.markup import Safe, data, definitions, element, figure, same_scale, table, text
from simulator.reporting.run_reader import FinishedRun


def refined_part(run: FinishedRun) -> Safe:
    """
    Describe every refined estimate.

    Parameters
    ----------
    run
        The finished run.

    Returns
    -------
    html
        A heading and a list; empty where the run has no refined estimates.
    """
    records = run.run.get("refinements") or []
    if not records:
        return Safe("")
    items = [
        element("li", element("strong", run.label(str(record["name"]))), " ", _words(record)) for record in records
    ]
    return Safe(
        element("h3", "Refined estimates")
        + element(
            "p",
            "Made from a mechanism’s estimates afterwards, and shown beside them. They are biased: a smaller error "
            "over all cells may be a larger one where it matters.",
        )
        + element("ul", *items)
    )


def _words(record: Mapping[str, Any]) -> str:
    several = len(record.get("measured") or []) > 1
    sentences = [f"Made of {record['made_of']}.", f"In general it is {record['bias']}."]
    if (record.get("keeps") or {}).get("never_worse") == "in each cell":
        sentences.append("In no cell is it further off than the unrefined estimate.")
    for measured in record.get("measured") or []:
        prefix = f"Campaign {measured['campaign']}: in" if several else "In"
        sentences.append(f"{prefix} this run it was off on average by {_biases(measured)}.")
        if "drift_rmse" in measured:
            drift, spread = (number(real(measured[name])) for name in ("drift_rmse", "spread_rmse"))
            sentences.append(
                f"In theory {drift} vehicles (root mean square) of its error come from counts that changed between the "
                f"queries, {spread} from coins."
            )
    sentences.append(f"Its interval is {record['interval']}. {record['claims']}")
    return " ".join(sentences)


def _biases(measured: Mapping[str, Any]) -> str:
    busy, other, before_busy, before_other = (
        _signed(real(measured.get(name)))
        for name in ("bias_busy", "bias_other", "unrefined_bias_busy", "unrefined_bias_other")
    )
    return (
        f"{busy} vehicles in the busiest tenth of the cells and {other} in the others "
        f"(unrefined {before_busy} and {before_other})"
    )


def _signed(value: float | None) -> str:
    return number(value) if value is None or value <= 0 else f"+{number(value)}"


Figures = dict[str, Any]


def occupancy_section(run: FinishedRun, page: Figures) -> Safe:
    """
    Show the errors against the number of vehicles in the cell.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figures are added to it.

    Returns
    -------
    html
        The section; empty where no campaign estimates counts.
    """
    drawn: list[Safe] = []
    group: list[Figures] = []
    for name, campaigns, label, theory in _published_alike(run):
        spec = figures.occupancy(run, name, campaigns=campaigns, theory=theory)
        page["figures"][f"occupancy-{len(group)}"] = spec
        thinned = spec["drawn_every"]
        caption = label + (f" (one point in {thinned} drawn)" if thinned > 1 else "")
        described = (
            f"{label}: error of each estimate against the {run.called.many} in the cell, with the band of theory."
        )
        drawn.append(figure(f"occupancy-{len(group)}", caption, described=described))
        group.append(spec)
    if not drawn:
        return Safe("")
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
            f"(±1.96 σ{at})."
            + (" What is suppressed or merged has none." if release_records(run.run) else "")
            + (" Refined estimates are biased, and have none." if run.refined else ""),
        ),
        same_scale("occupancy"),
        element("div", *drawn, class_="grid"),
        id="occupancy",
    )


def _published_alike(run: FinishedRun) -> list[tuple[str, list[str], str, Mapping[str, Any] | None]]:
    """Return each mechanism's count campaigns grouped by how they were published, with a label and theory."""
    groups: list[tuple[str, list[str], str, Mapping[str, Any] | None]] = []
    kinds = statistics(run.scores)
    for mechanism in dict.fromkeys(map(str, run.estimates["mechanism"])):
        own = run.estimates["mechanism"] == mechanism
        campaigns = [str(c) for c in dict.fromkeys(run.estimates.loc[own, "campaign"]) if kinds[str(c)] is COUNT]
        as_they_are = [campaign for campaign in campaigns if release_of(run, campaign, mechanism) is None]
        if as_they_are:
            theory = run.facts[mechanism].record.get("theory") if mechanism in run.facts else None
            groups.append((mechanism, as_they_are, run.label(mechanism), theory))
        for campaign in campaigns:
            record = release_of(run, campaign, mechanism)
            if record is not None:
                label = f"{published_label(run, campaign, mechanism)}, campaign {campaign}"
                groups.append((mechanism, [campaign], label, record["theory"].get(mechanism)))
    return groups


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
    parts = by_unit(run.scores)
    units = [run.called.unit(unit) for unit in parts]
    tables = [_scores_table(run, part, unit) for unit, part in zip(units, parts.values(), strict=True)]
    meaning = definitions(
        [
            ("RMSE", f"root mean square error over all cells and queries, in {listed(units)}"),
            ("Bias", "the mean of estimate minus truth over all cells: near 0 if the estimator is unbiased"),
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
    notes = [element("p", note, class_="note") for note in release_notes(run.run)]
    return element(
        "section",
        element("h2", "Error by mechanism"),
        *tables,
        meaning,
        *notes,
        refined_part(run),
        id="scores",
    )


def _scores_table(run: FinishedRun, scores: DataFrame, unit: str) -> Safe:
    """Tabulate the errors of one unit."""
    several = run.scores["campaign"].nunique() > 1
    largest = float(scores["rmse"].max() or 0)
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
    for row in scores.to_dict("records"):
        rmse = real(row["rmse"])
        share = 100 * rmse / largest if rmse is not None and largest > 0 else 0
        bar = Safe(f'<i class="bar" style="width:{share:.1f}%"></i>')
        cells: list[object] = [published_label(run, str(row["campaign"]), str(row["mechanism"]))]
        cells += [row["campaign"]] if several else []
        cells.append(Safe(f"{data(rmse, number(rmse))}{bar}"))
        cells += [_number(row, column) for column in ("theory_rmse", "mae", "bias", "max_error")]
        cells += [_share(row, column) for column in ("coverage", "hot_cells_recall")]
        cells.append(row.get("interval") or "–")
        rows.append(cells)
    return table(f"Error by mechanism, in {unit} a cell", heads, rows, class_="scores")


def _number(row: dict[Any, Any], column: str) -> Safe:
    value = real(row.get(column))
    return data(value, number(value))


def _share(row: dict[Any, Any], column: str) -> Safe:
    value = real(row.get(column))
    return data(value, percent(value))


def growth_section(run: FinishedRun, page: Figures) -> Safe:
    """
    Show how the error grows with the devices asked and what Sampling Privacy's constant error costs in privacy.

    Parameters
    ----------
    run
        The finished run.
    page
        The page's embedded data; the figure is added to it.

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
        vehicles = run.called.one if occupancies == {parameter(1)} else run.called.many
        held = f" for a cell with {listed(sorted(occupancies))} {vehicles} in it" if occupancies else ""
        ideal = ", where every report arrives" if run.run.get("loss") else ""
        caption = f"Lines: the standard error in theory{held}{ideal}. Points: this run. Both axes are logarithmic."
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
