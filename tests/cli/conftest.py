"""The command line, called in this process."""

import subprocess
import sys

import pytest

from simulator.cli import main


@pytest.fixture
def call_in_process(monkeypatch, capfd):
    """The same command line in this process, ten times faster, for the many error cases."""

    def call(*arguments, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "path", sys.path.copy())
        monkeypatch.setattr(sys, "argv", ["crowdveil", *arguments])
        with pytest.raises(SystemExit) as leaving:
            main()
        printed = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, leaving.value.code or 0, printed.out, printed.err)

    return call


@pytest.fixture
def call(call_in_process, tmp_path):
    """The same in an empty folder."""
    return lambda *arguments: call_in_process(*arguments, cwd=tmp_path)
