"""Scores of estimates: which of the busiest cells are found."""

import numpy as np

from simulator.experiment.tables import share_found


def test_cells_tied_with_the_last_busiest_one_count_as_found():
    truth = np.array([5, 3, 3, 3, 0])
    assert share_found(truth, np.array([9.0, 0.0, 0.0, 8.0, 7.0]), 2) == 1.0
    assert share_found(truth, np.array([9.0, 0.0, 0.0, 0.0, 7.0]), 2) == 0.5
