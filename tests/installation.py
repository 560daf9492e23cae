"""An environment in which the wheels are installed, and copies of the source whose kernels need not be compiled."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OWN_KINDS = ROOT / "tests" / "own_kinds_package"
PACKAGES = ("mechanisms", "scenarios", "simulator")


def execute(*command: object, status: int = 0, **options) -> str:
    """Run a command, check its exit code, and return what it printed; of a command that fails also its errors."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stdout + done.stderr


def copy_kernels(target: Path) -> None:
    """Copy what numba has compiled beside the modules of a copy of the source, which differ in their time only.

    Numba compares the time and the size of a module with those recorded, and compiles again where they differ.
    """
    for package in PACKAGES:
        for compiled in (ROOT / package).rglob("__pycache__/*.nb[ci]"):
            module = compiled.parents[1] / f"{compiled.name.partition('.')[0]}.py"
            copy = target / module.relative_to(ROOT)
            if copy.is_file() and copy.read_bytes() == module.read_bytes():
                shutil.copystat(module, copy)
                cache = copy.parent / "__pycache__"
                cache.mkdir(exist_ok=True)
                shutil.copy2(compiled, cache)


def programs(folder: Path) -> Path:
    """Return the folder of an environment's programs."""
    return folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def install(folder: Path) -> None:
    """Build the wheels of the project and of the package of own kinds, and install both into a new environment."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling builds the wheels and is not installed: pip install 'crowdveil[dev]'")
    for source in (ROOT, OWN_KINDS):
        execute(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist", cwd=source)
    venv.create(folder / "venv", with_pip=False)
    options = ("--no-deps", "--no-index", "--quiet")
    command = (sys.executable, "-m", "pip", "--python", programs(folder) / "python", "install", *options)
    execute(*command, *(folder / "dist").glob("*.whl"))
    paths = sysconfig.get_paths(vars={"base": folder / "venv", "platbase": folder / "venv"})
    # A path in a .pth file is searched last, and .pth files inside it are not read: one of them names the source tree.
    theirs = {sysconfig.get_paths()[name] for name in ("purelib", "platlib")}
    theirs |= {path for path in sys.path if Path(path).name == "site-packages"}
    Path(paths["purelib"], "others.pth").write_text("\n".join(theirs), encoding="utf-8")
    copy_kernels(Path(paths["purelib"]))
