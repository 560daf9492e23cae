"""`crowdveil defences`: the table of attacks and defences, as docs/how/week.md shows it."""

import json
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "how" / "week.md").read_text(encoding="utf-8")


def table_of(first):
    """Rows of numbers of the page's table that begins with a word, by their first cell."""
    lines = re.search(rf"(?m)^\| {first} \|(.*\n)(\|.*\n)+", PAGE)[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: [float(cell.rstrip(" %").replace(",", "")) for cell in numbers] for name, *numbers in cells}


def found(call, *arguments):
    done = call("defences", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return [row for row in json.loads(done.stdout) if row["mechanism"] == "sampling"]


@pytest.mark.slow  # eight campaigns, which nine attacks are tried on
def test_lies_and_defences_are_as_the_page_shows(call):
    rows = [row for row in found(call) if row["success"] is not None and row["campaign"] not in ("paired", "proofs")]
    names = list(dict.fromkeys(row["name"] for row in rows))
    shown = table_of(r"lie \| trusted")
    assert len(shown) == len(names) == 8
    for name, numbers in zip(names, shown.values(), strict=True):
        right = [100 * row["success"] for row in rows if row["name"] == name]
        assert right == pytest.approx(numbers, abs=1.0)


@pytest.mark.slow  # up to 100,000 fake vehicles
def test_fakes_and_their_cost_are_as_the_page_shows(call):
    campaigns, shares, sizes = {}, {}, {}
    for row in found(call, "sybils"):
        if row["metric"] == "fakes":
            number, campaign = row["value"], campaigns.setdefault(row["campaign"], {})
            campaign[number] = 100 * row["success"]
        elif row["metric"] == "fake_share_of_all_devices":
            shares[number] = 100 * row["value"]
        elif row["metric"] == "fake_bytes":
            sizes[number] = row["value"] / 1000
    for name, (share, size, *right) in table_of("fakes").items():
        fakes = float(name.replace(",", ""))
        assert shares[fakes] == pytest.approx(share, abs=0.5)
        assert sizes[fakes] == pytest.approx(size, abs=0.06)
        assert [campaign[fakes] for campaign in campaigns.values()] == pytest.approx(right, abs=1.0)


def test_text_has_a_table_for_each_mechanism_and_nothing_to_print_is_an_error(call):
    done = call("defences", "longitudinal", "--set", "traffic.vehicles=300")
    assert [line for line in done.stdout.splitlines() if "of 100 drivers" in line] == [
        f"{name}: of 100 drivers, found" for name in ("sampling", "k-ary", "fresh", "memoised")
    ]
    assert re.search(r"again, server:1, 2 queries +\d+ +\d+ +\d+", done.stdout)
    done = call("defences", "tiny")
    assert (done.returncode, done.stdout) == (2, "")
    assert "attacks: must have results to print; scenario tiny has none" in done.stderr
