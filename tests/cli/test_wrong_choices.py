"""Messages about wrong names and values: one line, with the rule, the value, its unit and the name that was meant."""

import pytest

from scenarios.errors import suggestion
from scenarios.field_types import unit_of

PLAN = ("plan", "--cells", "10", "--population", "1000", "--epsilon", "1")


MEANT = {
    "command": (["rnu", "tiny"], "rnu", "run"),
    "command of a group": (["scenarios", "lst"], "lst", "list"),
    "option unlike any": ([*PLAN, "--devices", "3"], "--devices", None),
    "scenario": (["run", "manhatan"], "manhatan", "manhattan"),
    "scenario to sweep": (["sweep", "tinny"], "tinny", "tiny"),
    "scenario to evaluate": (["evaluate", "--mechanisms", "oue", "--data", "tinny", "--epsilon", "1"], "tinny", "tiny"),
    "key": (["run", "tiny", "--set", "traffic.vehicels=5"], "traffic.vehicels", "vehicles"),
    "kind": (["run", "tiny", "--set", "cells.kind=sqare"], "sqare", "square"),
    "mechanism of a scenario": (["run", "tiny", "--set", "mechanisms=[{kind='oeu'}]"], "oeu", "oue"),
    "value": (["run", "tiny", "--set", "population.answers=report"], "report", "reports"),
    "item": (["run", "tiny", "--set", "campaigns.ocupancy.start_s=5"], "ocupancy", "occupancy"),
    "view": ([*PLAN, "--view", "relased"], "'relased'", "released"),
    "view to evaluate": (["evaluate", "--view", "relased", "--epsilon", "1"], "'relased'", "released"),
    "family": ([*PLAN, "--mechanism", "oeu"], "'oeu'", "oue"),
    "family to evaluate": (["evaluate", "--mechanisms", "oeu", "--data", "tiny", "--epsilon", "1"], "'oeu'", "oue"),
    "kind of a class": (["check", "oue"], "oue", "OptimisedUnary"),
    "class": (["check", "OptimizedUnary"], "OptimizedUnary", "OptimisedUnary"),
    "class of a module": (["check", "mechanisms.local:Oue"], "mechanisms.local:Oue", None),
    "class of a module, nearly": (["check", "mechanisms.local:SamplingPrivcy"], "SamplingPrivcy", "SamplingPrivacy"),
    "class of a scenario": (
        ["run", "tiny", "--allow-plugins", "--set", "mechanisms=[{kind='mechanisms.local:OptimizedUnary'}]"],
        "mechanisms.local:OptimizedUnary",
        "OptimisedUnary",
    ),
    "parameter of a class": (["check", "SamplingPrivacy", "--set", "smapling=0.4"], "smapling", "sampling"),
    "data set": (["data", "check", "gowala_nyc"], "'gowala_nyc'", "gowalla_nyc"),
    "entry": (["reproduce", "sp-fg6"], "'sp-fg6'", "sp-fig6"),
}


