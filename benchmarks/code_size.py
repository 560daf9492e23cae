"""Lines of code of the core and of the satellites, which an import contract of pyproject.toml tells apart.

    python benchmarks/code_size.py

Docstrings, those of attributes too, comments and blank lines are not counted.
"""

import ast
import io
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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


def main() -> None:
    """Print a line for each side."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    contract = next(each for each in contracts if each["name"].startswith("the core imports no satellite"))
    sides = dict.fromkeys(contract["source_modules"], "core")
    sides |= dict.fromkeys(contract["forbidden_modules"], "satellites")
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for path in [
        ROOT / "crowdveil.py",
        *(file for top in ("mechanisms", "scenarios", "simulator") for file in (ROOT / top).rglob("*.py")),
    ]:
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        side = side_of(name.removesuffix(".__init__"), sides)
        lines[side] += code_lines(path.read_text("utf-8"))
        modules[side] += 1
    for side, count in lines.most_common():
        print(f"{side}: {count:,} lines of code in {modules[side]} modules")
    print(f"together: {lines.total():,} lines in {modules.total()} modules")


if __name__ == "__main__":
    main()
