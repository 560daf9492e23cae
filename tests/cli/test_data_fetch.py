"""`crowdveil data fetch` against a local server: files are complete and correct, or absent."""

import gzip
import hashlib
import socket
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from simulator.datasets import manifest as manifest_module

TEXT = b"a,b\n" + b"1,2\n" * 50_000


class Handler(BaseHTTPRequestHandler):
    """The response depends on the path."""

    def do_GET(self):
        path = self.path
        self.server.asked.append(path)
        if path == "/absent":
            self.send_error(404)
            return
        body = {"/wrong": TEXT[:-1] + b"!", "/endless": TEXT * 3}.get(path, TEXT)
        self.send_response(200)
        if path == "/zipped":
            body = gzip.compress(TEXT)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if path == "/dropped" else body)
        self.close_connection = True

    def log_message(self, *_):
        """Suppress log output."""


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def entry(name, url=None, contents=TEXT):
    return f"""
[[dataset.files]]
name = "{name}"
origin_path = "{name.removesuffix(".gz")}"
{"" if url is None else f'url = "{url}"'}
compression = "{"gzip" if name.endswith(".gz") else "none"}"
sha256 = "{hashlib.sha256(contents).hexdigest()}"
bytes = {len(contents)}
about = "letters"
"""


def head(folder):
    return f"""
[[dataset]]
folder = "{folder}"
title = "a {folder}"
owner_page = "https://example.org"
origin = "here"
licence = "for laughs"
citation = "N. Obody 2020"
attribution = "nobody"
obtain = "ask the mayor of the {folder}"
defects = ["none known"]
"""


@pytest.fixture
def fetch(call, monkeypatch, tmp_path, server):
    """`crowdveil data fetch` with file addresses given by the test."""
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.setenv("CROWDVEIL_DATA", str(root))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server.asked.clear()

    def fetched(text, *arguments):
        path = tmp_path / "manifest.toml"
        path.write_text(text)
        monkeypatch.setattr(manifest_module, "manifest_path", lambda: path)
        done = call("data", "fetch", *arguments)
        assert "Traceback" not in done.stderr
        done.message = [line for line in done.stderr.splitlines() if line.startswith("crowdveil: ")]
        return done

    fetched.root, fetched.server = root, server
    fetched.at = f"http://127.0.0.1:{server.server_port}"
    return fetched


def files_in(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def test_fetched_files_are_stored_as_the_manifest_describes(fetch):
    manifest = head("town") + entry("plain.csv", f"{fetch.at}/good") + entry("deep/packed.csv.gz", f"{fetch.at}/zipped")
    done = fetch(manifest, "town")
    assert (done.returncode, done.stdout, done.message) == (0, "", [])
    assert "licence: for laughs" in done.stderr
    assert "cite: N. Obody 2020" in done.stderr
    assert "plain.csv: ok (fetched)" in done.stderr
    found = files_in(fetch.root)
    assert set(found) == {"town/plain.csv", "town/deep/packed.csv.gz"}
    assert found["town/plain.csv"].read_bytes() == TEXT
    packed = found["town/deep/packed.csv.gz"].read_bytes()
    assert gzip.decompress(packed) == TEXT
    assert packed[3:8] == bytes(5), "neither a name nor a time: the same bytes every time"
    assert {path.stat().st_mode & 0o777 for path in found.values()} == {0o644}
    assert not list(fetch.root.rglob(".*"))


def test_correct_files_are_kept_without_a_request(fetch):
    manifest = head("town") + entry("plain.csv", f"{fetch.at}/good")
    fetch(manifest, "town")
    fetch.server.asked.clear()
    for arguments in (["town"], ["town", "--overwrite"]):
        done = fetch(manifest, *arguments)
        assert done.returncode == 0
        assert "plain.csv: ok (kept)" in done.stderr
    assert fetch.server.asked == []


def test_changed_file_is_kept_unless_overwrite_is_given(fetch):
    manifest = head("town") + entry("plain.csv", f"{fetch.at}/good")
    mine = fetch.root / "town" / "plain.csv"
    mine.parent.mkdir()
    mine.write_bytes(b"my own")
    done = fetch(manifest, "town")
    assert done.returncode == 2
    assert "--overwrite" in done.message[0]
    assert mine.read_bytes() == b"my own"
    assert fetch.server.asked == []
    assert fetch(manifest, "town", "--overwrite").returncode == 0
    assert mine.read_bytes() == TEXT


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("wrong", "is not the file that the manifest describes"),
        ("absent", "404"),
        ("dropped", "was interrupted"),
        ("endless", "sends more than the 200,004 bytes"),
    ],
)
@pytest.mark.parametrize("name", ["plain.csv", "packed.csv.gz"])
def test_failed_download_leaves_no_file_and_others_continue(fetch, path, words, name):
    manifest = head("town") + entry(name, f"{fetch.at}/{path}") + entry("other.csv", f"{fetch.at}/good", TEXT)
    done = fetch(manifest, "town")
    assert done.returncode == 2
    assert len(done.message) == 1
    assert f"town/{name}: {fetch.at}/{path}" in done.message[0]
    assert words in done.message[0]
    assert set(files_in(fetch.root)) == {"town/other.csv"}
    assert [path.name for path in (fetch.root / "town").iterdir()] == ["other.csv"]


