"""Invalid SUMO route files: faults with file, line and rule, and no other exception."""

import gzip

import numpy as np
import pytest
from zoned_roads import roads_of

from simulator.files.errors import InputError
from simulator.sumo.routes import read_sumo_routes
from simulator.traffic.clock import Clock

ROADS = roads_of([("a", "b", {"sumo_edge": "ab"}), ("b", "a", {"sumo_edge": "ba"})])
VEHICLE = '<vehicle id="v" depart="0"><route edges="ab"/></vehicle>'


def read(file, *, net=None, **options):
    return read_sumo_routes([file], ROADS, net=net, clock=Clock(1.0), rng=np.random.default_rng(1), **options)


def faults_of(tmp_path, text, **options):
    file = tmp_path / "demand.rou.xml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read(file, **options)
    assert str(file) in "\n".join(caught.value.faults)
    return "\n".join(caught.value.faults)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('<vehicle depart="0"><route edges="ab"/></vehicle>', "line 2: a vehicle must have an id"),
        ('<vehicle id="v"><route edges="ab"/></vehicle>', "line 2: vehicle 'v': depart must be seconds, 0 or more"),
        ('<vehicle id="v" depart="-3"><route edges="ab"/></vehicle>', "depart must be seconds, 0 or more, got '-3'"),
        ('<vehicle id="v" depart="nan"><route edges="ab"/></vehicle>', "depart must be seconds, 0 or more, got 'nan'"),
        ('<vehicle id="v" depart="soon"><route edges="ab"/></vehicle>', "depart must be seconds, 0 or more, got 's"),
        (VEHICLE + "\n" + VEHICLE, "line 3: vehicle 'v': another vehicle, trip or flow has this id"),
        ('<vehicle id="v" depart="0"/>', "line 2: vehicle 'v' must have a route, or from and to"),
        ('<vehicle id="v" depart="0"><route edges=" "/></vehicle>', "line 2: a route must have at least one edge"),
        ('<vehicle id="v" depart="0"><route/></vehicle>', "line 2: a route must have edges, got nothing"),
        ('<vehicle id="v" depart="0" route="r"/>', "line 2: vehicle 'v': there is no route with the id 'r'"),
        ('<route id="r" edges="ab"/>\n<route id="r" edges="ba"/>', "line 3: another route has the id 'r'"),
        ('<trip id="t" depart="0" from="ab" to="zz"/>', "no vehicle of 1 can be driven on these roads"),
        ('<vehicle id="v" depart="1e300"><route edges="ab"/></vehicle>', "must be before tick 2³¹, got second 1e+300"),
        ("", "no vehicle of 0 can be driven on these roads"),
    ],
)  # fmt: skip
def test_route_file_faults(tmp_path, body, words):
    assert words in faults_of(tmp_path, f"<routes>\n{body}\n</routes>")


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ('period="0"', "line 2: flow 'f': period must be above 0, or exp(a rate), got '0'"),
        ('period="exp(x)"', "period must be above 0, or exp(a rate), got 'exp(x)'"),
        ('probability="-1"', "probability must be a number, 0 or more, got '-1'"),
        ('begin="x" period="1"', "begin must be a number, 0 or more, got 'x'"),
        ('end="9" number="1e12"', "there must be at most 2,147,483,647 vehicles"),
        ('end="9" period="1e-300"', "there must be at most 2,147,483,647 vehicles"),
    ],
)
def test_flow_faults_before_sumo_draws(tmp_path, rates, words):
    routes = f"<routes>\n<flow id='f' from='ab' to='ab' {rates}/>\n</routes>"
    assert words in faults_of(tmp_path, routes, net=tmp_path / "never read", duration_s=100.0)


def test_flow_in_a_run_without_an_end_is_refused(tmp_path):
    routes = '<routes><flow id="f" from="ab" to="ab" period="1"/></routes>'
    assert "a flow without an end needs a run that ends" in faults_of(tmp_path, routes, net=tmp_path / "never read")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("once upon a time", "line 1: not well-formed XML"),
        ("<routes>", "not well-formed XML: no element found"),
        (f"<routes>\n{VEHICLE}", "line 2: not well-formed XML"),
        ("<net/>", "line 1: the outermost element must be one of routes, additional,"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><routes/>', "line 1: must not declare a document type or entities"),
        ('<?xml version="1.0" encoding="klingon"?><routes/>', "line 1: "),
        (b"\x1f\x8b\x08 no gzip", "cannot be read"),
        (gzip.compress(f"<routes>{VEHICLE * 99}</routes>".encode(), mtime=0)[:-30], "cannot be read"),
        (b"\x00\x01\x02\xff", "not well-formed XML"),
    ],
)
def test_invalid_route_files_are_refused(tmp_path, text, words):
    assert words in faults_of(tmp_path, text)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.xml: no such file"):
        read(tmp_path / "none.xml")


def test_gzip_bomb_is_refused(tmp_path, monkeypatch):
    for module in ("resources", "compressed_io"):
        monkeypatch.setattr(f"simulator.files.{module}.NEGLIGIBLE", 1)
        monkeypatch.setattr(f"simulator.files.{module}.available_nbytes", lambda: 1 << 20)
    assert "memory needed to hold the" in faults_of(tmp_path, gzip.compress(b"<routes>" + b" " * (1 << 25)))


def test_unterminated_tag_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.files.xml_elements.LONGEST_BYTES", 1 << 21)
    assert "must have a tag in every 2,097,152 bytes" in faults_of(tmp_path, b'<routes x="' + b"y" * (1 << 23))


def test_share_without_vehicles_is_refused(tmp_path):
    words = "a share of 1e-12 of 1 vehicle leaves none"
    assert words in faults_of(tmp_path, f"<routes>{VEHICLE}</routes>", share=1e-12)
