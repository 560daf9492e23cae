"""An installation that this account cannot write, as the recipe of a container makes one."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from installation import ROOT, execute, programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX"),
]
NOBODY = 65534
ANOTHER = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
READS_ALL = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
"""The interpreter of the tests may lie in a folder that another account cannot search."""
NO_RIGHTS = ("--bounding-set=-all", "--inh-caps=-all")
"""The same account, held to the permissions of files."""


@pytest.fixture(scope="module")
def call(installed, tmp_path_factory):
    """Yield a function that calls an installed command line as an account that may not write the installation.

    It has no home that can be written.
    """
    folder = tmp_path_factory.mktemp("read_only")
    shutil.copytree(installed.parent, folder / "venv", symlinks=True)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    folder.chmod(0o555)
    own = Path(tempfile.mkdtemp())  # another account cannot search the folders of pytest
    python = programs(folder) / "python"
    account = _account(python)
    if ANOTHER[0] in account:
        os.chown(own, NOBODY, NOBODY)
    hidden = ("PYTHON", "CROWDVEIL", "NUMBA", "MPL", "XDG", "HOME", "COV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    env |= {"HOME": str(folder / "none"), "TMPDIR": str(own)}
    command = (*account, python, "-m", "crowdveil")

    def called(*arguments, program=command, **named):
        return execute(*program, *arguments, cwd=own, env=env | named)

    called.account, called.folder, called.own = account, folder, own
    yield called
    shutil.rmtree(own)


def _account(python):
    """Return what comes before a command so that it runs as an account that may not write the files of the tests."""
    if os.geteuid() != 0:
        return ()
    for options in (ANOTHER, (*ANOTHER, *READS_ALL), NO_RIGHTS):
        command = ["setpriv", *options, python, "-c", "import numba, crowdveil, simulator.files.errors"]
        if subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0:
            return ("setpriv", *options)
    pytest.skip("setpriv gives no account that can read the packages and may not write them")


def test_commands_work_where_nothing_can_be_kept(call):
    call("run", "tiny", "--out", "kept")
    call("report", "kept")
    call("figures", "kept", "--format", "svg")


def test_named_folder_keeps_the_code(call, tmp_path):
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o755)
    call("scenarios", "check", "tiny", NUMBA_CACHE_DIR=str(tmp_path / "kernels"))  # compiles few
    assert list((tmp_path / "kernels").rglob("*.nbi"))


@pytest.fixture(scope="module")
def recipe():
    """The instructions of the recipe of a container, each with its text, in order."""
    text = (ROOT / "docs" / "how" / "cluster" / "Containerfile").read_text(encoding="utf-8")
    lines = re.sub(r"(?m)^#.*\n|\\\n", "", text).splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line]


def test_a_container_is_made_of_pinned_versions_and_runs_as_no_root(recipe):
    names = [name for name, _ in recipe]
    assert [name for name in names if name in {"FROM", "ADD", "RUN", "USER"}] == ["FROM", "RUN", "USER"]
    assert re.fullmatch(r"docker\.io/library/python:3\.1[1-4]\.\d+-slim-[a-z]+", dict(recipe)["FROM"])
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", dict(recipe)["USER"])
    assert re.findall(r"pip install .*? -c (\S+) '/src\[plot\]'", dict(recipe)["RUN"]) == ["/src/constraints.txt"]
    assert not re.search(r"curl|wget|apt|sudo|http", dict(recipe)["RUN"])


def test_the_files_that_a_container_copies_make_the_wheel(recipe, tmp_path):
    for text in (text for name, text in recipe if name == "COPY"):
        *files, target = text.split()
        for file in files:
            copy = tmp_path / target.lstrip("/") / (Path(file).name if target.endswith("/") else "")
            copy.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / file).is_dir() else shutil.copy2)(ROOT / file, copy)
    execute(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=tmp_path / "src")
    assert len([*tmp_path.glob("crowdveil-*.whl")]) == 1


def test_a_container_runs_as_its_recipe_says(recipe, call):
    """The commands of its start, for an account without rights, with other folders for /opt and /tmp."""
    opt, tmp = call.folder / "opt", call.own / "tmp"

    def here(text):
        places = {"/opt/crowdveil": programs(call.folder).parent, "/opt": opt, "/tmp": tmp}  # noqa: S108 - a key
        return re.sub("|".join(places), lambda found: str(places[found[0]]), text)

    variables = dict(re.findall(r"(\w+)=(\S*)", here(" ".join(text for name, text in recipe if name == "ENV"))))
    variables["NUMBA_CPU_FEATURES"] = ""
    start = [*call.account, *json.loads(here(dict(recipe)["ENTRYPOINT"]))]
    call.folder.chmod(0o755)
    tmp.mkdir()
    for folder in (call.own, tmp):
        folder.chmod(0o777)
    made = execute(
        programs(call.folder) / "crowdveil", "run", "tiny", "--quiet", "--out", tmp / "first", cwd=tmp,
        env=os.environ | variables | {"NUMBA_CACHE_DIR": str(opt / "kernels")},
    )  # fmt: skip
    assert made == ""
    for path in (opt, *opt.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222 | 0o444 | (0o111 if path.is_dir() else 0))
    call.folder.chmod(0o555)
    call("run", "tiny", "--quiet", "--out", "contained", program=start, **variables)
    assert (call.own / "contained" / "report.html").is_file()
    kept, copied = ({path.name for path in folder.rglob("*.nb[ci]")} for folder in (opt, tmp / "kernels"))
    assert kept == copied, "a kernel was compiled again"
    assert "Usage: crowdveil" in call(*json.loads(dict(recipe)["CMD"]), program=start, **variables)