@pytest.mark.parametrize("case", MEANT)
def test_wrong_name_suggests_the_one_that_was_meant(call, case, tmp_path):
    arguments, named, meant = MEANT[case]
    done = call(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert named in done.stderr
    assert ("did you mean" in done.stderr) == (meant is not None)
    assert meant is None or f"(did you mean {meant}?)" in done.stderr
    assert done.stderr.count("crowdveil: ") == 1
    assert len(done.stderr.splitlines()) == (2 if "1 fault\n" in done.stderr else 1), (
        "a scenario's fault is on its own line"
    )
    assert list(tmp_path.iterdir()) == []


ARGUMENTS = {
    "role of a new class": (["new", "atack", "mine"], "'atack'", "attack"),
    "role": (["check", "OptimisedUnary", "--role", "mecanism"], "'mecanism'", "mechanism"),
    "format": (["export", "x", "--to", "geopakage"], "--to", "geopackage"),
    "adjacency": ([*PLAN, "--adjacency", "moove"], "--adjacency", "move"),
    "option": (["run", "tiny", "--sed", "3"], "--sed", "--seed"),
    "no whole number": (["run", "tiny", "--seed", "abc"], "--seed", "valid integer"),
    "below the least": (["run", "tiny", "--seed=-1"], "--seed", "greater than or equal to 0"),
    "outside a range": (["check", "OptimisedUnary", "--cells", "40"], "--cells", "16"),
    "no number of vehicles": ([*PLAN, "--error", "few"], "--error", "valid number"),
    "no value": (["run", "tiny", "--seed"], "--seed", "requires an argument"),
    "no option": (["plan", "--cells", "3", "--epsilon", "1"], "--population", "Missing option"),
    "no argument": (["run"], "SCENARIO", "Missing argument"),
    "too many": (["run", "tiny", "more"], "unexpected extra argument", "more"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_wrong_argument_gives_one_line_with_the_argument_and_the_value_or_rule(call, case):
    arguments, *words = ARGUMENTS[case]
    done = call(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("crowdveil: ")
    assert len(done.stderr.splitlines()) == 1
    assert all(word in done.stderr for word in words)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cells.size_m=abc", 'cells.size_m: must be a number of metres; got "abc"'),
        ("cells.size_m=-5", "cells.size_m: must be above 0 metres; got -5"),
        ("cells.size_m=inf", "cells.size_m: must be a finite number of metres; got inf"),
        ("campaigns.0.deadline_s=soon", 'deadline_s: must be a number of seconds; got "soon"'),
        ("channel.latency_s=-1", "channel.latency_s: must be at least 0 seconds; got -1"),
        ("roads.speed_mps=fast", 'roads.speed_mps: must be a number of metres per second; got "fast"'),
        ("roads.capacity_vph=0", "roads.capacity_vph: must be above 0 vehicles per hour; got 0"),
        ("roads.anchor.lat=99", "roads.anchor.lat: must be at most 80 degrees; got 99"),
        ("scenario.warmup_s=400", "scenario.warmup_s: must be below duration_s = 300 s; got 400"),
        ("traffic.vehicles=many", 'traffic.vehicles: must be a whole number; got "many"'),
    ],
)
def test_messages_of_fields_name_their_unit(call, override, message):
    done = call("run", "tiny", "--set", override)
    assert done.returncode == 2
    assert message in done.stderr


def test_unit_is_that_of_the_last_part_of_a_name():
    assert unit_of("deadline_s") == "seconds"
    assert unit_of("lat") == "degrees"
    assert [unit_of(key) for key in ("vehicles", "classes", "k", "")] == [""] * 4


def test_name_of_a_unit_is_suggested(call):
    done = call("run", "tiny", "--set", "roads={source='tntp', length_unit='feeet'}")
    assert done.returncode == 2
    assert "(did you mean feet?)" in done.stderr


def test_suggestion_ignores_case_and_may_name_another_text():
    assert suggestion("TINY", ["tiny", "highway"]) == " (did you mean tiny?)"
    assert suggestion("oeu", ["oue", "sue"], instead={"oue": "OptimisedUnary"}) == " (did you mean OptimisedUnary?)"
    assert suggestion("zzz", ["tiny"]) == suggestion(3, ["tiny"]) == suggestion("tiny", []) == ""


@pytest.mark.parametrize("line", ["", "scenarios", "data", "roads"])
def test_no_command_prints_the_help(call, line):
    done = call(*line.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Usage: crowdveil {line}".strip())


COMPLETED = {
    "ru": ["run"],
    "run man": ["manhattan", "manhattan-osm"],
    "scenarios show high": ["highway"],
    "plan --view released_d": ["released_differences"],
    "plan --mechanism sampling_privacy_r": ["sampling_privacy_refreshed"],
    "data check gow": ["gowalla_nyc"],
    "check Opti": ["OptimisedUnary"],
    "new m": ["mechanism"],
    "reproduce sp-fig6": ["sp-fig6"],
    "run tiny --over": ["--overwrite"],
}


@pytest.mark.parametrize("line", COMPLETED)
def test_shell_completes_names(line, call, monkeypatch):
    words = {"COMP_WORDS": f"crowdveil {line}", "COMP_CWORD": str(len(line.split()))}
    for name, value in {**words, "_CROWDVEIL_COMPLETE": "complete_bash"}.items():
        monkeypatch.setenv(name, value)
    done = call()
    assert done.stderr == ""
    assert done.stdout.split() == COMPLETED[line]
