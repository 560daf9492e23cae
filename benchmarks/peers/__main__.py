"""Measures crowdveil beside its peers, each in an environment of its own, and writes the table of docs/why/peers.md.

    python benchmarks/peers --folder FOLDER

Environments are made in the folder by pip and kept there. Every work is done by whole processes in turn, crowdveil
first; a ratio is between two processes of the same turn. Peers that are slow do less of the same work, and are compared
by the rate.
"""

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from timing import spread
from works import WORKS

PAGE = Path(__file__).parents[2] / "docs" / "why" / "peers.md"
# What pip installs for each peer; the others are in crowdveil's own environment.
PACKAGES = {
    "simpy": ("simpy", "numpy"),
    "uxsim": ("uxsim>=1.15",),
    "sumo": ("eclipse-sumo", "numpy"),
    "pure_ldp": ("pure-ldp", "xxhash<4"),
    "multi_freq_ldpy": ("multi-freq-ldpy", "xxhash<4"),
    "opendp": ("opendp", "numpy"),
    "dp_accounting": ("dp-accounting",),
}


class Row(NamedTuple):
    """A work: in words, the size that crowdveil does, and the smaller sizes that peers do."""

    words: str
    size: int
    sizes: dict[str, int]


ROWS = {
    "traffic": Row("link crossings of vehicles on `grid20`", 100_000, {"sumo_micro": 10_000, "sumo_meso": 10_000}),
    "rounds": Row("two rounds of Sampling Privacy, 1,000 cells", 1_000_000, {}),
    "oue": Row("OUE reports, 1,000 cells", 200_000, {"pure_ldp": 10_000, "multi_freq_ldpy": 10_000}),
    "krr": Row("k-ary RR reports", 1_000_000, {"pure_ldp": 200_000, "multi_freq_ldpy": 200_000}),
    "olh": Row("OLH reports", 1_000_000, {"pure_ldp": 1_000, "multi_freq_ldpy": 200_000}),
    "noise": Row("exact discrete Laplace noise", 1_000_000, {"opendp": 100_000}),
    "composition": Row("ε of 1,000 randomized responses", 1_000, {}),
    "routes": Row("gravity demand and routes, 11,025 nodes, all cores, wall time", 500_000, {}),
}
GROWN = ("traffic", "rounds", "oue")


class Bench:
    """The environments, and the case of traffic that is in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._case = folder, 0

    def python(self, program: str) -> str:
        """Return the Python of a program's environment, which is made if it is not there."""
        name = next((name for name in PACKAGES if program.startswith(name)), None)
        if name is None:
            return sys.executable
        home = self.folder / name
        python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        made, needed = home / "made_of", " ".join(PACKAGES[name])
        if not made.exists() or made.read_text(encoding="utf-8") != needed:
            venv.create(home, with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
            made.write_text(needed, encoding="utf-8")
        return str(python)

    def measure(self, work: str, program: str, size: int) -> dict[str, float]:
        """Do one work in a process of its own; return seconds, amount, rate in thousands and peak memory."""
        if work == "traffic" and program != "crowdveil" and size != self._case:
            self._case = size
            self.measure("case", "crowdveil", size)
        called = [self.python(program), Path(__file__).with_name("works.py"), work, program, str(size), self.folder]
        done = subprocess.run(called, check=True, stdout=subprocess.PIPE, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        return {**found, "rate": found["amount"] / 1e3 / max(found["seconds"], 1e-9)}


def compared(bench: Bench, works: Sequence[str], *, share: float, turns: int) -> Iterator[str]:
    """Yield a row a work: crowdveil's rate over each peer's, and peak memory; sizes are multiplied by `share`."""
    yield "| work | crowdveil's rate, times the peer's; peak memory of the peer | crowdveil: thousands a second, MB |"
    yield "|---|---|---|"
    for work in works:
        row, ours, beside = ROWS[work], [], []
        for program in list(WORKS[work])[1:]:
            pairs = [
                [
                    bench.measure(work, each, max(10, round(size * share)))
                    for each, size in (("crowdveil", row.size), (program, row.sizes.get(program, row.size)))
                ]
                for _ in range(turns)
            ]
            ours += [mine for mine, _ in pairs]
            ratio = spread([mine["rate"] / theirs["rate"] for mine, theirs in pairs], digits=1)
            beside.append(f"{program} **{ratio}**, {_peak([theirs for _, theirs in pairs])}")
        yield f"| {row.words} | {'; '.join(beside)} | {spread([each['rate'] for each in ours])}, {_peak(ours)} |"


def _peak(found: Sequence[dict[str, float]]) -> str:
    return f"{max(each['peak_mb'] for each in found):,.0f} MB"


def grown(bench: Bench, works: Sequence[str], *, most: int, limit_s: float) -> Iterator[str]:
    """Yield tables of seconds and peak memory by size; a program stops where the next size would take too long."""
    for work in (work for work in works if work in GROWN):
        exponents = range(3, most + 1)
        yield f"\n| {ROWS[work].words} | {' | '.join(f'{10**exponent:,}' for exponent in exponents)} |"
        yield "|---" * (len(exponents) + 1) + "|"
        for program in WORKS[work]:
            cells, seconds = [], 0.0
            for exponent in exponents:
                if 10 * seconds <= limit_s:
                    found = bench.measure(work, program, 10**exponent)
                    seconds = found["seconds"]
                    cells.append(f"{seconds:.3g} s, {found['peak_mb']:,.0f} MB")
            yield f"| {program} | {' | '.join([*cells, *[''] * (len(exponents) - len(cells))])} |"


def write(page: Path, name: str, lines: Iterable[str]) -> None:
    """Print lines as they come, and write them between the page's marks of this name."""
    told = []
    for line in lines:
        print(line, flush=True)
        told.append(line)
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text("\n".join([before + begin, "", *told, "", end + rest.split(end)[1]]), encoding="utf-8")


def main() -> None:
    """Measure, print, and write the ratios into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("peers"), help="where the environments are kept")
    parser.add_argument("--works", nargs="*", default=[*ROWS], choices=[*ROWS])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes")
    parser.add_argument("--largest", type=int, default=7, help="power of 10 of the largest size; below 3 for no growth")
    parser.add_argument("--limit", type=float, default=120.0, help="CPU seconds that the next size may take")
    parser.add_argument("--page", type=Path, default=PAGE)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(chosen.folder.resolve())
    write(chosen.page, "ratios", compared(bench, chosen.works, share=chosen.share, turns=chosen.repetitions))
    for line in grown(bench, chosen.works, most=chosen.largest, limit_s=chosen.limit):
        print(line, flush=True)


if __name__ == "__main__":
    main()
