"""Untrusted scenarios: no import, no call, and access to named files only."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

import scenarios
from scenarios import ScenarioError
from simulator import run
from simulator.datasets.manifest import read_manifest
from simulator.files.errors import InputError
from simulator.roads.sumo_frame import NetFrame

SCENARIO = """
scenario = {name = "stranger", duration_s = 120}
traffic = {vehicles = 20}
campaigns = [{start_s = 30, round_gap_s = 10}]
[roads]
source = "grid"
rows = 3
columns = 3
spacing_m = 100
speed_mps = 10
[cells]
kind = "square"
size_m = 100
[[mechanisms]]
kind = "no_privacy"
"""
GRID = SCENARIO[SCENARIO.index('source = "grid"') : SCENARIO.index("[cells]")]
TABLES = """
source = "tables"
nodes = "{}"
edges = "edges.csv"
crs = "EPSG:32618"
columns = {{ node = "id", x = "x", y = "y", from = "a", to = "b", length_m = "len" }}
"""
NODES = "id,x,y\n0,500000,4500000\n1,500100,4500000\n2,500100,4500100\n"
EDGES = "a,b,len\n0,1,100\n1,2,100\n2,0,140\n"
HOSTILE = """
from pathlib import Path
Path({!r}).write_text("imported")
"""
MODULE = "module_that_a_stranger_sent"

unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes, and links need a privilege")

CALLS = {
    "a log file that is emptied": 'kind = "logging:basicConfig"\nfilename = "{precious}"\nfilemode = "w"',
    "a shell": 'kind = "os:system"\ncommand = "echo > {precious}"',
    "a program": 'kind = "subprocess:run"\nargs = ["rm", "{precious}"]',
    "code in a text": "kind = \"builtins:exec\"\nsource = \"open('{precious}', 'w')\"",
    "a folder removed": 'kind = "shutil:rmtree"\npath = "{folder}"',
    "a method that removes a file": 'kind = "pathlib:Path"\nname = "unlink"',
    "a file opened": 'kind = "io:open"\nfile = "{precious}"\nmode = "w"',
    "an instance": 'kind = "sys:stdout"',
    "a class of another kind": 'kind = "logging:FileHandler"\nfilename = "{precious}"\nmode = "w"',
    "a module that acts when imported": f'kind = "{MODULE}:Anything"',
    "a module of the standard library that opens a browser": 'kind = "antigravity:geohash"',
    "one whose name is dotted": f'kind = "{MODULE}.within:Anything"',
}
"""Mechanisms that a scenario names; none may be imported without permission, nor called with it."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of an untrusted scenario as working directory, and the user's own folder beside it."""
    here, own = tmp_path / "sent", tmp_path / "own"
    for each in (here, own):
        each.mkdir()
        (each / "nodes.csv").write_text(NODES)
        (each / "edges.csv").write_text(EDGES)
        (each / "precious.txt").write_text("years of work")
    (here / f"{MODULE}.py").write_text(HOSTILE.format(str(own / "precious.txt")))
    for variable in ("CROWDVEIL_ALLOW_PLUGINS", "CROWDVEIL_UNTRUSTED", "CROWDVEIL_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def crowdveil(folder, monkeypatch, call_in_process):
    """The command line in this process, with the untrusted modules on the import path."""
    monkeypatch.syspath_prepend(folder)
    return lambda *arguments: call_in_process(*map(str, arguments), cwd=folder)


def hash_files(folder):
    """Hash every file of both folders, to detect changed, added or lost files."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.parent.rglob("*"))
        if "__pycache__" not in path.parts
    }


def sent(folder, mechanism):
    own = folder.parent / "own"
    text = SCENARIO.replace('kind = "no_privacy"', mechanism.format(precious=own / "precious.txt", folder=own))
    (folder / "s.toml").write_text(text)
    return folder / "s.toml"


@pytest.mark.parametrize("name", CALLS)
def test_plug_in_class_is_not_imported_without_permission(folder, crowdveil, name):
    file = sent(folder, CALLS[name])
    kind = CALLS[name].split('"')[1]
    before, modules = hash_files(folder), set(sys.modules)
    overridden = ("run", "tiny", "--set", f'mechanisms.sampling.kind="{kind}"')
    for command in (("run", file), ("run", file, "--untrusted"), overridden):
        done = crowdveil(*command)
        assert done.returncode == 2
        for words in ("mechanisms", ".kind: ", kind, "--untrusted" if "--untrusted" in command else "--allow-plugins"):
            assert words in done.stderr
        assert "Traceback" not in done.stderr
    checked = crowdveil("scenarios", "check", file)
    assert checked.returncode == 0, checked.stderr
    assert "was not checked" in checked.stderr
    assert "--allow-plugins" in checked.stderr
    assert "stranger: " in checked.stdout
    assert crowdveil("scenarios", "check", file, "--untrusted").returncode == 2
    assert crowdveil("scenarios", "show", file).returncode == 0
    assert crowdveil("scenarios", "show", file, "--resolved").returncode == 0
    for scenario in (file, scenarios.load(file), scenarios.Scenario.model_validate(scenarios.load(file).tables())):
        with pytest.raises(ScenarioError, match="allow_plugins=True"):
            run(scenario, out=folder / "out")
    assert hash_files(folder) == before
    package = kind.partition(":")[0].partition(".")[0]
    assert not [found for found in set(sys.modules) - modules if found.partition(".")[0] == package]


@pytest.mark.parametrize("name", [name for name in CALLS if "module" not in name and "dotted" not in name])
def test_permitted_plug_in_is_verified_before_it_is_called(folder, crowdveil, name):
    file = sent(folder, CALLS[name])
    before = hash_files(folder)
    for command in ("run", "scenarios check"):
        done = crowdveil(*command.split(), file, "--allow-plugins")
        assert done.returncode == 2
        assert "must be a class" in done.stderr
        assert "Traceback" not in done.stderr
    with pytest.raises(ScenarioError, match="must be a class"):
        run(file, allow_plugins=True)
    assert hash_files(folder) == before


PLUG_IN = """
from mechanisms.local import RandomizedResponse
class Shy(RandomizedResponse):
    def __init__(self, *, cells, shyness):
        super().__init__(cells=cells, first_coin=1 - shyness, second_coin=0.5)
"""


@pytest.mark.parametrize("how", ["flag", "variable", "python"])
def test_permitted_plug_in_runs_and_its_module_is_recorded(folder, crowdveil, monkeypatch, how):
    (folder / f"shy_{how}.py").write_text(PLUG_IN)
    kind = f"shy_{how}:Shy"
    file = sent(folder, f'kind = "{kind}"\nshyness = 0.4')
    monkeypatch.setenv("CROWDVEIL_ALLOW_PLUGINS", "1" if how == "variable" else "0")
    done = crowdveil("scenarios", "check", file, *(["--allow-plugins"] if how == "flag" else []))
    assert (done.returncode, "not checked" in done.stderr) == (0, how == "python")
    if how != "python":
        return
    run(file, allow_plugins=True, out="out")
    facts = json.loads((folder / "out" / "run.json").read_text())
    assert facts["plug_ins"] == {kind: hashlib.sha256(PLUG_IN.encode()).hexdigest()}
    assert facts["files_outside"] == []


@pytest.mark.parametrize("variable", [False, True])
def test_untrusted_and_allow_plugins_contradict_each_other(folder, crowdveil, monkeypatch, variable):
    if variable:
        monkeypatch.setenv("CROWDVEIL_UNTRUSTED", "1")
    for command in (("run",), ("scenarios", "check")):
        done = crowdveil(*command, "tiny", "--allow-plugins", *([] if variable else ["--untrusted"]))
        assert done.returncode == 2
        assert "contradict" in done.stderr
    monkeypatch.setenv("CROWDVEIL_ALLOW_PLUGINS", "1")  # set by an administrator: --untrusted takes precedence
    done = crowdveil("run", sent(folder, CALLS["a shell"]), *([] if variable else ["--untrusted"]))
    assert done.returncode == 2
    assert "its class would have to be imported" in done.stderr


def outside(folder, how):
    """Write a scenario that reads a file outside its folder, and return it with the file."""
    own = folder.parent / "own" / "nodes.csv"
    named = "linked.csv"
    match how:
        case "an absolute path":
            named = str(own)
        case "a path that goes up":
            named = "../own/nodes.csv"
        case "a path that goes up behind a folder":
            named = "within/../../own/nodes.csv"
            (folder / "within").mkdir()
        case "a link":
            (folder / named).symlink_to(own)
        case "a link in a folder":
            (folder / "links").symlink_to(own.parent)
            named = "links/nodes.csv"
        case "data":
            (folder / "data" / "set").mkdir(parents=True)
            (folder / "data" / "set" / "nodes.csv").symlink_to(own)
            named = "data:set/nodes.csv"
    (folder / "s.toml").write_text(SCENARIO.replace(GRID, TABLES.format(named)))
    return folder / "s.toml", own


@unix
@pytest.mark.parametrize(
    "how",
    [
        "an absolute path",
        "a path that goes up",
        "a path that goes up behind a folder",
        "a link",
        "a link in a folder",
        "data",
    ],
)
def test_outside_file_is_named_and_with_untrusted_refused(folder, crowdveil, monkeypatch, how):
    monkeypatch.setenv("CROWDVEIL_DATA", str(folder / "data"))
    file, own = outside(folder, how)
    named = f"note: reads outside the scenario's folder and CROWDVEIL_DATA: {own.resolve()}\n"
    for command in (("scenarios", "check", file), ("roads", "show", file)):
        done = crowdveil(*command)
        assert (done.returncode, done.stderr.count(named)) == (0, 1)
    if how == "a link":
        assert run(file).facts["files_outside"] == ["../own/nodes.csv"]
    read = scenarios.load(file)
    assert read.files_outside() == [own]
    before = hash_files(folder)
    for command in (("run", file), ("scenarios", "check", file)):
        done = crowdveil(*command, "--untrusted")
        assert done.returncode == 2
        assert "roads.nodes: must not lead outside the scenario's folder" in done.stderr
        assert "note" not in done.stderr
    for given in (file, read):
        with pytest.raises(ScenarioError, match=r"roads\.nodes: must not lead outside"):
            run(given, untrusted=True)
    monkeypatch.setenv("CROWDVEIL_UNTRUSTED", "1")
    for command in (("run", file), ("scenarios", "show", "--resolved", file), ("roads", "show", file)):
        assert crowdveil(*command).returncode == 2
    assert hash_files(folder) == before


@unix
def test_file_inside_the_folder_is_neither_named_nor_refused(folder, crowdveil, monkeypatch):
    file, _ = outside(folder, "a link in a folder")
    file.write_text(file.read_text().replace("links/nodes.csv", "nodes.csv"))
    done = crowdveil("scenarios", "check", file, "--untrusted")
    assert (done.returncode, "outside" in done.stderr) == (0, False)
    (folder.parent / "alias").symlink_to(folder)
    done = crowdveil("scenarios", "check", folder.parent / "alias" / "s.toml", "--untrusted")
    assert (done.returncode, "outside" in done.stderr) == (0, False)
    monkeypatch.setenv("CROWDVEIL_DATA", str(folder.parent))
    file.write_text(file.read_text().replace('"nodes.csv"', '"data:own/nodes.csv"'))
    done = crowdveil("scenarios", "check", file, "--untrusted")
    assert (done.returncode, "outside" in done.stderr) == (0, False)


def test_text_that_looks_like_a_path_is_not_read(folder):
    """Cell names go into the report; a file of that name is not an input of the scenario."""
    secret = str(folder.parent / "own" / "precious.txt")
    cells = f'kind = "locations"\nfile = "nodes.csv"\ncrs = "EPSG:32618"\nnames = ["{secret}"]'
    cells += '\ncolumns = { name = "id", x = "x", y = "y" }'
    text = SCENARIO.replace('kind = "square"\nsize_m = 100', cells)
    (folder / "s.toml").write_text(text)
    read = scenarios.load("s.toml")
    assert [path.name for _, path in scenarios.files_of(read.cells)] == ["nodes.csv"]
    assert read.files_outside() == []


@pytest.mark.parametrize(
    "reference",
    [
        "/vsicurl/http://127.0.0.1:9/roads.gpkg",
        "http://127.0.0.1:9/roads.gpkg",
        "/vsizip/roads.zip/roads.gpkg",
        "data:../own/nodes.csv",
        "data:/etc/passwd",
        "data:set/../../own/nodes.csv",
    ],
)
def test_reference_that_is_no_file_is_not_read(folder, crowdveil, monkeypatch, reference):
    monkeypatch.setenv("CROWDVEIL_DATA", str(folder))
    (folder / "s.toml").write_text(SCENARIO.replace(GRID, f'source = "geopackage"\npath = "{reference}"\n'))
    for arguments in (("run",), ("scenarios", "check"), ("run", "--untrusted")):
        done = crowdveil(*arguments, "s.toml")
        assert done.returncode == 2
        assert "roads.path" in done.stderr


@unix
@pytest.mark.parametrize(
    "crs",
    ["+init={}:x", "+proj=utm +zone=33 +nadgrids={} +type=crs", "init={}:x", "+proj=pipeline +step +init=./{}:x"],
)
def test_crs_of_a_scenario_must_not_name_a_file(folder, crowdveil, crs):
    file, _ = outside(folder, "a path that goes up")
    os.mkfifo(folder / "pipe")  # opening it would block forever
    text = file.read_text().replace("EPSG:32618", crs.format(folder / "pipe"))
    file.write_text(text)
    done = crowdveil("scenarios", "check", file)
    assert done.returncode == 2
    assert "roads.crs: must not name a file" in done.stderr


@unix
def test_crs_of_an_input_file_must_not_name_a_file(folder, crowdveil):
    """For each format that gives the coordinate system as text."""
    os.mkfifo(folder / "pipe")
    crs = f"+init={folder / 'pipe'}:x"
    with pytest.raises(InputError, match="projParameter"):
        NetFrame.from_location({"netOffset": "0,0", "projParameter": crs})
    (folder / "node.csv").write_text("node_id,x_coord,y_coord\n1,0,0\n2,100,0\n")
    (folder / "link.csv").write_text("link_id,from_node_id,to_node_id,directed,length\n1,1,2,1,100\n2,2,1,1,100\n")
    (folder / "config.csv").write_text(f"long_length,speed,crs\nm,kph,{crs}\n")
    (folder / "s.toml").write_text(SCENARIO.replace(GRID, 'source = "gmns"\npath = "."\n'))
    done = crowdveil("scenarios", "check", "s.toml")
    assert done.returncode == 2
    assert crs in done.stderr


ROUTES = """<routes>
  <vType id="v"><param key="has.ssm.device" value="true"/><param key="device.ssm.file" value="{}/ssm.txt"/>
    <param key="has.toc.device" value="true"/><param key="device.toc.file" value="../own/toc.txt"/>
    <param key="device.toc.manualType" value="v"/><param key="device.toc.automatedType" value="v"/></vType>
  <route id="east" edges="A1B1 B1C1"/>
  <flow id="q" begin="0" end="60" period="2" route="east" type="v"/>
</routes>"""
ADDITIONAL = """<additional>
  <edgeData id="e" file="{0}/edges.txt"/><laneData id="l" file="../own/lanes.csv"/>
  <inductionLoop id="d" lane="B1C1_0" pos="10" period="60" file="loops.txt"/>
  <vTypeProbe id="p" type="v" period="10" file="{0}/probe.txt.gz"/>
  <timedEvent type="SaveTLSStates" source="B1" dest="{0}/states.txt"/>
  <include href="../own/included.add.xml"/><variableSpeedSign id="s" lanes="B1C1_0" file="../own/signs.xml"/>
  <calibrator id="c" edge="A1B1" pos="0" output="{0}/calibrated.txt"/>
</additional>"""
CONFIG = """<configuration>
  <net-file value="../own/small.net.xml"/><route-files value="r.rou.xml"/><a value="a.add.xml"/>
  <summary value="{0}/summary.txt"/><fcd-output>{0}/fcd.parquet</fcd-output><log value="{0}/log.txt"/>
  <error-log value="errors.txt"/><save-template value="{0}/template.txt"/><save-schema value="schema.txt"/>
  <save-state.times value="10"/><save-state.files value="{0}/state.txt"/>
  <device.rerouting.output value="{0}/weights.txt"/>
  <statistic-output value="127.0.0.1:9"/><xml-validation value="always"/><output-prefix value="{0}/mine-"/>
</configuration>"""
OUTPUTS = ("edges", "lanes", "loops", "probe", "states", "calibrated", "summary", "fcd", "log", "errors", "template")
OUTPUTS += ("schema", "state", "weights", "ssm", "toc")


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    sumo = pytest.importorskip("sumo", reason="SUMO is not installed: pip install 'crowdveil[sumo]'")
    made = tmp_path_factory.mktemp("net") / "small.net.xml"
    command = [
        f"{sumo.SUMO_HOME}/bin/netgenerate",
        "--grid",
        "--grid.number=4",
        "--grid.length=120",
        "-j=traffic_light",
    ]
    environment = {**os.environ, "SUMO_HOME": sumo.SUMO_HOME}
    subprocess.run([*command, "-o", str(made)], check=True, capture_output=True, env=environment)
    return made.read_bytes()


@pytest.fixture
def sumo_folder(folder, net):
    own = folder.parent / "own"
    (own / "small.net.xml").write_bytes(net)
    (own / "included.add.xml").write_text("<additional/>")
    (own / "signs.xml").write_text('<vss><step time="0" speed="10"/></vss>')
    (folder / "r.rou.xml").write_text(ROUTES.format(own))
    (folder / "a.add.xml").write_text(ADDITIONAL.format(own))
    (folder / "c.sumocfg").write_text(CONFIG.format(own))
    for name in OUTPUTS:
        for place in (folder, own):
            for suffix in (".txt", ".csv", ".parquet", ".txt.gz"):
                (place / f"{name}{suffix}").write_text("years of work")
    text = SCENARIO.replace("traffic = {vehicles = 20}", 'traffic = {engine = "sumo", config = "c.sumocfg"}')
    (folder / "s.toml").write_text(text)
    return folder


def test_sumo_writes_no_output_that_its_files_request(sumo_folder, crowdveil):
    before = hash_files(sumo_folder)
    assert crowdveil("scenarios", "check", "s.toml").returncode == 0
    result = run("s.toml")
    assert result.facts["traffic_at_queries"][0]["departed"] > 0
    assert hash_files(sumo_folder) == before
    outside = [f"../own/{name}" for name in ("small.net.xml", "included.add.xml", "signs.xml")]
    assert result.facts["files_outside"] == outside
    [note] = [note for note in result.facts["traffic"]["notes"] if "not written" in note]
    for option in ("summary-output", "fcd-output", "statistic-output", "device.rerouting.output"):
        assert option in note
    for command in (("run",), ("scenarios", "check")):
        done = crowdveil(*command, "s.toml", "--untrusted")
        assert done.returncode == 2
        assert "traffic.engine: is refused with --untrusted" in done.stderr


@pytest.mark.parametrize("where", ["a.add.xml", "r.rou.xml", "own/small.net.xml"])
def test_sumo_opens_no_connection_that_its_files_request(sumo_folder, where):
    file = sumo_folder.parent / where if where.startswith("own") else sumo_folder / where
    text = file.read_text()
    end = text.rindex("</")
    sending = '<param key="device.ssm.file" value="127.0.0.1:9"/>' if "rou" in where or "net" in where else ""
    sending = f'<vType id="w">{sending}</vType>' if sending else '<edgeData id="s" file="localhost:9"/>'
    file.write_text(text[:end] + sending + text[end:])
    with pytest.raises(ScenarioError, match="must be a file: SUMO takes it for a host and port"):
        run("s.toml")


@unix
def test_symbolic_link_in_a_folder_of_recordings_is_refused(folder, crowdveil):
    (folder / "recorded").mkdir()
    (folder / "recorded" / "one.csv").symlink_to(folder.parent / "own" / "precious.txt")
    text = SCENARIO.replace("traffic = {vehicles = 20}", 'traffic = {engine = "trace", trace = "recorded"}')
    (folder / "s.toml").write_text(text)
    assert scenarios.load("s.toml").files_outside() == [folder.parent / "own" / "precious.txt"]
    done = crowdveil("run", "s.toml", "--untrusted")
    assert done.returncode == 2
    assert "traffic.trace[0]: must not lead outside" in done.stderr or "traffic.trace: must not lead" in done.stderr


def test_unchecked_plug_in_skips_only_checks_that_depend_on_it(folder, crowdveil):
    text = """
[[mechanisms]]
kind = "stranger.module:Two"
name = "two"
[aggregation]
kind = "per_round"
[channel]
outages = [{ server = "server:2", from_s = 0, to_s = 10 }]
[[refinements]]
kind = "clip"
mechanisms = ["two"]
[[refinements]]
kind = "norm_sub"
mechanisms = ["two", "no_privacy"]
[[attacks]]
kind = "link_rounds"
coalition = ["server:1", "server:2"]
"""
    (folder / "s.toml").write_text(SCENARIO + text)
    done = crowdveil("scenarios", "check", "s.toml")
    assert done.returncode == 0, done.stderr
    assert "mechanisms.two was not checked, nor was anything that depends on it" in done.stderr
    assert "mechanisms no_privacy\n" in done.stdout
    done = crowdveil("scenarios", "check", "s.toml", "--set", "cells.size_m=0.001")
    assert done.returncode == 2
    assert "cells" in done.stderr


DEEP = 5_000
NESTED = {
    "a table header": f"[{'.'.join('a' * DEEP)}]\nb = 1\n",
    "an array of tables": f"[[{'.'.join('a' * DEEP)}]]\nb = 1\n",
    "a key": f"[x]\n{'.'.join('a' * DEEP)} = 1\n",
    "a parameter of a class": f'[[mechanisms]]\nkind = "mine:Mine"\n{".".join("a" * DEEP)} = 1\n',
    "inline tables": f"[x]\nb = {'{a=' * DEEP}1{'}' * DEEP}\n",
    "lists": f"[x]\nb = {'[' * DEEP}{']' * DEEP}\n",
}


@pytest.mark.parametrize("name", NESTED)
def test_files_that_nest_deeply_are_refused_in_one_message(folder, crowdveil, name):
    (folder / "s.toml").write_text(SCENARIO + NESTED[name])
    (folder / "d.toml").write_text(f'scenario = "tiny"\n{NESTED[name]}')
    calls = [("run", "s.toml"), ("scenarios", "check", "s.toml"), ("sweep", "d.toml"), ("sweep", "s.toml")]
    for arguments in (*calls, ("evaluate", "--data", "tiny", "--mechanisms", "s.toml", "--epsilon", "1")):
        done = crowdveil(*arguments)
        assert done.returncode == 2, arguments
        assert "tables and lists must nest at most 50 deep" in done.stderr, arguments
        assert "Traceback" not in done.stderr


def test_overrides_and_manifests_that_nest_deeply_are_refused(folder, crowdveil):
    for value in (f"{'.'.join('a' * DEEP)}=1", f"x.b={'{a=' * DEEP}1{'}' * DEEP}"):
        done = crowdveil("run", "tiny", "--set", value)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
    (folder / "manifest.toml").write_text(NESTED["a table header"])
    with pytest.raises(InputError, match=r"manifest\.toml: cannot be read as a manifest: tables and lists must nest"):
        read_manifest(folder / "manifest.toml")
