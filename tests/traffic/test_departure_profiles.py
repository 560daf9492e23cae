"""Departure profiles: reading a file, and the part that a run covers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from simulator.files.errors import InputError
from simulator.traffic.demand.synthetic import Interval, draw_departures, read_profile, within_run

LEVEL = 1e-6


def written(tmp_path, text):
    file = tmp_path / "profile.csv"
    file.write_text(text)
    return file


def test_profile_hours_may_be_unsorted(tmp_path):
    profile = read_profile(written(tmp_path, "hour,vehicles\n8,300\n7,100\n9,0\n"))
    assert profile == (Interval(25200.0, 28800.0, 0.25), Interval(28800.0, 32400.0, 0.75))


def test_column_names_ignore_case_and_blanks(tmp_path):
    assert read_profile(written(tmp_path, "Hour, Share\n7,3\n")) == (Interval(25200.0, 28800.0, 1.0),)
    assert read_profile(written(tmp_path, "FROM_S,To_s,Trips\n0,60,3\n")) == (Interval(0.0, 60.0, 1.0),)


def test_profile_windows_from_parquet(tmp_path):
    file = tmp_path / "profile.parquet"
    pd.DataFrame({"from_s": [0, 100], "to_s": [50, 200], "share": [0.5, 1.5]}).to_parquet(file)
    assert read_profile(file) == (Interval(0.0, 50.0, 0.25), Interval(100.0, 200.0, 0.75))


def test_profile_is_cut_to_the_run():
    profile = (Interval(0.0, 100.0, 0.4), Interval(100.0, 200.0, 0.4), Interval(900.0, 1000.0, 0.2))
    assert within_run(profile, begin_s=50.0, duration_s=100.0) == [
        Interval(0.0, 50.0, 0.2),
        Interval(50.0, 100.0, 0.2),
    ]
    assert within_run(profile, begin_s=2000.0, duration_s=100.0) == []


def test_departures_from_a_profile(tmp_path):
    profile = read_profile(written(tmp_path, "hour,share\n0,1\n1,3\n"))
    windows = within_run(profile, begin_s=1800.0, duration_s=3600.0)
    leave = draw_departures(20_000, windows, duration_s=3600.0, rng=np.random.default_rng(1))
    assert stats.binomtest(int((leave < 1800).sum()), 20_000, 0.25).pvalue > LEVEL
    assert leave.max() < 3600


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("hour,share\n", "it holds no rows"),
        ("time,share\n1,2\n", "no column 'hour' for hour"),
        ("hour,part\n1,2\n", "no column 'share' for share"),
        ("hour,share\n24,2\n", "row 1: hour (column 'hour') must be a whole number, 0 to 23, got"),
        ("hour,share\n1.5,2\n", "row 1: hour (column 'hour') must be a whole number, 0 to 23, got"),
        ("hour,share\n1,-2\n", "row 1: share (column 'share') must be a finite number, 0 or more"),
        ("hour,share\n1,x\n", "row 1: share (column 'share') must be a finite number, 0 or more"),
        ("hour,share\n1,2\n1,3\n", "row 2: hour (column 'hour') must be of an interval that overlaps no other row's"),
        ("hour,share\n1,0\n", "shares must sum to more than 0"),
        ("hour,share\n1,1e308\n2,1e308\n", "and to a finite number, got inf"),
        ("from_s,to_s,share\n5,5,1\n", "row 1: to_s (column 'to_s') must be a finite number above from_s"),
        (
            "from_s,to_s,share\n5,9,1\n0,6,1\n",
            "row 1: to_s (column 'to_s') must be of an interval that overlaps no other row's",
        ),
        ("from_s,to_s,share\n-5,9,1\n", "row 1: from_s (column 'from_s') must be a finite number, 0 or more"),
    ],
)
def test_profile_faults(tmp_path, text, words):
    file = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_profile(file)
    assert words in "\n".join(caught.value.faults)
    assert str(file) in caught.value.faults[0]
