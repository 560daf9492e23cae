"""Comparison of the places of single vehicles with the places of all."""

from dataclasses import fields

import numpy as np
import pytest

from simulator.traffic.engine import Engine, VehicleStates


def assert_rows_equal(some: VehicleStates, rows: VehicleStates) -> None:
    for field in fields(VehicleStates):
        ours, theirs = getattr(some, field.name), getattr(rows, field.name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs, err_msg=field.name)


def advance_and_compare(engine: Engine, *, departed: int = 0) -> VehicleStates:
    """Advance an engine and return its places; the first `departed` vehicles are asked for theirs before that."""
    first = np.arange(departed)
    early = engine.place_of(first)
    engine.advance()
    everyone = engine.places()
    assert_rows_equal(early, everyone.of(first))
    shuffled = np.random.default_rng(len(everyone)).permutation(len(everyone))
    assert_rows_equal(engine.place_of(shuffled), everyone.of(shuffled))
    for absent in (-1, len(everyone)):
        with pytest.raises(ValueError, match=f"vehicle {absent} has not departed; "):
            engine.place_of(np.array([absent]))
    return everyone
