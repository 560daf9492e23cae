"""Figures for papers: complete sets of SVG, PDF and PNG files of the stated width, the same bytes each time."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import crowdveil as cv

pytest.importorskip("matplotlib")
from PIL import Image

from simulator.files.errors import InputError
from simulator.pages.plots import run_plots
from simulator.pages.plots.files import formats_of, width_in_inches, write_figures

SVG = "{http://www.w3.org/2000/svg}"
MECHANISMS = ("sampling", "randomized")
NAMES = {
    "map-truth", "errors", "growth", "privacy", "privacy-delta", "traffic",
    *(f"map-{name}-{quantity}" for name in MECHANISMS for quantity in ("estimate", "error")),
}  # fmt: skip


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("figures") / "tiny"
    scenario = cv.scenarios.load("tiny")
    mechanisms = [
        section.model_dump(exclude_unset=True) for section in scenario.mechanisms if section.name in MECHANISMS
    ]
    cv.run(scenario.with_({"mechanisms": mechanisms}), out=path)
    return path


def command(*words):
    env = {**os.environ, "PYTHONHASHSEED": "2"}
    line = [sys.executable, "-m", "simulator.cli", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def single(directory, tmp_path_factory):
    folder = tmp_path_factory.mktemp("single") / "out"
    data = cv.load(directory)
    names, notes = write_figures(data, folder, width_in=3.5, formats=["svg", "pdf"], overwrite=False)
    assert (set(names), notes) == (NAMES, [])
    return folder


def test_every_figure_of_the_run_is_written_in_both_formats(single):
    assert {path.name for path in single.iterdir()} == {
        f"{name}.{suffix}" for name in NAMES for suffix in ("svg", "pdf")
    }


def root_of(path):
    return ET.parse(path).getroot()  # noqa: S314 - written by this test


def test_pages_have_the_width_of_a_column(single):
    for path in single.glob("*.svg"):
        assert root_of(path).get("width") == "252pt", path  # 3.5 inches
    for path in single.glob("*.pdf"):
        box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) [\d.]+ \]", path.read_bytes())
        assert float(box[1]) == pytest.approx(252.0, abs=0.01), path


def test_text_stays_text_of_a_readable_size(single):
    sizes = set()
    for path in single.glob("*.svg"):
        texts = [text for text in root_of(path).iter(f"{SVG}text") if "".join(text.itertext()).strip()]
        assert texts, path
        for part in (part for text in texts for part in text.iter()):  # formulas have parts of their own
            sizes |= {float(size) for size in re.findall(r"(?:font: |font-size: ?)([\d.]+)px", part.get("style", ""))}
    assert sorted(sizes)[:2] == [4.9, 6.664]  # exponents, and headings of rows; all else has 7 points and more
    words = {"".join(text.itertext()) for text in root_of(single / "errors.svg").iter(f"{SVG}text")}
    assert {"Sampling Privacy", "RMSE of a cell, vehicles"} <= words
    for path in single.glob("*.pdf"):
        content = path.read_bytes()
        assert b"/FontFile2" in content, path  # TrueType, embedded
        assert b"/Type3" not in content


@pytest.mark.slow
def test_files_are_the_same_each_time_and_name_no_date(directory, single, tmp_path):
    done = command("figures", directory, "--out", tmp_path / "again")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path / 'again'}: {len(NAMES)} figures, each as svg, pdf\n"
    for path in single.iterdir():
        content = path.read_bytes()
        assert content == (tmp_path / "again" / path.name).read_bytes(), path.name
        assert not re.search(rb"CreationDate|dc:date|\b20[2-9]\d-\d\d-\d\d", content), path.name


def test_colours_are_those_of_the_report_in_every_figure(single):
    blue, orange = "#0072b2", "#d55e00"
    for name in ("errors", "growth", "privacy", "privacy-delta"):
        text = (single / f"{name}.svg").read_text(encoding="utf-8").lower()
        assert blue in text, name
        assert orange in text, name


def test_other_widths_and_formats(directory, tmp_path, monkeypatch):
    data = cv.load(directory)
    monkeypatch.setattr(run_plots.RunPlots, "maps", [])  # fewer figures
    write_figures(data, tmp_path / "png", width_in=width_in_inches("100"), formats=["png"], overwrite=False)
    with Image.open(tmp_path / "png" / "traffic.png") as image:
        assert image.width == int(100 / 25.4 * 300)
    assert width_in_inches("double") == 7.16
    assert width_in_inches("88.9mm") == pytest.approx(3.5)
    assert formats_of("pdf,svg,pdf") == ["pdf", "svg"]


def test_wrong_options_are_refused():
    for width in ("wide", "nan", "10"):
        with pytest.raises(InputError) as caught:
            width_in_inches(width)
        assert str(caught.value) == f"width (--width): must be single, double, or 40 to 500 millimetres; got {width!r}"
    with pytest.raises(InputError, match=r"^format \(--format\): must be among svg, pdf, png; got 'eps'$"):
        formats_of("svg,eps")


def test_existing_figures_are_replaced_only_on_request(directory, single):
    before = {path: path.stat().st_mtime_ns for path in single.iterdir()}
    with pytest.raises(InputError, match=r"overwrite them \(--overwrite\), or name another"):
        write_figures(cv.load(directory), single, width_in=3.5, formats=["svg"], overwrite=False)
    assert {path: path.stat().st_mtime_ns for path in single.iterdir()} == before


def test_maps_of_other_campaigns_are_written_on_request(directory, tmp_path, monkeypatch):
    maps = [("first", "sampling", "truth"), ("first", "sampling", "error"), ("second", "sampling", "truth")]
    monkeypatch.setattr(run_plots.RunPlots, "maps", maps)
    drawn = []
    monkeypatch.setattr(
        run_plots.RunPlots, "map", lambda self, *_, campaign, **__: drawn.append(campaign) or self.traffic()
    )
    for every in (False, True):
        notes = write_figures(
            cv.load(directory), tmp_path / str(every), width_in=3.5, formats=["svg"], overwrite=False, every=every
        )[1]
        note = "maps are for campaign first; --all writes maps for all 2 campaigns"
        assert notes == ([] if every else [note])
    assert drawn == ["first", "first", "first", "first", "second"]
    assert (tmp_path / "True" / "map-second-truth.svg").is_file()


def test_nothing_is_left_if_a_figure_fails(directory, tmp_path, monkeypatch):
    def fail(*_args, **_options):
        raise InputError(["no"])

    monkeypatch.setattr(run_plots.RunPlots, "maps", [])
    monkeypatch.setattr(run_plots.RunPlots, "traffic", fail)  # the last figure
    with pytest.raises(InputError):
        write_figures(cv.load(directory), tmp_path / "out", width_in=3.5, formats=["svg"], overwrite=False)
    assert list(tmp_path.iterdir()) == []


def test_letters_of_no_installed_font_are_a_note_and_stay_text_in_svg(directory, tmp_path, monkeypatch):
    monkeypatch.setattr(run_plots.RunPlots, "maps", [])
    data = cv.load(directory)
    data = data.with_tables(record=data.record.model_copy(update={"called": ("𓀀", "𓀀𓀁")}))
    _, notes = write_figures(data, tmp_path / "out", width_in=3.5, formats=["svg"], overwrite=False)
    assert notes == ["no installed font has every letter of the labels, and PDF and PNG show boxes for them"]
    assert "𓀀𓀁" in (tmp_path / "out" / "traffic.svg").read_text(encoding="utf-8")
