"""Files are decompressed by name or first bytes, within limits, and each failure is one fault."""

import bz2
import gzip
import lzma
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulator.files.compressed_io import begin_of, chunks_of, opened, raw_lines, unpacked_name
from simulator.files.errors import InputError
from simulator.files.messages import counted
from simulator.files.resources import permitting
from simulator.files.tables import Table

PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def read(path):
    with opened(path) as stream:
        return stream.read()


def fault_of(path, reading=read):
    with pytest.raises(InputError) as caught:
        reading(path)
    (fault,) = caught.value.faults
    assert fault.startswith(f"{path}: ")
    return fault.removeprefix(f"{path}: ")


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("content", [b"", b"one\ntwo\n", bytes(range(256)) * 9000], ids=["empty", "text", "long"])
def test_compression_is_detected_by_name_or_first_bytes(tmp_path, suffix, content):
    named, other = tmp_path / f"t.csv{suffix.upper()}", tmp_path / "t.csv"
    for path in (named, other):
        path.write_bytes(PACKED[suffix](content))
        assert read(path) == b"".join(chunks_of(path)) == content
        assert b"".join(raw_lines(path)) == content
        assert begin_of(path) == content[:65_536]
        assert unpacked_name(path) == "t.csv"


@pytest.mark.parametrize("content", [b"", b"BZh, 9\n1,2\n", b"BZ", b"\xfd7z"])
def test_uncompressed_content_is_unchanged(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert read(path) == content


@pytest.mark.parametrize(("suffix", "name"), [(".gz", "gzip"), (".bz2", "bzip2"), (".xz", "xz")])
def test_damaged_archive_gives_one_fault(tmp_path, suffix, name):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(b"plain text")
    assert fault_of(path) == f"cannot be read: its name ends in {suffix}, but it is not {name}"
    whole = PACKED[suffix](bytes(range(256)) * 40)
    path.write_bytes(whole[:-9])
    assert fault_of(path) == f"cannot be read: it is incomplete: its {name} ends early"
    assert begin_of(path) in (b"", bytes(range(256)) * 40)
    path.write_bytes(whole[:-6] + b"\xff" * 6)
    assert fault_of(path).startswith(f"cannot be read: its {name} is damaged: ")


def test_missing_file_folder_and_non_text_give_one_fault(tmp_path):
    assert fault_of(tmp_path / "none") == "no such file"
    assert fault_of(tmp_path) == "cannot be read: Is a directory"
    assert begin_of(tmp_path) == b""
    (tmp_path / "t").write_bytes(b"caf\xe9 noir")
    assert fault_of(tmp_path / "t", lambda path: read(path) and decoded(path)) == (
        "must be text in UTF-8: invalid continuation byte"
    )


def decoded(path):
    with opened(path) as stream:
        return stream.read().decode()


@pytest.mark.parametrize("suffix", PACKED)
def test_decompression_bomb_is_refused_by_the_memory_it_needs(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(PACKED[suffix](bytes(1 << 22)))
    with opened(path, times=8.0) as stream:
        assert len(stream.read()) == 1 << 22
    monkeypatch.setattr("simulator.files.resources.available_nbytes", lambda: 1e6)
    monkeypatch.setattr("simulator.files.compressed_io.available_nbytes", lambda: 1e6)
    for module in ("resources", "compressed_io"):
        monkeypatch.setattr(f"simulator.files.{module}.NEGLIGIBLE", 1)
    fault = fault_of(path, lambda path: read_whole(path, times=8.0))
    assert fault.startswith("memory needed to hold the ")
    assert "available are 1 MB; to run anyway: --yes" in fault
    assert len(read_whole(path, times=0.2)) == 1 << 22, "as much as is available is read"
    assert len(read_whole(path, times=0.0)) == 1 << 22, "a reader that keeps nothing is not refused"
    with permitting(assume_yes=True):
        assert len(read_whole(path, times=8.0)) == 1 << 22
    plain = tmp_path / "plain"
    plain.write_bytes(bytes(1 << 22))
    assert "memory needed to hold its 4.19 MB is about 33.6 MB" in fault_of(
        plain, lambda path: read_whole(path, times=8.0)
    )


def read_whole(path, *, times):
    with opened(path, times=times) as stream:
        return stream.read()


def test_line_length_is_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("simulator.files.compressed_io.LONGEST_BYTES", 10)
    path = tmp_path / "t"
    path.write_bytes(b"123456789\n123456789\n1234567890")
    assert len(list(raw_lines(path))) == 3
    path.write_bytes(b"123456789\n1234567890\n1")
    fault = fault_of(path, lambda path: list(raw_lines(path)))
    assert fault == "line 2: a line must not be longer than 10 bytes; is this text?"


@pytest.mark.parametrize("ends", [b"\n", b"\r"])
def test_line_reader_refuses_overlong_lines(tmp_path, monkeypatch, ends):
    monkeypatch.setattr("simulator.files.compressed_io.LONGEST_BYTES", 1 << 21)
    path = tmp_path / "t.csv"
    for lines in (b"1,2" * 300_000 + ends, b"a,b" + ends):
        path.write_bytes(lines * ((1 << 24) // len(lines)))
        with opened(path, lines=True) as stream:
            assert stream.read() == path.read_bytes()
    path.write_bytes(b"a,b" + ends + b"1" * (1 << 22))
    assert len(read(path)) > 1 << 22
    with pytest.raises(InputError) as caught, opened(path, lines=True) as stream:
        stream.read()
    assert caught.value.faults == [f"{path}: a line must not be longer than 2,097,152 bytes; is this text?"]
    with pytest.raises(InputError, match="a line must not be longer than"):
        Table.from_file(path, columns={"a": "a"}, text=())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), suffix=st.sampled_from(sorted(PACKED)), named=st.booleans())
def test_damaged_files_raise_only_input_errors(tmp_path, data, suffix, named):
    whole = bytearray(PACKED[suffix](b"vehicle,time\n" * 50))
    for _ in range(data.draw(st.integers(0, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / (f"t{suffix}" if named else "t")
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        assert isinstance(read(path), bytes)
    except InputError as error:
        assert len(error.faults) == 1  # noqa: PT017 - either contents or an InputError


@pytest.mark.parametrize("key", ["", "roads.flows"])
def test_errors_list_one_fault_per_line_and_can_be_pickled(key):
    error = InputError((fault for fault in ("a.csv: row 1: no", "a.csv: row 2: no")), key)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    for one in (error, again, type(error)(*error.args)):
        assert (one.faults, str(one)) == (
            ["a.csv: row 1: no", "a.csv: row 2: no"],
            "a.csv: row 1: no\na.csv: row 2: no",
        )
    assert again.key == key


def test_fault_is_one_line_of_limited_length():
    (fault,) = InputError([f"a.csv: row 1: speed must be a number, got '{'x' * 5_000}'\n\x1b[2J and on"]).faults
    assert fault.startswith("a.csv: row 1: speed must be a number, got 'xxx")
    assert fault.endswith("… and on")
    assert len(fault) < 400
    assert len(str(InputError(["a b " * 5_000]))) == 2_000
    assert str(InputError(["one", "two"])) == "one\ntwo"


@pytest.mark.parametrize(
    ("number", "words", "expected"),
    [
        (0, ("link",), "0 links"),
        (1, ("link",), "1 link"),
        (2950, ("link",), "2,950 links"),
        (1, ("fix", "fixes"), "1 fix"),
        (12, ("fix", "fixes"), "12 fixes"),
        (0, ("link leads", "links lead"), "0 links lead"),
        (np.int64(1), ("row",), "1 row"),
        (1.0 + 1e-15, ("trip",), "1 trip"),
        (1.5, ("trip",), "1.5 trips"),
        (1234.5, ("trip",), "1,234.5 trips"),
        (float("inf"), ("trip",), "inf trips"),
    ],
)
def test_noun_agrees_with_its_number(number, words, expected):
    assert counted(number, *words) == expected
