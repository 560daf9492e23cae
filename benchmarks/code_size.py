"""Lines of code of the core and of the satellites, which an import contract of pyproject.toml tells apart, and limits.

    python benchmarks/code_size.py

Docstrings, comments and blank lines are not counted as code; of TOML files, page templates, scripts with style sheets,
and tests, all lines are. `[tool.crowdveil.most_lines]` in pyproject.toml has the limits.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CONTRACT = next(
    each
    for each in PROJECT["tool"]["importlinter"]["contracts"]
    if each["name"].startswith("the core imports no satellite")
)
PACKAGES = ("mechanisms", "scenarios", "simulator")
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Return the number of lines of a module that hold code."""
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        statements = getattr(node, "body", ())
        for statement in statements if isinstance(statements, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str):
                documentation.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - documentation)


def side_of(module: str, sides: dict[str, str]) -> str:
    """Return the side of the longest package name that a module is in."""
    inside = [package for package in sides if f"{module}.".startswith(f"{package}.")]
    return sides[max(inside, key=len)] if inside else "entry points"


def counted() -> tuple[Counter[str], Counter[str]]:
    """Return the lines of code and the modules of each side: core, satellites, entry points."""
    sides = dict.fromkeys(CONTRACT["source_modules"], "core") | dict.fromkeys(
        CONTRACT["forbidden_modules"], "satellites"
    )
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path in [ROOT / "crowdveil.py", *(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))]:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        side = side_of(name.removesuffix(".__init__"), sides)
        lines[side] += code_lines(path.read_text("utf-8"))
        modules[side] += 1
    return lines, modules


def text_lines(folders: tuple[str, ...], *suffixes: str) -> int:
    """Return the number of lines of the files with these suffixes in folders, scenarios that are shipped left out."""
    files = (file for folder in folders for file in (ROOT / folder).rglob("*") if file.name.endswith(suffixes))
    return sum(len(file.read_text("utf-8").splitlines()) for file in files if file.parent != ROOT / "scenarios")


def main() -> None:
    """Print what is counted beside its limit in `pyproject.toml`; exit code 1 if a number is above its limit."""
    lines, modules = counted()
    for side, count in lines.most_common():
        print(f"{side}: {count:,} lines of code in {modules[side]} modules")
    sizes = {
        "code": lines.total(),
        "core": lines["core"],
        "modules": modules.total(),
        "toml": text_lines(PACKAGES, ".toml"),
        "templates": text_lines(PACKAGES, ".j2"),
        "scripts": text_lines(PACKAGES, ".js", ".css"),
        "tests": text_lines(("tests",), ".py"),
        "rooms": len([each for each in (ROOT / "simulator").iterdir() if (each / "__init__.py").exists()]),
    }
    limits = PROJECT["tool"]["crowdveil"]["most_lines"]
    for name, count in sizes.items():
        print(f"{name}: {count:,}, at most {limits[name]:,}")
    sys.exit(any(count > limits[name] for name, count in sizes.items()))


if __name__ == "__main__":
    main()
