"""Mutants: change one place of the source at a time, run the tests about it, and list the changes that no test notices.

    .venv/bin/python benchmarks/mutants.py --sample 20 --seed 1
    .venv/bin/python benchmarks/mutants.py --only simulator/streams.py --sample 0

The changes are made in a copy of the project in a temporary directory, one at a time:

- a comparison is made strict or not (`<` to `<=`), or reversed in the case of `==`, `!=`, `in` and `is`;
- `+` becomes `-`, `*` becomes `/` and so on; `and` becomes `or`; `not x` becomes `x`;
- a number is increased by 1, or a `True` or `False` negated, in the defaults of parameters too;
- the condition of an `if` is negated; a separator (a text of at most two characters) is made empty;
- an element is taken out of a tuple of texts.

A test that fails, or takes three times as long as before, detects the change. With `--sample N`, N changes of each file
are drawn (0 for all of them). The exit status is 1 if a change survives that `EQUIVALENT` does not explain.
"""

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
CLAIMS = ["tests/mechanisms/test_claims_by_enumeration.py", "tests/mechanisms/test_composition.py"]
SUMS = ["tests/mechanisms/test_published_sums.py", "tests/mechanisms/test_published_sums_limits.py"]
TESTS = {
    "simulator/streams.py": ["tests/test_streams.py"],
    "simulator/sensing/channel.py": ["tests/sensing/test_channel.py", "tests/sensing/test_agreed_messages.py"],
    "simulator/aggregation/secret_sharing.py": [
        "tests/aggregation/test_additive_shares.py",
        "tests/aggregation/test_range_proof.py",
    ],
    "simulator/aggregation/threshold_shared.py": ["tests/aggregation/test_threshold_shares.py"],
    "mechanisms/local/common/estimators.py": [
        "tests/mechanisms/test_mechanism_theory.py",
        "tests/mechanisms/test_refresh.py",
        "tests/mechanisms/test_binary_query.py",
        "tests/mechanisms/test_count_intervals.py",
    ],
    "mechanisms/privacy/claim.py": [*CLAIMS, "tests/mechanisms/test_privacy_claims.py"],
    "mechanisms/privacy/view.py": [*CLAIMS, "tests/mechanisms/test_privacy_views.py"],
    "mechanisms/privacy/view_claims.py": [*CLAIMS, "tests/mechanisms/test_views_closed.py"],
    "mechanisms/privacy/report_claims.py": [
        *CLAIMS,
        "tests/mechanisms/test_exact_claims_attained.py",
        "tests/mechanisms/test_privacy_claims.py",
        "tests/mechanisms/test_claim_digits.py",
    ],
    "mechanisms/privacy/composition.py": [CLAIMS[1]],
    "mechanisms/privacy/sum_laws.py": SUMS,
    "mechanisms/privacy/published_sums.py": [*SUMS, *CLAIMS],
    "mechanisms/privacy/released.py": CLAIMS,
    "mechanisms/privacy/published_differences.py": [CLAIMS[0], "tests/mechanisms/test_suppressed_crowds.py"],
    "mechanisms/privacy/integer_noise.py": [CLAIMS[1], *SUMS],
}
EQUIVALENT = {
    "41.0": "what a window leaves out, far below rounding either way",
    "ROUNDING": "a share of 1e-10, which covers rounding errors that do not reach a test's tolerance",
    "first <= epsilon": "another first step gives a bound too, and nearly the same one",
    "> delta": "δ is equal to the target at no double that the bisection meets",
    "> precision": "the same for the width of the last interval",
    "rng.integers": "a coefficient of 0 is drawn once in 2^61 times",
}
"""A part of a change → why no test can or need notice it. Files of claims also have constants of the search and of the
error bounds (points of a grid, stages of a transform): they make a claim a little larger, or take longer."""

SWAPPED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
SEPARATOR = 2


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the changed forms of an expression."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.BinOp | ast.BoolOp) and type(new.op) in SWAPPED:
        new.op = SWAPPED[type(new.op)]()
        yield new
    elif isinstance(new, ast.Compare):
        for i, operator in enumerate(new.ops):
            one = copy.deepcopy(new)
            one.ops[i] = SWAPPED[type(operator)]()
            yield one
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        yield new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        yield ast.Constant(not new.value)
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        yield ast.Constant(new.value + 1)
    elif isinstance(new, ast.Constant) and isinstance(new.value, str) and 0 < len(new.value) <= SEPARATOR:
        yield ast.Constant("")
    elif isinstance(new, ast.Tuple) and len(new.elts) > 1 and all(isinstance(e, ast.Constant) for e in new.elts):
        for i in range(len(new.elts)):
            yield ast.Tuple([*new.elts[:i], *new.elts[i + 1 :]], ast.Load())


def mutants(source: str) -> list[tuple[int, str, str]]:
    """Return (line, description, changed source) of every change."""
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:i])) for i in range(len(lines))]
    tree, found = ast.parse(source), []
    # Not changed: annotations, decorators, and parts of an f-string, which are words for users, and which have no place
    # of their own before Python 3.12.
    unchanged = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    for node in ast.walk(tree):
        given = [getattr(node, name, None) for name in ("annotation", "returns")] + getattr(node, "decorator_list", [])
        unchanged += [part for part in given if part is not None]
    skipped = {id(inner) for node in unchanged for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        places = [(node, new) for new in changed(node)]
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            places.append((node.test, ast.UnaryOp(ast.Not(), node.test)))
        for old, new in places:
            begin = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            whole = source.encode()
            text = f"({ast.unparse(new)})"
            mutant = (whole[:begin] + text.encode() + whole[end:]).decode()
            found.append((old.lineno, f"{whole[begin:end].decode()} → {text}", mutant))
    return found


def passes(folder: Path, tests: list[str], *, limit_s: float) -> bool:
    """Return whether the tests pass in a folder within a time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=folder, env=environment, timeout=limit_s, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


def main() -> int:
    """Try the changes and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=10, help="changes of each file, drawn at random; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(TESTS), choices=list(TESTS), metavar="FILE")
    options = parser.parse_args()
    tried = unexplained = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "project"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "*.nbi", "*.nbc"))
        for name in options.only:
            source, file, began = (ROOT / name).read_text(encoding="utf-8"), folder / name, time.monotonic()
            if not passes(folder, TESTS[name], limit_s=3600.0):
                print(f"{name}: its tests fail without any change")
                return 2
            limit_s = 10.0 + 3.0 * (time.monotonic() - began)
            every = mutants(source)
            draw = np.random.default_rng([options.seed, *name.encode()])
            drawn = draw.permutation(len(every))[: options.sample or len(every)]
            chosen = sorted(every[i] for i in drawn)
            survived = 0
            for line, change, text in chosen:
                file.write_text(text, encoding="utf-8")
                if passes(folder, TESTS[name], limit_s=limit_s):
                    reason = next((EQUIVALENT[part] for part in EQUIVALENT if part in change), None)
                    survived, unexplained = survived + 1, unexplained + (reason is None)
                    print(f"{name}:{line}: {change}{f'   ({reason})' if reason else ''}", flush=True)
            file.write_text(source, encoding="utf-8")
            tried += len(chosen)
            print(f"{name}: {len(chosen)} of {len(every)} changes tried, {survived} survived", flush=True)
    print(f"{tried} changes tried, {unexplained} survived without explanation")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
