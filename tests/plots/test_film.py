"""Films of runs: as many frames as requested, vehicles where the engine had them, and clear refusals."""

import numpy as np
import pytest
import shapely
from pyproj import Transformer

import crowdveil as cv

pytest.importorskip("matplotlib")
from PIL import Image

from simulator.files.errors import InputError
from simulator.pages.plots.film import _vehicles_of, write_film


@pytest.fixture(scope="module")
def run():
    attack = {"kind": "link_rounds", "name": "server", "coalition": ["server:1"]}
    changes = {"fcd.every_s": 30, "fcd.formats": ["parquet"], "attacks": [attack], "traffic.vehicles": 300}
    return cv.run("tiny", overrides=changes)


def test_a_film_has_a_frame_for_each_interval_and_shows_what_a_coalition_guesses(run, tmp_path):
    guess = run.guesses.iloc[0]
    shown = {"campaign": guess["campaign"], "mechanism": guess["mechanism"], "every_s": 10}
    at_s = guess["time_s"]
    film, plain = tmp_path / "guess.gif", tmp_path / "plain.gif"
    assert write_film(run, film, coalition="server:1", from_s=at_s - 20, to_s=at_s + 20, **shown) == []
    write_film(run, plain, from_s=at_s - 20, to_s=at_s + 20, **shown)

    def coloured(file, frame):
        with Image.open(file) as image:
            assert (image.n_frames, image.width) == (4, 1280)
            image.seek(frame)
            red, _, blue = np.asarray(image.convert("RGB")).astype(int).transpose(2, 0, 1)
        return int((red - blue > 60).sum())

    assert coloured(plain, 3) == 0  # nothing else on the map is red
    ring, with_cell = coloured(film, 1), coloured(film, 3)
    assert ring < with_cell  # the cell is outlined from the query on
    assert coloured(film, 0) > 0 or run.entries[run.entries["vehicle"] == guess["vehicle"]]["time_s"].min() > at_s - 20


def test_vehicles_are_where_the_engine_had_them(run):
    crs = run.record.city.crs
    vehicles = _vehicles_of(run, crs)
    to_metres = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    for time_s, rows in run.fcd.table.assign(time_s=run.fcd.time_s).groupby("time_s"):
        number, xy = vehicles.at(time_s)
        order = np.argsort(number)
        moving = rows.sort_values("vehicle").set_index("vehicle").reindex(number[order])
        away = shapely.distance(
            shapely.points(*to_metres.transform(moving["lon"], moving["lat"])), shapely.points(xy[order])
        )
        assert np.isfinite(away).sum() == len(rows) > 0
        # An entry may be dated up to a tick before it is decided, and lanes lie beside the middle of their link.
        assert np.nanmax(away, initial=0.0) < 20.0, time_s


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("film.avi", {}, r"must end in .gif or .mp4; got 'film.avi'"),
        ("film.gif", {"from_s": 50, "to_s": 20}, "to_s must be above from_s"),
        ("film.gif", {"coalition": "server:9"}, "coalition: must be one of server:1"),
    ],
)
def test_what_cannot_be_filmed_is_refused_with_what_can(run, tmp_path, name, choices, message):
    with pytest.raises(InputError, match=message):
        write_film(run, tmp_path / name, **choices)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_the_whole_run_as_a_gif(run, tmp_path, call_in_process, monkeypatch):
    monkeypatch.setattr("simulator.pages.plots.film.FRAMES", 12)
    run.save(tmp_path / "run")
    done = call_in_process("figures", str(tmp_path / "run"), "--film", "--width", "40", cwd=tmp_path)
    with Image.open(tmp_path / "run" / "film.gif") as film:
        assert (film.n_frames, film.width) == (12, 188)
    assert "film.gif" in done.stdout


def test_a_film_in_mp4_needs_ffmpeg(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="MP4 needs the program ffmpeg"):
        write_film(run, tmp_path / "film.mp4")


def test_a_film_of_a_campaign_of_speeds_shows_the_mechanism_that_has_its_estimates(tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.pages.plots.film.FRAMES", 3)
    speeds = {"name": "speeds", "statistic": "mean_speed", "start_s": 200}
    run = cv.run(
        "tiny", overrides={"campaigns": [speeds], "mechanisms": [{"kind": "oue", "epsilon": 1}, {"kind": "no_privacy"}]}
    )
    write_film(run, tmp_path / "film.gif")
