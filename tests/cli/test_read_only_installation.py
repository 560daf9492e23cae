"""An installation that another account made, with no folder that can be written: code is compiled in each process."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from installation import execute, programs

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
    yield lambda *arguments, **named: execute(*command, *arguments, cwd=own, env=env | named)
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
