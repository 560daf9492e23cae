"""The contract of all partitions: ids, names, points outside, nested blocks."""

import numpy as np
import pytest
from partition_cases import EVERY, KINDS, build, places

from simulator.cells import Coarsened, Partition
from simulator.files.errors import InputError

LEVELS = 6


@pytest.fixture(params=EVERY)
def cells(request):
    return build(request.param)


def test_ids_names_and_polygons_are_consistent(cells):
    assert isinstance(cells, Partition)
    drawn = cells.polygons()
    assert drawn["cell"].tolist() == list(range(1, cells.count + 1))
    assert drawn["name"].tolist() == cells.names
    assert len(set(cells.names)) == cells.count > 1
    assert drawn.crs == cells.crs
    assert not drawn.geometry.is_empty.any()
    assert drawn.to_crs("EPSG:4326").geometry.is_valid.all()


def test_every_point_has_one_cell_or_none(cells):
    xy = np.concatenate([places(4000), [[np.nan, 0.0], [np.inf, 1.0], [0.0, np.nan], [1e12, 1e12]]])
    found = cells.cell_of(xy)
    assert found.dtype == np.int32
    assert found.shape == (len(xy),)
    assert found.min() == 0
    assert found.max() <= cells.count
    assert not found[-4:].any()
    one = cells.cell_of(xy[:1])
    assert one.tolist() == found[:1].tolist()
    assert cells.cell_of(np.empty((0, 2))).shape == (0,)
    with pytest.raises(ValueError, match=r"xy must be of shape \(n, 2\)"):
        cells.cell_of(np.zeros(3))


def test_interior_point_of_a_polygon_has_a_cell(cells):
    drawn = cells.polygons().geometry
    inside = drawn.representative_point()
    found = cells.cell_of(np.column_stack([inside.x, inside.y]))
    assert (found > 0).all()
    if cells.kind in {"square", "geographic", "h3", "zones"}:
        assert found.tolist() == list(range(1, cells.count + 1))


def test_blocks_are_consecutive_and_nested(cells):
    finer = cells.coarsened(0)
    np.testing.assert_array_equal(finer, np.arange(cells.count))
    for level in range(1, LEVELS + 1):
        blocks = cells.coarsened(level)
        assert blocks.dtype == np.int64
        assert blocks.shape == (cells.count,)
        assert set(blocks.tolist()) == set(range(int(blocks.max()) + 1))
        pairs = np.unique(np.stack([finer, blocks], axis=1), axis=0)
        assert len(pairs) == finer.max() + 1
        finer = blocks
    assert cells.coarsened(40).max() == 0
    with pytest.raises(InputError, match="level must be at least 0, got -1"):
        cells.coarsened(-1)


@pytest.mark.parametrize("kind", KINDS)
def test_coarsened_partition_counts_the_sum_of_its_cells(kind):
    fine = build(kind)
    for level in (1, 2, 3):
        coarse, block = Coarsened(fine, level), fine.coarsened(level)
        assert coarse.count == block.max() + 1
        xy = places(2000, seed=level)
        found, merged = fine.cell_of(xy), coarse.cell_of(xy)
        assert ((found == 0) == (merged == 0)).all()
        np.testing.assert_array_equal(merged[found > 0] - 1, block[found[found > 0] - 1])
        np.testing.assert_array_equal(coarse.coarsened(2)[block], fine.coarsened(level + 2))
        sizes = np.bincount(block)
        plain = [fine.names[i] for i in range(fine.count) if sizes[block[i]] == 1]
        assert set(plain) <= set(coarse.names)
