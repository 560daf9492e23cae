"""No code reads meaning out of a sentence: with every free text of a saved run replaced, all but the texts is equal."""

import html
import io
import json
import re
import shutil

import pandas as pd
import pytest
from rich.console import Console

import crowdveil as cv
from simulator.pages.report import build_report
from simulator.pages.terminal_summary import print_summary
from simulator.results.compare import compare

TEXTS = {"description", "words", "note", "notes", "warnings", "text", "bias", "made_of", "interval", "claims"}
"""Keys of `run.json` whose values are free text; `interval` and `claims` within a refinement only."""
ONLY_OF_REFINEMENTS = {"interval", "claims"}


def without_texts(value, found, key="", *, refined=False):
    """Return a value of `run.json` with each free text replaced by "x", and add the texts to `found`."""
    if isinstance(value, dict):
        return {
            name: without_texts(item, found, name, refined=refined or key == "refinements")
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [without_texts(item, found, key, refined=refined or key == "refinements") for item in value]
    if isinstance(value, str) and key in TEXTS and (refined or key not in ONLY_OF_REFINEMENTS):
        found.add(value)
        return "x"
    return value


def replace_texts(directory):
    """Replace every free text in a run directory by "x", and return those that there were."""
    found: set[str] = set()
    facts = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    (directory / "run.json").write_text(json.dumps(without_texts(facts, found)), encoding="utf-8")
    claims = pd.read_parquet(directory / "claims.parquet")
    for column in ("basis", "release"):
        given = claims[column].notna()
        found |= set(claims.loc[given, column])
        claims[column] = claims[column].mask(given, "x")
    claims.to_parquet(directory / "claims.parquet")
    return found - {""}


def in_order(page, texts):
    """Return a page with each of the texts replaced by "x", and equal notes, which are listed once, as one."""
    page = html.unescape(page)
    for text in sorted(texts - {"x"}, key=len, reverse=True):
        for written in (text, text[:1].upper() + text[1:]):
            page = page.replace(written, "x").replace(written.rstrip("."), "x")
    page = re.sub(r"\b[xX]\b\.?", "x", page)
    return re.sub(r"(<li[^>]*>x</li>\s*)+", "<li>x</li>", page)


def shown(directory):
    """Return the report and the summary of a run directory."""
    summary = io.StringIO()
    print_summary(directory, Console(file=summary, width=400))
    return build_report(directory), summary.getvalue().replace(str(directory), "")


@pytest.mark.parametrize(
    "scenario",
    [
        "tiny",
        "releases",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("collusion", "lossy", "refined", "speeds")),
    ],
)
def test_report_summary_and_comparison_do_not_depend_on_texts(shipped_run, tmp_path, scenario):
    before, after = shipped_run(scenario), tmp_path / "after"
    shutil.copytree(before, after)
    texts = replace_texts(after)
    assert len(texts) > 5
    for told, replaced in zip(shown(before), shown(after), strict=True):
        assert in_order(told, texts).splitlines() == in_order(replaced, texts).splitlines()
    runs = [cv.RunResult.load(directory) for directory in (before, after)]
    differences = [compare(run, run) for run in runs]
    pd.testing.assert_frame_equal(*differences)
    assert [claim.limits for claim in runs[0].privacy] == [claim.limits for claim in runs[1].privacy]
