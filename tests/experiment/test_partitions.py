"""Several partitions of one city: each campaign is as in a run with its partition alone; tables number all cells."""

import numpy as np
import pandas as pd
import pytest

import crowdveil as cv
from simulator.experiment.claims import KEY
from simulator.pages.map_section import map_section
from simulator.pages.plots.city_map import values_of
from simulator.results.tables import SCALED

BLOCKS = {"partition": "blocks", "kind": "square", "size_m": 250}
LINKS = {"partition": "links", "kind": "roads"}
MECHANISMS = [
    {"kind": "k_randomized_response", "epsilon": 3},
    {"kind": "longitudinal_unary", "epsilon_permanent": 3, "epsilon_first": 1},
]
ATTACKS = [{"name": "server", "kind": "link_rounds", "coalition": ["server:1"]}]


def campaign(name, start_s, **keys):
    return {"name": name, "start_s": start_s, "queries": 2, "every_s": 60, **keys}


def run(cells, *campaigns, **sections):
    tables = {
        "scenario": {"name": "partitions", "seed": 5, "duration_s": 400},
        "roads": {"source": "grid", "rows": 4, "columns": 4, "spacing_m": 200},
        "cells": cells,
        "traffic": {"vehicles": 200},
        "campaigns": list(campaigns),
        "mechanisms": MECHANISMS,
        "attacks": ATTACKS,
    }
    return cv.run(cv.Scenario(**(tables | sections)))


@pytest.fixture(scope="module")
def both():
    return run([BLOCKS, LINKS], campaign("by-block", 150), campaign("by-link", 160, cells="links"))


def test_a_campaign_is_as_in_a_run_with_its_partition_alone(both):
    before = 0
    for name, cells, start_s in (("by-block", BLOCKS, 150), ("by-link", LINKS, 160)):
        alone = run(cells, campaign(name, start_s))
        own = both.estimates[both.estimates["campaign"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(own.assign(cell=own["cell"] - before), alone.estimates)
        scores = both.scores[both.scores["campaign"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(scores, alone.scores)
        guesses = both.guesses[both.guesses["campaign"] == name].reset_index(drop=True)
        inside = {column: guesses[column] - before * (guesses[column] > 0) for column in ("truth", "guess")}
        pd.testing.assert_frame_equal(guesses.assign(**inside), alone.guesses)
        shapes = both.cells_of(name)
        assert [*shapes["name"]] == [*alone.cells["name"]]
        assert shapes.geometry.reset_index(drop=True).geom_equals(alone.cells.geometry).all()
        assert {*shapes["partition"]} == {cells["partition"]}
        before += len(alone.cells)
    assert [*both.cells["cell"]] == [*range(1, before + 1)]
    assert both.record.city.cells == before


def test_claims_hold_for_every_partition_and_are_stated_once():
    sampling = [{"kind": "sampling_privacy", "sampling": 0.45}]
    campaigns = {"blocks": campaign("one", 150), "links": campaign("two", 160, cells="links")}
    claims = run([BLOCKS, LINKS], *campaigns.values(), mechanisms=sampling, attacks=[]).claims
    assert not claims.duplicated([*KEY]).any()
    alone = [
        run(cells, campaigns[cells["partition"]], mechanisms=sampling, attacks=[]).claims for cells in (BLOCKS, LINKS)
    ]
    few, many = (one.query("view == 'report_round_2' and delta == 0")["epsilon"].iloc[0] for one in alone)
    both = claims.query("view == 'report_round_2' and delta == 0")["epsilon"].iloc[0]
    assert few < many == both


def test_numbers_as_xarray_are_the_rows_of_the_estimates():
    """Also where campaigns differ in their cells and in the number of their queries."""
    pytest.importorskip("xarray")
    made = run([BLOCKS, LINKS], campaign("by-link", 160, cells="links", queries=3), campaign("by-block", 170))
    found = made.to_xarray()
    assert dict(found.sizes) == {"campaign": 2, "mechanism": 2, "query": 3, "cell": len(made.cells)}
    assert [*found["campaign"].to_numpy()] == ["by-link", "by-block"]
    columns = ["truth", "estimate", "std_error", "lower", "upper", "time_s", "time"]
    rows = found[columns].to_dataframe().dropna(subset="estimate")
    keys = ["campaign", "mechanism", "query", "cell"]
    own = made.estimates.astype({"campaign": str, "mechanism": str}).set_index(keys)
    pd.testing.assert_frame_equal(rows.loc[own.index, columns], own[columns], check_dtype=False)
    assert len(rows) == len(own) < found["estimate"].size
    assert [*found["name"].to_numpy()] == [*made.cells["name"]]
    assert [*found["partition"].to_numpy()] == [*made.cells["partition"]]
    assert {found[name].attrs["units"] for name in columns[:5]} == {"vehicles"}
    assert found["time_s"].attrs["units"] == "s"


def test_the_map_and_the_plots_show_the_cells_of_the_campaign(both):
    page = map_section(both).data
    for shown in page["campaigns"]:
        cells = both.cells_of(shown["name"])
        drawn = page["partitions"][shown["partition"]]
        assert drawn["cells"] == [*cells["cell"]]
        for mechanism in shown["mechanisms"].values():
            assert np.shape(mechanism["estimate"]) == (2, len(cells))
        values = values_of(both, mechanism=None, campaign=shown["name"], query=1, quantity="truth").cells
        assert [*values["cell"]] == [*cells["cell"]]
        assert values["value"].notna().all()
    assert page["city"]["kind"] == "area"
    assert page["partitions"]["links"]["kind"] == "line"


def test_memoised_answers_about_other_cells_use_other_randomness():
    """Of two equal partitions at the same time, with one memory, many memoised bits would agree."""
    again = BLOCKS | {"partition": "again"}
    twice = run([BLOCKS, again], campaign("one", 150), campaign("two", 150, cells="again"), mechanisms=MECHANISMS[1:])
    one, two = (twice.estimates[twice.estimates["campaign"] == name] for name in ("one", "two"))
    assert [*one["truth"]] == [*two["truth"]]
    kept = {name: rows[rows["query"] == 1]["estimate"].to_numpy() for name, rows in (("one", one), ("two", two))}
    assert (kept["one"] != kept["two"]).mean() > 0.5


def test_runs_of_earlier_versions_have_one_partition(tmp_path):
    saved = run(BLOCKS, campaign("by-block", 150))
    saved.save(tmp_path / "run")
    file = tmp_path / "run" / "cells.parquet"
    import geopandas as gpd  # noqa: PLC0415

    gpd.read_parquet(file).drop(columns="partition").to_parquet(file)
    loaded = cv.load(tmp_path / "run")
    assert {*loaded.cells["partition"]} == {"cells"}
    assert len(loaded.cells_of("by-block")) == len(saved.cells)
    assert {*SCALED} <= {*loaded.estimates}


@pytest.mark.parametrize(
    ("cells", "key", "rule"),
    [
        ([BLOCKS, BLOCKS], r"cells\[1\].partition", r"names must differ, and cells\[0\] has this one too"),
        ([BLOCKS, LINKS], "campaigns.by-block.cells", r"there is no such partition \(did you mean blocks\?\)"),
        ([BLOCKS, LINKS | {"kind": "squares"}], "cells.links.kind", "must be one of"),
        ([], "cells", "must have at least 1 item"),
    ],
)
def test_wrong_partitions_are_refused_with_the_key(cells, key, rule):
    with pytest.raises(cv.ScenarioError, match=rf"{key}: {rule}"):
        run(cells, campaign("by-block", 150, cells="block"))
