"""The notebook city.ipynb is stored without outputs, and runs from its first cell to its last in a kernel."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "start" / "city.ipynb"


@pytest.fixture(scope="module")
def stored():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


def test_it_is_stored_without_outputs(stored):
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert len(code) >= 8
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


def text_of(cell, kind="text/plain"):
    """Return what a cell printed, and its results of one kind."""
    return "".join(output.get("text", "") or output.get("data", {}).get(kind, "") for output in cell.outputs)


@pytest.mark.slow
def test_it_runs(stored, tmp_path, monkeypatch):
    # The kernel imports this source tree, and writes nothing outside the temporary folder.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    client = NotebookClient(
        stored.copy(), timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    cells = [cell for cell in client.execute().cells if cell.cell_type == "code"]
    written = [output for cell in cells for output in cell.outputs if output.get("name") == "stderr"]
    assert not written, "a warning of any cell"
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs), "no map"
    printed = "\n".join(map(text_of, cells))
    for district in ("Harbour", "Heights"):
        assert district in printed
    assert "river-town, seed 1" in printed, "the summary is text also in a notebook"
    attacks = next(text_of(cell) for cell in cells if "result.attacks" in cell.source)
    alone, together = (line.split()[1:] for line in attacks.splitlines()[1:])
    assert alone[:3] == ["1", alone[1], alone[1]], "the first answers alone reveal nothing"
    assert together[0] == "2"
    assert float(together[2]) > 0.45
