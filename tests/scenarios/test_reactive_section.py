"""[traffic] routing: when drivers reroute."""

import pytest

import scenarios


@pytest.fixture
def load(tmp_path, valid_text):
    def loaded(**traffic):
        path = tmp_path / "s.toml"
        lines = "".join(f"{name} = {value!r}\n".replace("'", '"') for name, value in traffic.items())
        path.write_text(valid_text.replace("vehicles = 50\n", f"vehicles = 50\n{lines}"), encoding="utf-8")
        return scenarios.load(path)

    return loaded


def test_omitted_keys_stay_none(load):
    traffic = load(routing="reactive").traffic
    assert (traffic.reroute_every_s, traffic.reroute_share) == (None, None)


def test_both_rerouting_keys_are_read(load):
    traffic = load(routing="reactive", reroute_every_s=60.0, reroute_share=0.0).traffic
    assert (traffic.reroute_every_s, traffic.reroute_share) == (60, 0)


@pytest.mark.parametrize(
    ("traffic", "path", "rule"),
    [
        ({"reroute_every_s": 60.0}, "traffic.reroute_every_s", 'needs routing = "reactive"'),
        ({"reroute_share": 0.5}, "traffic.reroute_share", 'needs routing = "reactive"'),
        ({"routing": "reactive", "reroute_every_s": 0.5}, "traffic.reroute_every_s", "must be at least step_s = 1"),
        ({"routing": "reactive", "reroute_every_s": 3.0, "step_s": 4.0}, "traffic.reroute_every_s", "step_s = 4"),
        ({"routing": "reactive", "reroute_share": 1.5}, "traffic.reroute_share", "must be at most 1"),
        ({"routing": "reactive", "reroute_every_s": -1.0}, "traffic.reroute_every_s", "must be above 0"),
    ],
)
def test_invalid_rerouting_keys_are_refused(load, only_fault, traffic, path, rule):
    only_fault(lambda: load(**traffic), path, rule)
