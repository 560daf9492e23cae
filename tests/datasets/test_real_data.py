"""Floating-car data of SUMO, if available: the documented commands make the file of the manifest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulator.datasets.check import check_file
from simulator.datasets.manifest import folder_of, read_manifest

ROOT = Path(os.environ.get("CROWDVEIL_DATA", "no such folder"))


def need(folder, name):
    if not (ROOT / folder / name).is_file():
        pytest.skip(f"there is no {folder}/{name} under CROWDVEIL_DATA: real data is not part of the project")


@pytest.mark.slow
def test_floating_car_data_are_reproduced_by_the_documented_commands(tmp_path):
    need("sumo_fcd", "acosta_fcd_0_1800_10s.csv.gz")
    need("sumo", "acosta/acosta.rou.xml.gz")
    sumo = pytest.importorskip("sumo", reason="making floating cars needs eclipse-sumo")
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    shell = page.split("```sh\nsumo ", 1)[1].split("\n```", 1)[0].replace("\\\n", " ").split()
    program = page.split("```python\n# fcd.xml to CSV\n", 1)[1].split("\n```", 1)[0]
    acosta = folder_of("sumo") / "acosta"
    command = [str(Path(sumo.SUMO_HOME) / "bin" / "sumo"), *shell]
    command[command.index("fcd.xml")] = str(tmp_path / "fcd.xml")
    done = subprocess.run([*command, "--no-warnings"], cwd=acosta, capture_output=True, text=True, check=False)
    if "1.28.0" not in subprocess.run([command[0], "--version"], capture_output=True, text=True, check=False).stdout:
        pytest.skip("another version of SUMO drives otherwise")
    assert done.returncode == 0, done.stderr
    made = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    known = read_manifest().data_set("sumo_fcd")
    assert check_file(known, known.files[0], tmp_path).state == "ok"
