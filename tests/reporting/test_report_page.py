import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from html_page import Page
from synthetic_run import SyntheticRun

from simulator.pages import map_section
from simulator.pages.report import build_report, write_report
from simulator.results.formatting import number
from simulator.results.run import RunResult
from simulator.results.store import UnfinishedRunError

Browse = Callable[..., str]
HOSTILE = '<script>document.title="stolen"</script><img src=x onerror="document.title=1">'


def embedded(source: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', source, re.DOTALL)
    assert found
    loaded: dict[str, object] = json.loads(found[1])
    return loaded


def shown(dom: str, attribute: str) -> str:
    found = re.search(rf'<section id="map"[^>]*\bdata-{attribute}="([^"]*)"', dom)
    assert found, f"the map carries no data-{attribute}"
    return found[1]


def test_report_numbers_equal_those_of_the_files(small: Path) -> None:
    page = Page(build_report(small))
    scores = pd.read_parquet(small / "scores.parquet")
    columns = ["rmse", "theory_rmse", "mae", "bias", "max_error", "coverage", "hot_cells_recall"]
    assert set(scores[columns].to_numpy().ravel()) <= page.values()
    rounds = pd.read_parquet(small / "rounds.parquet").groupby(["mechanism", "round"])
    assert (
        set(rounds[["asked", "answered", "counted", "bytes_up"]].sum().to_numpy().ravel().astype(float))
        <= page.values()
    )
    assert (
        set(RunResult.load(small).costs.drop(columns="connected_joules").iloc[:, 3:].to_numpy().ravel())
        <= page.values()
    )
    assert set(pd.read_parquet(small / "claims.parquet")["delta"]) <= page.values()


def test_result_and_claims_are_stated_in_words(small: Path) -> None:
    text = Page(build_report(small)).text
    rmse = pd.read_parquet(small / "scores.parquet").set_index("mechanism")["rmse"]
    errors = (
        f"The error in a cell is {number(rmse['sampling'])} vehicles (root mean square) with Sampling Privacy and "
        f"{number(rmse['randomized'])} with randomized response"
    )
    assert errors in text
    assert "Two servers that link the two answers of a device learn the device’s exact cell with" in text


def test_constant_error_and_its_cost(highway: Path) -> None:
    text = Page(build_report(highway)).text
    assert "Sampling Privacy’s error stays the same, 11.1 vehicles, from 1,000 devices asked to 10,000,000" in text
    assert re.search(r"Randomized response’s error grows from 8.66 to 775 vehicles .*, as √N\.", text)
    assert "δ = 0.45, whatever ε is" in text
    assert (
        "A device in a cell or outside all has δ = 0.45 at every ε if it is alone "
        "and δ = 0.08 at ε = 1 in a crowd of 20." in text
    )
    assert "This run did not do so" in text


def test_no_cost_section_without_sampling_privacy(tmp_path: Path) -> None:
    text = Page(build_report(SyntheticRun(mechanisms=("exact", "randomized")).write(tmp_path / "run"))).text
    assert "Error against the number of devices asked" in text
    assert "what it costs" not in text


def test_map_numbers_are_those_of_the_files(small: Path) -> None:
    (campaign,) = embedded(build_report(small))["campaigns"]  # type: ignore[misc]
    frame = pd.read_parquet(small / "estimates.parquet").query("mechanism == 'randomized' and query == 3")
    entry = campaign["mechanisms"]["randomized"]
    assert campaign["truths"][entry["truth"]][2] == frame["truth"].tolist()
    assert entry["estimate"][2] == pytest.approx(frame["estimate"].tolist(), abs=0.005)
    assert len(campaign["truths"]) == 1, "mechanisms that answer about the same truth share it"


def test_report_uses_no_network(small: Path) -> None:
    source = build_report(small)
    outside_scripts = re.sub(r"<script>.*?</script>", "", source, flags=re.DOTALL)
    assert not re.search(r"https?://|url\(|@import", outside_scripts)
    for tag, attributes in Page(source).tags:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base"}
        for name in ("src", "href", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith("#"), f"{tag} {name}={attributes[name]}"
    assert "default-src 'none'" in source
    assert "* Leaflet 1." in source
    assert "sourceMappingURL" not in source


def test_report_is_small_and_fast_to_build(large: Path) -> None:
    build_report(large)  # imports modules once
    begun = time.process_time()  # not of other processes, which a busy machine has
    source = build_report(large)
    assert time.process_time() - begun < 3.0
    assert len(source.encode()) < 6_000_000


def test_user_text_is_escaped(tmp_path: Path, browse: Browse) -> None:
    run = SyntheticRun(
        columns=2, rows=2, queries=2, scenario=HOSTILE, description=HOSTILE, campaigns=(HOSTILE,), warnings=(HOSTILE,)
    )
    directory = run.write(tmp_path / "run")
    source = build_report(directory)
    assert HOSTILE not in source
    assert "<img" not in re.sub(r"<script.*?</script>", "", source, flags=re.DOTALL)
    (directory / "report.html").write_text(source, encoding="utf-8")
    dom = browse(directory / "report.html")
    assert 'data-report="ready"' in dom
    assert "<title>stolen" not in dom
    assert "<title>1<" not in dom


def test_a_browser_draws_the_map_and_the_plots(large: Path, browse: Browse) -> None:
    dom = browse(write_report(large))
    assert 'data-report="ready"' in dom
    assert shown(dom, "polygons") == "500"
    assert len(re.findall(r'<path d="M[^"]*Z"[^>]* data-i="\d+"[^>]* fill="rgb', dom)) == 3 * 500
    assert shown(dom, "mechanism") == "sampling", "the map opens with the first mechanism that protects"
    assert dom.count('class="chart"') >= 4, "one plot a mechanism, and the growth"


def test_controls_change_the_map(small: Path, browse: Browse) -> None:
    page = write_report(small)
    frame = pd.read_parquet(small / "estimates.parquet").groupby(["query", "mechanism"])[["truth", "estimate"]].sum()
    seen = set()
    for query, mechanism in ((1, "sampling"), (3, "randomized")):
        dom = browse(page, f"#query={query}&mechanism={mechanism}")
        assert (shown(dom, "query"), shown(dom, "mechanism")) == (str(query), mechanism)
        truth, estimate = frame.loc[(query, mechanism)]
        assert float(shown(dom, "truth")) == truth
        assert float(shown(dom, "estimate")) == pytest.approx(estimate, abs=0.1)
        seen.add(tuple(re.findall(r'data-i="\d+"[^>]* fill="(rgb[^"]*)"', dom)))
    assert len(seen) == 2, "the colours follow the controls"


@pytest.mark.parametrize(
    ("times", "scale", "place"),
    [(2, "linear", float), (20, "square-root", math.sqrt), (2000, "logarithmic", math.log1p)],
)
def test_the_scale_of_colours_is_stated(times: int, scale: str, place: Any, tmp_path: Path, browse: Browse) -> None:
    """The fullest cell is so many times as full as half of the cells."""
    directory = SyntheticRun(queries=1).write(tmp_path / "run")
    estimates = pd.read_parquet(directory / "estimates.parquet")
    most = times * int(estimates["truth"].median())
    estimates["truth"] = estimates["truth"].clip(upper=most).mask(estimates["cell"] == 5, most)
    estimates.to_parquet(directory / "estimates.parquet")
    legend = re.findall(r'<div class="scale" data-scale="truth">(.*?)</figure>', browse(write_report(directory)))[0]
    assert f">{scale} scale, vehicles<" in legend
    texts = re.findall(r"left: ([\d.]+)%[^>]*>([\d,]+)<", legend)
    marks = [(float(left), int(text.replace(",", ""))) for left, text in texts]
    assert len(marks) > 3
    assert marks == [(pytest.approx(100 * place(value) / place(most), abs=0.01), value) for _, value in marks]
    assert (marks[0][1], marks[-1][1]) == (0, most)


def test_several_campaigns(tmp_path: Path, browse: Browse) -> None:
    directory = SyntheticRun(campaigns=("morning", "evening"), queries=2).write(tmp_path / "run")
    dom = browse(write_report(directory), "#campaign=evening&query=2&mechanism=exact")
    assert (shown(dom, "campaign"), shown(dom, "query"), shown(dom, "mechanism")) == ("evening", "2", "exact")
    assert re.search(r"The error in a cell is [\d.]+ to [\d.]+ vehicles .* with Sampling Privacy", dom)


def test_one_cell_is_shown_over_time(highway: Path, browse: Browse) -> None:
    dom = browse(write_report(highway))
    assert 'data-report="ready"' in dom
    assert "The watched cell" in dom
    assert 'data-chart="map-1"' in dom
    assert 'data-panel="truth"' not in dom
    assert "Leaflet" not in dom, "it is on pages with a map only"


def test_missing_attack_file_means_no_attacks(tmp_path: Path) -> None:
    directory = SyntheticRun().write(tmp_path / "run")
    (directory / "attacks.parquet").unlink()
    assert "Who can learn what" in build_report(directory)


def test_long_run_shows_a_stated_selection_of_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = SyntheticRun(queries=20).write(tmp_path / "run")
    monkeypatch.setattr(map_section, "VALUE_LIMIT", 1000)
    source = build_report(directory)
    (campaign,) = embedded(source)["campaigns"]  # type: ignore[misc]
    assert len(campaign["queries"]) < 20
    assert f"Of rush’s 20 queries {len(campaign['queries'])}, evenly spaced, can be shown here" in source


def test_cells_without_polygons_are_shown_as_a_table(tmp_path: Path, browse: Browse) -> None:
    directory = SyntheticRun(columns=2, rows=2, queries=2).write(tmp_path / "run")
    import geopandas as gpd  # noqa: PLC0415

    cells = gpd.read_parquet(directory / "cells.parquet")
    cells.geometry = [None] * len(cells)
    cells.to_parquet(directory / "cells.parquet")
    dom = browse(write_report(directory))
    assert 'data-report="ready"' in dom
    assert "Cell 4 (2/2)" in dom


def test_a_report_is_accessible(small: Path) -> None:
    page = Page(build_report(small))
    assert ("html", {"lang": "en"}) in page.tags
    figures = [attributes for _, attributes in page.tags if "data-chart" in attributes]
    assert figures
    assert all(attributes["aria-label"] for attributes in figures)
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert all(attributes.get("scope") for attributes in heads)


def test_report_states_whether_vehicles_are_conserved(tmp_path: Path, small: Path) -> None:
    assert "At all 6 queries the numbers of vehicles add up." in Page(build_report(small)).text
    directory = SyntheticRun().write(tmp_path / "run")
    facts = json.loads((directory / "run.json").read_text())
    facts["traffic_at_queries"][2]["departed"] += 1
    (directory / "run.json").write_text(json.dumps(facts))
    assert "At 1 of 6 queries the numbers of vehicles do not add up." in Page(build_report(directory)).text


def test_write_report_adds_exactly_one_file(tmp_path: Path) -> None:
    directory = SyntheticRun().write(tmp_path / "run")
    before = set(directory.iterdir())
    path = write_report(directory)
    assert set(directory.iterdir()) - before == {path}
    first = path.read_bytes()
    assert write_report(directory).read_bytes() == first, "the same run gives the same report"


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnfinishedRunError, match=r"run\.json is not in it"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(UnfinishedRunError, match="not JSON"):
        build_report(tmp_path)


@pytest.mark.parametrize(
    ("mean", "expected"), [(1, "a cell with 1 vehicle in it"), (2, "a cell with 2 vehicles in it")]
)
def test_noun_in_the_error_sentence_is_singular_for_one_vehicle(tmp_path: Path, mean: int, expected: str) -> None:
    run = SyntheticRun(queries=2, mean=mean).write(tmp_path / "run")
    assert expected in Page(build_report(run)).text


def test_shown_scenario_hides_absolute_folders(tmp_path: Path) -> None:
    run = SyntheticRun().write(tmp_path / "run")
    (run / "scenario.toml").write_text('[roads]\npath = "/home/me/city.osm.pbf"\nnodes = "../../nodes.csv"\n')
    page = write_report(run).read_text(encoding="utf-8")
    assert "/home/me" not in page
    assert "…/city.osm.pbf" in page
    assert "../../nodes.csv" in page
