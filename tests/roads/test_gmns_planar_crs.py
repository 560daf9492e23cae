"""GMNS coordinates that are not degrees, without a stated coordinate system."""

import numpy as np
import pytest
from small_networks import write_gmns_text

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.roads.readers.gmns import read_gmns

NODES = "node_id,x_coord,y_coord\n1,1500000,1000000\n2,1500300,1000000\n3,1500300,1000400\n"
LINKS = "from_node_id,to_node_id,directed,length,free_speed\n1,2,1,300,36\n2,3,1,400,36\n3,1,1,0,36\n"


@pytest.mark.parametrize("unit_m", [1.0, 0.3048])
def test_planar_coordinates_have_the_unit_of_lengths(unit_m, tmp_path):
    roads, report = read_gmns(write_gmns_text(tmp_path / "g", NODES, LINKS), length_m=unit_m)
    np.testing.assert_allclose(roads.links.length_m, np.array([300, 400, 500]) * unit_m)
    corners = np.array([[1500000, 1000000], [1500300, 1000000], [1500300, 1000400]]) * unit_m
    np.testing.assert_allclose(roads.node_xy, corners, atol=1e-6)
    np.testing.assert_allclose(roads.to_wgs84(roads.node_xy).mean(axis=0), 0.0, atol=0.01)
    assert any(
        "node.csv: the coordinates are not degrees and no crs is given, so the map is placed at" in warning
        for warning in texts_of(report.warnings)
    )


def test_unstated_units_are_noted(tmp_path):
    folder = write_gmns_text(tmp_path / "g", NODES, LINKS)
    notes = "\n".join(texts_of(read_gmns(folder)[1].notes()))
    assert "states the unit of length: taken as metres" in notes
    assert "states the unit of free_speed: taken as km/h" in notes
    assert "states the unit" not in "\n".join(texts_of(read_gmns(folder, length_m=1.0, speed_mps=0.3)[1].notes()))


def test_stated_crs_is_used(tmp_path):
    roads, report = read_gmns(write_gmns_text(tmp_path / "g", NODES, LINKS), crs="EPSG:3735", length_m=0.3048)
    assert roads.to_wgs84(roads.node_xy)[:, 1].min() > 40
    assert not any("not degrees" in note for note in texts_of(report.notes()))


def test_planar_position_among_degrees_is_refused(tmp_path):
    nodes = "node_id,x_coord,y_coord\n1,-84.1,40.7\n2,-84.1,40.71\n3,1500300,1000400\n"
    with pytest.raises(InputError, match=r"node\.csv: row 3: .*for another system, set crs"):
        read_gmns(write_gmns_text(tmp_path / "g", nodes, LINKS))


ONE_BLANK = LINKS.replace(",1,300,", ",,300,")
ALL_BLANK = ONE_BLANK.replace(",1,400,", ",,400,").replace("3,1,1,0,", "3,1,,0,")


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (ONE_BLANK, "1 of 3 links does not state whether it is one-way: taken as one-way"),
        (ALL_BLANK, "3 of 3 links do not state whether they are one-way: taken as one-way"),
    ],
)
def test_missing_direction_and_missing_crs_are_noted(links, message, tmp_path):
    _, report = read_gmns(write_gmns_text(tmp_path / "g", NODES, links))
    assert any(note.endswith(message) for note in texts_of(report.notes()))
    assert 'set roads.crs, for example crs = "EPSG:32618"' in texts_of(report.warnings)[0]
