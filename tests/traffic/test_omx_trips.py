"""Trips in Open Matrix files, written by h5py as the format describes them: groups `data` and `lookup`."""

import h5py
import numpy as np
import pytest

from simulator.files.errors import InputError
from simulator.formats.tables.omx import read_omx

CARS = np.array([[0.0, 1.5, 0.0], [2.0, 3.0, 0.0], [0.0, 0.25, 0.0]])


@pytest.fixture
def write(tmp_path):
    def _write(matrices, mappings=None):
        path = tmp_path / "trips.omx"
        with h5py.File(path, "w") as file:
            file.attrs["OMX_VERSION"], file.attrs["SHAPE"] = b"0.2", np.array([3, 3])
            for name, cells in matrices.items():
                file.create_dataset(f"data/{name}", data=cells)
            for name, zones in (mappings or {}).items():
                file.create_dataset(f"lookup/{name}", data=zones)
        return path

    return _write


def pairs(table):
    ends = zip(table.origin.tolist(), table.destination.tolist(), table.trips.tolist(), strict=True)
    return {(table.places[a], table.places[b]): trips for a, b, trips in ends}


def test_the_only_matrix_with_its_only_mapping(write):
    table = read_omx(write({"cars": CARS}, {"taz": [101, 205, 7]}))
    assert pairs(table) == {("101", "205"): 1.5, ("205", "101"): 2.0, ("205", "205"): 3.0, ("7", "205"): 0.25}
    assert table.row.tolist() == [1, 2, 2, 3]


def test_zones_without_a_mapping_are_numbered(write):
    assert pairs(read_omx(write({"cars": CARS})))[("3", "2")] == 0.25


def test_one_of_several_matrices_and_mappings(write):
    path = write({"cars": CARS, "trucks": CARS * 2}, {"taz": [101, 205, 7], "county": [1, 2, 3]})
    assert pairs(read_omx(path, matrix="trucks", mapping="county"))[("1", "2")] == 3.0
    for given, key in (({}, "matrix"), ({"matrix": "car"}, "matrix"), ({"matrix": "cars"}, "mapping")):
        with pytest.raises(InputError, match=rf"traffic\.{key} must name one of") as caught:
            read_omx(path, **given)
        assert caught.value.key == f"traffic.{key}"
    with pytest.raises(InputError, match="'cars', 'trucks', got 'car'"):
        read_omx(path, matrix="car")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (CARS - 1.0, "from zone 1 to zone 1: trips must be a finite number, 0 or more, got -1.0"),
        (CARS * np.nan, "got nan"),
        (CARS * 0, "all cells are 0"),
        (CARS[:2], "a column for each of 2 zones with different names, got 2 × 3"),
    ],
)
def test_unusable_matrices_are_refused(write, cells, words):
    with pytest.raises(InputError, match=words):
        read_omx(write({"cars": cells}))


def test_files_that_are_no_omx_or_refer_to_other_files_are_refused(write, tmp_path):
    other = write({"cars": CARS})
    (tmp_path / "text.omx").write_text("origin,destination\n")
    with pytest.raises(InputError, match="cannot be read as OMX"):
        read_omx(tmp_path / "text.omx")
    with h5py.File(tmp_path / "link.omx", "w") as file:
        file["data/cars"] = h5py.ExternalLink(str(other), "/data/cars")
    with pytest.raises(InputError, match="'cars' is in another file"):
        read_omx(tmp_path / "link.omx")
    with h5py.File(tmp_path / "empty.omx", "w"):
        pass
    with pytest.raises(InputError, match="it has no matrix"):
        read_omx(tmp_path / "empty.omx")
