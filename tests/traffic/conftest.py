"""Lets the tests of this folder share their hand-made roads, and a network of SUMO."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def shared_net(tmp_path_factory):
    from sumo_by_hand import make_net  # noqa: PLC0415 - skips the tests where SUMO is not installed

    return make_net(tmp_path_factory.mktemp("net"))


@pytest.fixture
def net(shared_net, tmp_path):
    """A small network of SUMO, in a folder of the test's own."""
    copy = tmp_path / shared_net.name
    copy.write_bytes(shared_net.read_bytes())
    return copy
