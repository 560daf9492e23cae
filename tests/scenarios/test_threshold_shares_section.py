"""``[aggregation]`` of kind ``threshold_shared``: its keys, defaults and faults."""

import pytest


def test_defaults(load):
    section = load(overrides=["aggregation={kind='threshold_shared'}"]).aggregation
    assert (section.servers, section.threshold, section.paired, section.handles) == (3, 2, False, "device")
    paired = load(overrides=["aggregation={kind='threshold_shared', servers=5, threshold=4, paired=true}"]).aggregation
    assert (paired.servers, paired.threshold, paired.handles) == (5, 4, "query")


@pytest.mark.parametrize(
    ("keys", "path", "fragment"),
    [
        ("threshold=4", "aggregation.threshold", "at most servers = 3"),
        ("threshold=1", "aggregation.threshold", "at least 2"),
        ("servers=256", "aggregation.servers", "at most 255"),
        ("robust=true", "aggregation.robust", "unknown key"),
        ("paired=true, handles='device'", "aggregation.handles", 'must be "query"'),
    ],
)
def test_each_invalid_key_gives_one_fault(load, only_fault, keys, path, fragment):
    only_fault(lambda: load(overrides=[f"aggregation={{kind='threshold_shared', {keys}}}"]), path, fragment)
