"""Road-side units: devices report to the unit of their district, which knows the district."""

import numpy as np
import pytest

import crowdveil as cv
from simulator.aggregation.combining import RoadsideUnits
from simulator.cells.square import SquareGrid


def test_each_district_has_a_unit_and_outside_has_one_more():
    grid = SquareGrid.build_over((0.0, 0.0, 300.0, 300.0), size_m=100.0, crs="EPSG:32618")
    units = RoadsideUnits(grid)
    assert sorted(set(units.unit_of_cell[1:].tolist())) == [1, 2, 3, 4]
    assert units.unit_of_cell[0] == units.servers == 5
    assert not units.paired


def run(seed=3, **changes):
    base = cv.scenarios.load("tiny").with_({"attacks": [], "traffic.vehicles": 900, **changes})
    return cv.run(base.with_({"aggregation": {"kind": "roadside_units", "level": 1}}), seed=seed)


def test_units_receive_the_devices_of_their_districts():
    result = run(mechanisms=[{"kind": "no_privacy"}])
    servers = result.servers
    assert len(result.cells) == 9  # 3 by 3, so that districts of 2 by 2 are four
    assert servers["server"].nunique() == 4 + 1
    # One round: devices are asked at the moment of truth, so each unit has the devices of its district's cells.
    truth = result.estimates.set_index("cell")["truth"]
    assert servers["sent"].sum() == result.rounds["answered"].sum()
    assert max(servers["sent"]) <= truth.sum()
    np.testing.assert_allclose(result.estimates["estimate"], result.estimates["truth"], atol=1e-9)


def test_claims_say_that_the_district_is_known():
    claims = run().claims
    assert np.isinf(claims[claims["view"] == "located_reports"]["epsilon"].iloc[0])
    assert "part of the city" in claims[claims["view"] == "located_reports"]["basis"].iloc[0]


def test_coalitions_name_units_and_unknown_units_are_refused():
    attack = {"kind": "link_rounds", "coalition": ["server:1", "server:2"], "growing": True}
    base = cv.scenarios.load("tiny").with_({"aggregation": {"kind": "roadside_units"}, "attacks": [attack]})
    found = cv.run(base).attacks
    assert set(found["colluding"]) == {1, 2}
    with pytest.raises(cv.ScenarioError, match="there are"):
        cv.run(base.with_({"attacks": [{**attack, "coalition": ["server:99"], "growing": False}]}))


@pytest.mark.parametrize(("key", "value"), [("level", -1), ("servers", 3), ("robust", True)])
def test_wrong_keys_are_refused(key, value):
    with pytest.raises(cv.ScenarioError, match=f"aggregation.{key}"):
        cv.scenarios.load("tiny").with_({"aggregation": {"kind": "roadside_units", key: value}})
