"""The command line, called in an empty folder."""

import pytest


@pytest.fixture
def call(call_in_process, tmp_path):
    """Return a function that calls the command line in this process, in an empty folder."""
    return lambda *arguments: call_in_process(*arguments, cwd=tmp_path)
