"""Every entry of `crowdveil reproduce all`: each published number agrees, or a note states why it differs."""

import pytest
from verification import compared

from simulator.papers.published_results import ENTRIES


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_published_numbers_agree_or_a_note_states_why_not(entry):
    done = entry.reproduce(seed=1)
    if done.skipped:
        pytest.skip(done.skipped)
    for row in done.rows:
        assert row.agrees in {True, False, None}
        if row.published is not None and row.agrees is not None:
            assert row.agrees or row.note, row.key
            compared("published" if row.agrees else "published, differing", 0.0, 0.0)
