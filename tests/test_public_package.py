"""The package `crowdveil`: its names, results loaded from a directory, and summaries."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from io import StringIO
from pathlib import Path

import geopandas as gpd
import pytest
from rich.console import Console

import crowdveil as cv
from simulator.pages.terminal_summary import print_summary
from simulator.results.formatting import LEAST_WIDTH

TABLES = ("cells", "estimates", "rounds", "servers", "scores", "claims", "attacks")


@pytest.fixture(scope="module")
def result():
    return cv.run("collusion", overrides={"traffic.vehicles": 200})


def test_all_names_can_be_imported_and_completed():
    assert dir(cv) == cv.__all__ == sorted(cv.__all__)
    assert all(getattr(cv, name) is not None for name in cv.__all__)
    with pytest.raises(AttributeError, match="module 'crowdveil' has no attribute 'sweeep'"):
        cv.sweeep  # noqa: B018 - the access is what is tested


def test_importing_the_package_imports_no_library():
    heavy = "{'numpy', 'pandas', 'numba', 'pydantic', 'simpy'}"
    code = f"import crowdveil, sys; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_special_functions_and_generated_roads_load_no_package_around_them():
    """Together they take a sixth of a run of `tiny` otherwise."""
    heavy = "{'scipy.special', 'scipy.linalg', 'scipy.optimize', 'scipy.sparse', 'numpy.f2py', 'networkx'}"
    code = f"import mechanisms.local, simulator.roads, sys; print(sorted({heavy} & set(sys.modules)))"
    code += "; from mechanisms.compiled import ndtr; import scipy.special; print(ndtr is scipy.special.ndtr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nTrue\n"


@pytest.mark.parametrize("file", ["simulator/__init__.py", "scenarios.py", "mechanisms/__init__.py"])
def test_a_users_own_module_in_the_way_is_named(file, tmp_path):
    own = tmp_path / file
    own.parent.mkdir(exist_ok=True)
    own.write_text("import crowdveil\n")
    says = f"{own} stands in the way of crowdveil's own package {file.split('.')[0].split('/')[0]!r}: rename it"
    for program in (["-c", "import crowdveil; crowdveil.run"], ["-m", "crowdveil", "run", "tiny"]):
        done = subprocess.run([sys.executable, *program], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == (1 if program[0] == "-c" else 2)
        assert says in done.stderr.splitlines()[-1]
    assert says in cv.obstacle(str(tmp_path))
    assert cv.obstacle(str(Path(cv.__file__).parent)) is None
    assert cv.obstacle() is None


def test_an_editable_installation_has_its_packages_elsewhere(tmp_path):
    shutil.copy(cv.__file__, tmp_path)
    path = os.pathsep.join([str(tmp_path), str(Path(cv.scenarios.__file__).parents[1])])
    code = "import crowdveil; print(crowdveil.__file__, crowdveil.obstacle(), crowdveil.run)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(f"{tmp_path / 'crowdveil.py'} None <function run")


def test_a_package_that_another_has_replaced_is_named(tmp_path):
    for name in cv.PACKAGES:
        (tmp_path / name).mkdir()
        shutil.copy(Path(cv.scenarios.__file__).parents[1] / name / "__init__.py", tmp_path / name)
    shutil.copy(cv.__file__, tmp_path)
    code = [sys.executable, "-c", "import crowdveil; print(crowdveil.obstacle())"]
    asked = partial(subprocess.run, code, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert asked().stdout == "None\n"
    (tmp_path / "scenarios" / "__init__.py").write_text('"""Somebody\'s scenarios."""\n')
    assert asked().stdout.startswith(f"{tmp_path / 'scenarios' / '__init__.py'} is not crowdveil's: another package")


def test_a_run_is_loaded_without_its_data_files(tmp_path):
    network = tmp_path / "net.csv"
    (tmp_path / "nodes.csv").write_text("node,x,y\n1,0,0\n2,400,0\n3,400,400\n")
    network.write_text("from,to,length_m,speed_mps\n1,2,400,9\n2,3,400,9\n3,1,600,9\n2,1,400,9\n3,2,400,9\n1,3,600,9\n")
    roads = {
        "source": "tables",
        "nodes": tmp_path / "nodes.csv",
        "edges": network,
        "crs": "EPSG:32632",
        "columns": {
            "node": "node",
            "x": "x",
            "y": "y",
            "from": "from",
            "to": "to",
            "length_m": "length_m",
            "speed_mps": "speed_mps",
        },
    }
    made = cv.Scenario(**{**cv.scenarios.load("tiny").tables(), "roads": roads})
    cv.run(made, out=tmp_path / "run")
    network.unlink()
    loaded = cv.load(tmp_path / "run")
    assert Path(loaded.scenario.roads.edges).name == "net.csv"
    with pytest.raises(cv.ScenarioError, match=r"roads\.edges: there is no such file"):
        cv.run(loaded.scenario)


def test_the_summary_is_that_of_the_terminal(result, tmp_path):
    text = StringIO()
    print_summary(result.save(tmp_path / "run"), Console(file=text, width=LEAST_WIDTH))
    *printed, last = text.getvalue().strip().split("\n")
    assert last == f"Results: {tmp_path / 'run'}"
    without_time = re.compile(r"(?m), in [\d.,]+ s$")
    assert without_time.sub("", result.summary()).split("\n")[:-1] == without_time.sub("", "\n".join(printed)).split(
        "\n"
    )


def test_estimates_are_joined_to_the_shapes_of_their_cells(result):
    joined = result.to_geodataframe()
    assert isinstance(joined, gpd.GeoDataFrame)
    assert joined.crs == "EPSG:4326"
    assert len(joined) == len(result.estimates)
    row = joined.sample(1, random_state=1).iloc[0]
    cell = result.cells.set_index("cell").loc[row["cell"]]
    assert row["name"] == cell["name"]
    assert row.geometry.equals(cell.geometry)
