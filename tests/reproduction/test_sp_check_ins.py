"""SP Fig 2 on synthetic check-ins, on the real ones if available, and on invalid files."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from simulator.papers.data import GOWALLA
from simulator.papers.page import write_page
from simulator.papers.published_results import find_entries
from simulator.papers.sampling_privacy import MILLION, read_check_ins

REAL = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"), GOWALLA)
VISITS = {7: 400, 3: 300, 9: 200, 5: 200, 8: 100, 1: 50}
(ENTRY,) = find_entries("sp-fig2")


def lines():
    """Each place is visited by people 0, 1, … in turn; place 7 by four people only."""
    out = []
    for place, visits in VISITS.items():
        for i in range(visits):
            user = i % 4 if place == 7 else i
            out.append(f"{user}\t2010-10-12T00:21:28Z\t40.6\t-73.7\t{place}")
    return out


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / GOWALLA
    path.parent.mkdir()
    path.write_bytes(gzip.compress("\n".join(lines()).encode()))
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    return path


def test_the_busiest_places_are_read(folder):
    seen = read_check_ins()
    assert seen.total == sum(VISITS.values())
    assert seen.places == (7, 3, 5, 9), "of equally busy places the lower number first"
    assert seen.counts.tolist() == [400, 300, 200, 200]
    assert seen.users.tolist() == [4, 300, 200, 200]
    assert seen.most == 100
    assert folder.is_file()


def test_ratios_equal_the_formulas(folder):
    assert folder.is_file()
    found = {row.key: row for row in ENTRY.reproduce(seed=1).rows}
    busiest, least = (np.rint(visits * MILLION / 1250) for visits in (400, 200))
    response = np.sqrt((busiest * 0.1344 + (MILLION - busiest) * 0.0384) / 0.64)
    assert found["lowest ratio, both bars 1.96 σ"].computed == pytest.approx(response / np.sqrt(3 * busiest))
    response = np.sqrt((least * 0.1344 + (MILLION - least) * 0.0384) / 0.64)
    uneven = 1.288 * response / np.sqrt(least * 0.55 / 0.45)
    assert found["highest ratio, bars of 2 σ and 2.576 σ, as in Fig 6"].computed == pytest.approx(uneven)


BROKEN = {
    "cut short": lambda whole: whole[: len(whole) // 2],
    "not compressed": gzip.decompress,
    "empty": lambda _: gzip.compress(b""),
    "nothing at all": lambda _: b"",
    "too few columns": lambda _: gzip.compress(b"1\t2\n3\t4\n"),
    "another separator": lambda whole: gzip.compress(gzip.decompress(whole).replace(b"\t", b",")),
    "words for numbers": lambda whole: gzip.compress(gzip.decompress(whole).replace(b"\t7", b"\tseven")),
    "too few places": lambda _: gzip.compress(b"1\tt\t1\t2\t3\n"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_invalid_check_in_file_is_named_in_the_skip_reason(folder, case):
    folder.write_bytes(BROKEN[case](folder.read_bytes()))
    done = ENTRY.reproduce(seed=1)
    assert done.rows == []
    assert str(folder) in done.skipped
    page = write_page([done], folder.with_name("page.html"), seed=1).read_text(encoding="utf-8")
    assert GOWALLA in page
    assert str(folder.parents[1]) not in page


def test_missing_data_is_a_skip_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    assert f"no file {GOWALLA} under CROWDVEIL_DATA = {tmp_path}" in ENTRY.reproduce(seed=1).skipped
    monkeypatch.delenv("CROWDVEIL_DATA")
    assert "is not set" in ENTRY.reproduce(seed=1).skipped
    (tmp_path / GOWALLA).mkdir(parents=True)
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    assert GOWALLA in ENTRY.reproduce(seed=1).skipped


@pytest.mark.skipif(not REAL.is_file(), reason="Gowalla's check-ins are not under CROWDVEIL_DATA")
def test_the_real_check_ins():
    seen = read_check_ins()
    assert seen.total == 138_957
    assert seen.counts.tolist() == [1680, 1654, 1089, 1089]
    found = {row.key: row for row in ENTRY.reproduce(seed=1).rows}
    fair, uneven = "both bars 1.96 σ", "bars of 2 σ and 2.576 σ, as in Fig 6"
    computed = [found[f"{end} ratio, {bars}"].computed for bars in (fair, uneven) for end in ("lowest", "highest")]
    assert computed == pytest.approx([1.305, 2.527, 1.681, 3.255], abs=0.001)
