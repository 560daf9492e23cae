"""The notebook city.ipynb: stored without outputs, runs from its first cell to its last, and a command opens a copy."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from installation import execute
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "start" / "city.ipynb"


@pytest.fixture(scope="module")
def stored():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The variables of a kernel or a server that imports this source tree, and writes in the temporary folder alone."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))


def test_it_is_stored_without_outputs(stored):
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert len(code) >= 8
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def text_of(cell, kind="text/plain"):
    """Return what a cell printed, and its results of one kind."""
    return "".join(output.get("text", "") or output.get("data", {}).get(kind, "") for output in cell.outputs)


class Watched(NotebookClient):
    """A client that keeps every bar that was shown while a cell ran."""

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] in {"display_data", "update_display_data"}:
            self.bars.setdefault(cell.id, []).append(msg["content"]["data"])
        return super().process_message(msg, cell, cell_index)


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
def test_it_runs(stored, tmp_path):
    resources = {"metadata": {"path": tmp_path}}
    client = Watched(stored.copy(), timeout=240, kernel_name="python3", resources=resources)
    client.bars = {}
    cells = [cell for cell in client.execute().cells if cell.cell_type == "code"]
    written = [output for cell in cells for output in cell.outputs if output.get("name") == "stderr"]
    assert not written, "a warning of any cell"
    printed = "\n".join(map(text_of, cells))
    assert "river-town, seed 1" in printed, "the summary is text also in a notebook"

    for name, last in (("cv.run(", "scores and claims"), ("cv.sweep(", "river-town: 3 of 3 points")):
        cell = next(cell for cell in cells if name in cell.source)
        bars = client.bars[cell.id]
        assert any(last in bar["text/plain"] for bar in bars), bars
        assert any('<progress value="' in bar["text/html"] for bar in bars), bars
        shown = [output for output in cell.outputs if output.output_type == "display_data"]
        assert [set(output.data.values()) for output in shown] == [{""}], "a bar is left"

    (shown,) = next(cell for cell in cells if cell.source == "result.map()").outputs
    assert shown.data["text/html"].startswith(
        '<iframe title="Map of river-town" sandbox="allow-scripts allow-downloads"'
    )
    assert shown.data["text/plain"].startswith("<map of <RunResult: river-town, seed 1, 8 queries, 7 cells")
    districts = next(text_of(cell) for cell in cells if "to_xarray" in cell.source)
    assert "Harbour" in districts
    assert "Heights" in districts
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs), "no figure"

    attacks = next(text_of(cell) for cell in cells if cell.source.startswith("result.attacks"))
    alone, together = (line.split()[1:] for line in attacks.splitlines()[1:])
    assert alone[:3] == ["1", alone[1], alone[1]], "the first answers alone reveal nothing"
    assert together[0] == "2"
    assert float(together[2]) > 0.45


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
def test_a_command_opens_a_copy_in_jupyterlab(tmp_path):
    settings = {"ServerApp": {"allow_root": True, "open_browser": False, "port": 0}}
    (tmp_path / "jupyter_config_dir").mkdir()
    (tmp_path / "jupyter_config_dir" / "jupyter_server_config.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "crowdveil", "notebook"]
    (tmp_path / "mine.ipynb").write_text("{}")
    for given, content in (([], NOTEBOOK.read_text("utf-8")), (["mine.ipynb"], "{}")):
        with subprocess.Popen([*command, *given], cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
            try:
                server = running_server(tmp_path / "jupyter_runtime_dir", process.pid)
                name = given[0] if given else "city.ipynb"
                query = f"{server['url']}api/contents/{name}?content=0&token={server['token']}"
                with urllib.request.urlopen(query, timeout=30) as answer:  # noqa: S310 - of a server on this machine
                    assert json.load(answer)["size"] == len(content.encode())
                assert (tmp_path / name).read_text("utf-8") == content
            finally:
                process.terminate()


def running_server(folder, number):
    """Return what a server of JupyterLab, a process of this number, writes about itself once it answers."""
    for _ in range(600):
        if (facts := folder / f"jpserver-{number}.json").is_file() and facts.read_text():
            return json.loads(facts.read_text())
        time.sleep(0.1)
    raise TimeoutError(f"no server in {folder}")


@pytest.mark.parametrize(
    ("arguments", "hidden", "words"),
    [
        ((), "jupyterlab", "a notebook needs JupyterLab: pip install 'crowdveil[notebook]'"),
        (("mine.py",), "", "FILE: must end in .ipynb; got mine.py"),
    ],
)
def test_a_notebook_that_cannot_be_opened_is_one_message(tmp_path, arguments, hidden, words):
    code = f"import sys; sys.modules[{hidden!r}] = None; sys.argv[0] = 'crowdveil'; import crowdveil; crowdveil.main()"
    ended = execute(sys.executable, "-c", code, "notebook", *arguments, status=2, cwd=tmp_path)
    assert ended == f"crowdveil: {words}\n"
    assert not [*tmp_path.iterdir()]