@pytest.mark.parametrize("path", ["wrong", "dropped"])
def test_existing_file_survives_a_failed_download(fetch, path):
    mine = fetch.root / "town" / "plain.csv"
    mine.parent.mkdir()
    mine.write_bytes(b"my own")
    assert fetch(head("town") + entry("plain.csv", f"{fetch.at}/{path}"), "town", "--overwrite").returncode == 2
    assert mine.read_bytes() == b"my own"


def test_unreachable_server_gives_one_message_and_one_attempt(fetch, monkeypatch):
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"  # bound, but not listening
        tries = []
        connect = socket.socket.connect
        monkeypatch.setattr(socket.socket, "connect", lambda self, to: tries.append(to) or connect(self, to))
        manifest = head("town") + "".join(entry(f"{n}.csv", f"{nowhere}/{n}") for n in range(5))
        manifest += head("village") + entry("x.csv", f"{nowhere}/x")
        done = fetch(manifest, "town", "village")
    assert done.returncode == 2
    assert len(done.message) == 1
    assert "cannot be reached" in done.message[0]
    assert len(done.stderr.splitlines()) < 15
    assert len(tries) == 1
    assert files_in(fetch.root) == {}


def test_fetch_of_one_file_of_a_data_set(fetch):
    manifest = head("town") + entry("a.csv", f"{fetch.at}/good") + entry("b.csv", f"{fetch.at}/good")
    assert fetch(manifest, "town/b.csv", "town/b.csv").returncode == 0
    assert set(files_in(fetch.root)) == {"town/b.csv"}
    assert len(fetch.server.asked) == 1


def test_fetch_into_another_folder(fetch, monkeypatch, tmp_path):
    monkeypatch.delenv("CROWDVEIL_DATA")
    manifest = head("town") + entry("a.csv", f"{fetch.at}/good")
    assert fetch(manifest, "town", "--to", str(tmp_path / "new" / "place")).returncode == 0
    assert set(files_in(tmp_path / "new" / "place")) == {"town/a.csv"}
    (tmp_path / "file").touch()
    done = fetch(manifest, "town", "--to", str(tmp_path / "file"))
    assert done.returncode == 2
    assert "cannot be written" in done.message[0]


def test_file_without_address_is_explained_and_checked(fetch):
    manifest = head("town") + entry("by-hand.csv") + entry("a.csv", f"{fetch.at}/good")
    done = fetch(manifest, "town")
    assert done.returncode == 2
    assert "town/by-hand.csv: missing" in done.message[0]
    assert "To get it: ask the mayor of the town (owner: https://example.org)" in done.message[0]
    assert "a.csv: ok (fetched)" in done.stderr
    placed = fetch.root / "town" / "by-hand.csv"
    placed.write_bytes(TEXT[:-1])
    done = fetch(manifest, "town")
    assert done.returncode == 2
    assert "town/by-hand.csv: differs, expected sha256" in done.message[0]
    placed.write_bytes(TEXT)
    done = fetch(manifest, "town")
    assert done.returncode == 0
    assert "by-hand.csv: ok" in done.stderr


def test_data_set_without_checksums_is_explained(fetch):
    done = fetch(head("village"), "village")
    assert done.returncode == 2
    assert "no checksums are known. To get it: ask the mayor of the village" in done.message[0]


def test_missing_pooch_gives_an_install_hint(fetch, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    done = fetch(head("town") + entry("a.csv", f"{fetch.at}/good"), "town")
    assert done.returncode == 2
    assert "pip install 'crowdveil[data]'" in done.message[0]
    assert files_in(fetch.root) == {}


def test_file_in_r_format_needs_pyreadr(fetch, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyreadr", None)
    origin = hashlib.sha256(TEXT).hexdigest()
    text = entry("a.csv.gz", f"{fetch.at}/good", b"converted").replace(
        "sha256 =", f'conversion = "rds_to_csv"\norigin_sha256 = "{origin}"\nsha256 ='
    )
    done = fetch(head("town") + text.replace(f"bytes = {len(b'converted')}", "bytes = 400000"), "town")
    assert done.returncode == 2
    assert "pip install pyreadr" in done.message[0]
    assert files_in(fetch.root) == {}
