"""Settings for all tests."""

import os
from collections import Counter

import pytest
from hypothesis import settings

# A kernel is compiled in the first example that calls it, which takes seconds in a fresh clone and is no fault of the
# example. Tests that hang are stopped by pytest's own timeout.
settings.register_profile("crowdveil", deadline=None)
settings.load_profile("crowdveil")

# The readline that pytest imports sets it to 80 for the processes that it starts, and the commands wrap their output.
os.environ.pop("COLUMNS", None)

# Processes that tests start, pytest's workers among them, keep their compiled modules, beside the compiled kernels:
# without them each would compile the source again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)  # before pytest selects tests by their markers
def pytest_collection_modifyitems(items):
    """Mark all cases of a test but the first n as slow where it is marked with `fast_cases(n)`."""
    cases = Counter()
    for item in items:
        marker = item.get_closest_marker("fast_cases")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > marker.args[0]:
                item.add_marker(pytest.mark.slow)
