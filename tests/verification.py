"""What tests compare, counted: `pytest --verification=FILE` writes it, for the page docs/reference/verification.md.

    python tests/verification.py docs/verification.json FILE …    ends with exit code 1 if these compare less

A test calls `compared` beside its assertion, with the numbers that it asserts. Each family of comparisons is one row.
"""

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy.stats import norm

FAMILIES = {
    "published": "Values printed in papers that agree with what is computed, by the rule that each entry states",
    "published, differing": "Values printed in papers that differ from what is computed, each with the reason",
    "claims": "Claims of privacy, beside all truths and all reports enumerated",
    "coalitions": "Success of attacks and its theory, beside the best possible guess, enumerated",
    "attacks": "Success of attacks in simulated campaigns, beside the exact success",
    "bounds": "Values of ε that attacks prove from below, as shares of the claimed ε",
    "libraries": "Reports, estimates and claims of OpenDP and pure-ldp, beside this project's",
    "engines": "Entries into links of the engine `fleet`, beside the engine `agents`",
    "waves": "Flows of both engines, beside kinematic wave theory",
    "equilibrium": "Costs of links in the published equilibria of Sioux Falls and Anaheim, beside the computed costs",
}
"""What each family compares."""

SHARE = 0.9
"""Share of the recorded comparisons that must be made again: some tests draw how many cases they have."""
ROOT = Path(__file__).parents[1]
_current: list[tuple[str, int, float]] = []


def compared(family, computed, expected, *, allowed=0.0):
    """
    Count numbers that a test compares, and keep their largest deviation as a share of the allowed deviation.

    Parameters
    ----------
    family
        A key of `FAMILIES`.
    computed, expected
        Arrays or numbers that broadcast; `expected` may be a bound, with a deviation only where it is exceeded.
    allowed
        The largest deviation that the test allows; 0 if the numbers must be equal.
    """
    assert family in FAMILIES
    off = np.abs(np.subtract(computed, expected, dtype=np.float64))
    off = np.where(np.equal(computed, expected), 0.0, off)  # both infinite
    share = np.where(off == 0.0, 0.0, off / np.where(np.equal(allowed, 0.0), np.finfo(float).tiny, allowed))
    _current.append((family, int(share.size), float(np.max(share, initial=0.0))))


def compared_by_chance(family, chance, level):
    """Count a statistical test: its deviation in standard deviations, as a share of what has the chance `level`."""
    compared(family, norm.isf(min(chance, 1.0) / 2.0), 0.0, allowed=norm.isf(level / 2.0))


def taken():
    """Return what was compared since the last call."""
    found = list(_current)
    _current.clear()
    return found


class Collected:
    """The plugin of pytest that sums up what the tests of all workers compared, and writes it at the end."""

    def __init__(self, file):
        self.file = file
        self.count, self.tests, self.largest = Counter(), Counter(), {}

    def pytest_runtest_logreport(self, report):
        found = [value for name, value in report.user_properties if name == "compared" and report.when == "teardown"]
        for family, count, share in found:
            self.count[family] += count
            self.largest[family] = max(self.largest.get(family, 0.0), share)
        self.tests.update({family for family, _, _ in found})

    def pytest_sessionfinish(self):
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        families = {
            name: {
                "what": what,
                "tests": self.tests[name],
                "comparisons": self.count[name],
                "largest_share": float(f"{self.largest.get(name, 0.0):.3g}"),
            }
            for name, what in FAMILIES.items()
            if self.count[name]
        }
        about = {"date": datetime.now(tz=UTC).date().isoformat(), "commit": commit.stdout.strip()[:12]}
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps({**about, "families": families}, indent=1, ensure_ascii=False) + "\n")


def lost(recorded, *now):
    """Return the families of a record that new records together lack, or of which they have fewer comparisons."""
    count = Counter()
    for file in now:
        families = json.loads(Path(file).read_text())["families"]
        count.update({name: family["comparisons"] for name, family in families.items()})
    kept = json.loads(Path(recorded).read_text())["families"]
    return [name for name, family in kept.items() if count[name] < SHARE * family["comparisons"]]


if __name__ == "__main__":
    if found := lost(*sys.argv[1:]):
        sys.exit(f"fewer comparisons than {sys.argv[1]} records: {', '.join(found)}")
