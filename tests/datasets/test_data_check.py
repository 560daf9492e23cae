"""Files in a data set's folder compared with the manifest: ok, missing, different, unlisted."""

import gzip
import hashlib

import pytest

from simulator.datasets.check import check_data_set
from simulator.datasets.manifest import DataFile, DataSet, data_root, folder_of
from simulator.files.errors import InputError

TEXT = b"a,b\n1,2\n"


def data_file(name, contents=TEXT, **more):
    compression = "gzip" if name.endswith(".gz") else "none"
    return DataFile(
        name=name,
        origin_path=name,
        compression=compression,
        sha256=hashlib.sha256(contents).hexdigest(),
        bytes=len(contents),
        about="letters",
        **more,
    )


def town(*files):
    words = dict.fromkeys(("title", "origin", "licence", "citation", "attribution", "obtain"), "words")
    return DataSet(folder="town", owner_page="none", defects=("none known",), files=files, **words)


KNOWN = town(data_file("plain.csv"), data_file("deep/packed.csv.gz"))


@pytest.fixture
def there(tmp_path):
    """Both files, correct."""
    (tmp_path / "town" / "deep").mkdir(parents=True)
    (tmp_path / "town" / "plain.csv").write_bytes(TEXT)
    (tmp_path / "town" / "deep" / "packed.csv.gz").write_bytes(gzip.compress(TEXT))
    return tmp_path


def states(root):
    return [(check.name, check.state) for check in check_data_set(KNOWN, root)]


def test_correct_files_are_ok(there):
    assert states(there) == [("plain.csv", "ok"), ("deep/packed.csv.gz", "ok")]


def test_any_gzip_of_the_same_contents_is_ok(there):
    (there / "town" / "deep" / "packed.csv.gz").write_bytes(gzip.compress(TEXT, compresslevel=0, mtime=7))
    assert states(there)[1] == ("deep/packed.csv.gz", "ok")


def test_absent_files_are_missing(tmp_path):
    assert states(tmp_path) == [("plain.csv", "missing"), ("deep/packed.csv.gz", "missing")]


def test_changed_file_message_has_expected_and_found_checksums(there):
    (there / "town" / "plain.csv").write_bytes(b"a,b\n1,3\n")
    check, _ = check_data_set(KNOWN, there)
    assert check.state == "differs"
    for contents in (TEXT, b"a,b\n1,3\n"):
        assert hashlib.sha256(contents).hexdigest() in str(check)
    assert str(check).startswith("town/plain.csv: differs, expected sha256")


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda whole: whole[:-9], "cannot be read"),
        (gzip.decompress, "cannot be read"),
        (lambda _: b"", "expected sha256"),
        (lambda whole: whole + b"junk", "cannot be read"),
        (lambda _: gzip.compress(TEXT[:-1]), "expected sha256"),
        (lambda _: gzip.compress(TEXT + b"3,4\n"), "found more"),
    ],
    ids=["cut", "plain", "empty", "junk", "short", "long"],
)
def test_damaged_gzip_differs(there, broken, words):
    path = there / "town" / "deep" / "packed.csv.gz"
    path.write_bytes(broken(path.read_bytes()))
    check = check_data_set(KNOWN, there)[1]
    assert check.state == "differs"
    assert words in check.detail


def test_decompression_bomb_is_not_read_whole(there, monkeypatch):
    path = there / "town" / "deep" / "packed.csv.gz"
    path.write_bytes(gzip.compress(b"0" * 200_000_000, compresslevel=1))
    seen = []
    read = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda self, size=-1: seen.append(size) or read(self, size))
    assert check_data_set(KNOWN, there)[1].state == "differs"
    assert sum(seen) < 4_000_000


def test_uncompressed_file_gets_a_hint(there):
    path = there / "town" / "deep" / "packed.csv.gz"
    path.rename(path.with_name("packed.csv"))
    missing, unlisted = check_data_set(KNOWN, there)[1:]
    assert (missing.state, unlisted.state) == ("missing", "unlisted")
    assert "compress it with gzip" in missing.detail


def test_extra_files_are_unlisted_and_hidden_ones_ignored(there):
    (there / "town" / "notes.txt").touch()
    (there / "town" / ".DS_Store").touch()
    assert states(there)[2:] == [("notes.txt", "unlisted")]


def test_data_folder_comes_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("CROWDVEIL_DATA", raising=False)
    with pytest.raises(InputError, match="is not set"):
        data_root()
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path / "none"))
    with pytest.raises(InputError, match="must name a folder"):
        folder_of("town")
    monkeypatch.setenv("CROWDVEIL_DATA", str(tmp_path))
    assert folder_of("town") == tmp_path / "town"
