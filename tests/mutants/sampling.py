"""Mutants made by cosmic-ray: one small change of one line each, drawn over all packages with a fixed seed.

A mutant is named file:function:operator:n, the n-th place (from 0) of the operator in the function, and keeps the text
of its line. So it is found again where functions have moved, and is not taken for another where the line has changed.
"""

import ast
import zlib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from planted import source_files

BINARY = [("Add", "Sub"), ("Sub", "Add"), ("Mul", "Div"), ("Div", "Mul"), ("BitAnd", "BitOr"), ("BitOr", "BitAnd")]
BINARY += [("FloorDiv", "Mul"), ("Mod", "Mul"), ("Pow", "Mul"), ("LShift", "RShift"), ("RShift", "LShift")]
COMPARISONS = {"Lt": "LtE", "Gt": "GtE", "Eq": "NotEq", "Is": "IsNot"}
OPERATORS = [
    *(f"ReplaceBinaryOperator_{old}_{new}" for old, new in BINARY),
    *(f"ReplaceComparisonOperator_{old}_{new}" for old, new in COMPARISONS.items()),
    *(f"ReplaceComparisonOperator_{new}_{old}" for old, new in COMPARISONS.items()),
    *("ReplaceComparisonOperator_Lt_GtE", "ReplaceComparisonOperator_Gt_LtE", "ReplaceUnaryOperator_Delete_USub"),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_Invert", "AddNot"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop", "NumberReplacer"),
]
"""Of cosmic-ray's operators, one or two changes of each kind."""
TYPES = {"Literal", "Mapping", "dict", "list", "tuple"}
LEAST = 4
"""Mutants of each package, at least."""


class Mutant(NamedTuple):
    """A change of a file: the `occurrence`-th of the operator in the file, the `number`-th in its function."""

    file: str
    function: str
    operator: str
    number: int
    line: str
    occurrence: int = -1
    first: int = 0
    """First and last line of the statement, without the body of a compound statement."""
    last: int = 0

    @property
    def name(self) -> str:
        """The mutant's name in the lists."""
        return f"{self.file}:{self.function}:{self.operator}:{self.number}"


@cache
def _operator(name: str) -> object:
    from cosmic_ray.plugins import get_operator  # noqa: PLC0415 - slow to import

    return get_operator(f"core/{name}")()


def _not_changed(tree: ast.AST) -> list[ast.AST]:
    """Return annotations, decorators, texts for users, and unions of types."""
    nodes: list[ast.AST] = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Raise)]
    for node in ast.walk(tree):
        given = [getattr(node, name, None) for name in ("annotation", "returns")] + getattr(node, "decorator_list", [])
        nodes += [part for part in given if isinstance(part, ast.AST)]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"isinstance", "cast"}:
            nodes.append(node)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in {
            "Literal",
            "Mapping",
            "dict",
            "tuple",
            "list",
        }:
            nodes.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes.append(node)
    return nodes


def _extent(node: ast.AST) -> tuple[int, int]:
    """Return the first and the last line of a statement, of a compound one those before its body."""
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
    return node.lineno, max(node.lineno, last)


def places(root: Path, path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast  # noqa: PLC0415

    source = path.read_text(encoding="utf-8")
    lines, tree = source.splitlines(), ast.parse(source)
    kept_out = [((n.lineno, n.col_offset), (n.end_lineno, n.end_col_offset)) for n in _not_changed(tree)]
    functions: dict[int, str] = {}
    statements: dict[int, tuple[int, int]] = {}

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}".lstrip(".")
                functions.update(dict.fromkeys(range(child.lineno, child.end_lineno + 1), inner))
            if isinstance(child, ast.stmt):
                first, last = _extent(child)
                statements.update(dict.fromkeys(range(first, last + 1), (first, last)))
            visit(child, inner)

    visit(tree, "")
    nodes = list(ast_nodes(get_ast(source)))
    file = path.relative_to(root).as_posix()
    for name in OPERATORS:
        operator, numbers = _operator(name), defaultdict(int)
        spots = [spot for node in nodes for spot in operator.mutation_positions(node)]
        for occurrence, ((line, column), _) in enumerate(spots):
            function = functions.get(line, "")
            number = numbers[function]
            numbers[function] += 1
            column_bytes = len(lines[line - 1][:column].encode())
            if any(start <= (line, column_bytes) < end for start, end in kept_out):
                continue
            if name.endswith(("_BitOr_BitAnd",)) and not function:
                continue
            yield Mutant(
                file, function, name, number, lines[line - 1].strip(), occurrence, *statements.get(line, (line, line))
            )


def changed_source(root: Path, mutant: Mutant) -> str:
    """Return the text of the mutant's file with the change."""
    from cosmic_ray.mutating import mutate_code  # noqa: PLC0415

    source = (root / mutant.file).read_text(encoding="utf-8")
    return mutate_code(source, _operator(mutant.operator), mutant.occurrence)


def sample(root: Path, count: int, seed: int) -> list[Mutant]:
    """Draw mutants: of each package in proportion to its places, and at least `LEAST`."""
    packages: dict[str, list[Mutant]] = defaultdict(list)
    for path in source_files(root):
        parts = path.relative_to(root).parts
        package = "/".join(parts[: 2 if parts[0] != "scenarios" and len(parts) > 2 else 1])
        packages[package] += [mutant for mutant in places(root, path) if mutant.function]
    packages = {package: mutants for package, mutants in packages.items() if mutants}
    total, drawn = sum(map(len, packages.values())), []
    for package, mutants in sorted(packages.items()):
        share = min(len(mutants), max(LEAST, round(count * len(mutants) / total)))
        rng = np.random.default_rng([seed, zlib.crc32(package.encode())])
        drawn += [mutants[i] for i in sorted(rng.permutation(len(mutants))[:share])]
    return drawn


def find(root: Path, mutant: Mutant) -> Mutant | None:
    """Return a listed mutant as it stands in a tree now; None where its line is gone.

    It is looked for in its own function, then in functions of the same name in all files.
    """
    named = root / mutant.file
    others = [path for path in source_files(root) if path != named]
    last_name = mutant.function.rpartition(".")[2]
    for path in [named, *others]:
        if not path.exists() or mutant.line not in path.read_text(encoding="utf-8"):
            continue
        same = [
            place
            for place in places(root, path)
            if place.operator == mutant.operator
            and place.line == mutant.line
            and place.function.rpartition(".")[2] == last_name
        ]
        exact = [place for place in same if place.function == mutant.function and place.number == mutant.number]
        if exact or same:
            return (exact or same)[0]
    return None
