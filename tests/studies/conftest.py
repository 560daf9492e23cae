"""Settings for tests of studies: no file of the user's cache of cities and trips is read or written."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROWDVEIL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
