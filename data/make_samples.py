# ruff: noqa: INP001 - a script beside data, in no package
"""Write the samples: a made-up town of 16 junctions in the North Sea, in every format that can be read.

Nothing in them was observed. `python data/make_samples.py [FOLDER]` writes the same bytes every time; without a folder,
into the one beside this file. The manifest has their checksums.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

SEED = 20
SIDE = 4
WEST, SOUTH = 3.0, 51.8
LON_STEP, LAT_STEP = 0.005, 0.0035
EAST_WEST_M, NORTH_SOUTH_M = 345, 390
SPEED_MPS = 10
ZONES = 4
PLACES = ("harbour", "market", "mill", "school", "station", "theatre")

Place = tuple[float, float]


def place_of(node: int) -> Place:
    """Return longitude and latitude of a junction, 0 … 15, row by row from the south-west."""
    return round(WEST + node % SIDE * LON_STEP, 6), round(SOUTH + node // SIDE * LAT_STEP, 6)


def streets() -> Iterator[tuple[int, int, int]]:
    """Yield from, to and length in metres of every link, both ways of every street."""
    for node in range(SIDE * SIDE):
        row, column = divmod(node, SIDE)
        if row > 0:
            yield node, node - SIDE, NORTH_SOUTH_M
        if column > 0:
            yield node, node - 1, EAST_WEST_M
        if column < SIDE - 1:
            yield node, node + 1, EAST_WEST_M
        if row < SIDE - 1:
            yield node, node + SIDE, NORTH_SOUTH_M


def drive(rng: np.random.Generator, moments_s: range) -> Iterator[tuple[int, Place]]:
    """Yield where a car is that turns at random, at each moment, driving at `SPEED_MPS`."""
    ways: dict[int, list[tuple[int, int]]] = {}
    for start, end, length_m in streets():
        ways.setdefault(start, []).append((end, length_m))
    here = int(rng.integers(SIDE * SIDE))
    there, length_m = ways[here][int(rng.integers(len(ways[here])))]
    entered_s = 0.0
    for moment_s in moments_s:
        while moment_s >= entered_s + length_m / SPEED_MPS:
            entered_s += length_m / SPEED_MPS
            here = there
            there, length_m = ways[here][int(rng.integers(len(ways[here])))]
        share = (moment_s - entered_s) * SPEED_MPS / length_m
        (lon, lat), (to_lon, to_lat) = place_of(here), place_of(there)
        yield moment_s, (lon + share * (to_lon - lon), lat + share * (to_lat - lat))


def tntp(rng: np.random.Generator) -> dict[str, str]:
    """Return network, nodes and trips of the Transportation Networks test problems: kilometres, minutes, an hour."""
    links = list(streets())
    net = [
        *(f"<NUMBER OF ZONES> {ZONES}", f"<NUMBER OF NODES> {SIDE * SIDE}", "<FIRST THRU NODE> 1"),
        *(f"<NUMBER OF LINKS> {len(links)}", "<END OF METADATA>", "", ""),
        "~\tinit_node\tterm_node\tcapacity\tlength\tfree_flow_time\tb\tpower\tspeed\ttoll\tlink_type\t;",
    ]
    for start, end, length_m in links:
        minutes = length_m / SPEED_MPS / 60
        net.append(f"\t{start + 1}\t{end + 1}\t900\t{length_m / 1000:.3f}\t{minutes:.4f}\t0.15\t4\t0\t0\t1\t;")
    nodes = ["Node\tX\tY\t;"]
    nodes += [f"{node + 1}\t{place_of(node)[0]:.6f}\t{place_of(node)[1]:.6f}\t;" for node in range(SIDE * SIDE)]
    table = rng.integers(20, 60, size=(ZONES, ZONES))
    np.fill_diagonal(table, 0)
    trips = [f"<NUMBER OF ZONES> {ZONES}", f"<TOTAL OD FLOW> {table.sum()}.0", "<END OF METADATA>", "", ""]
    for origin in range(ZONES):
        trips.append(f"Origin {origin + 1}")
        trips.append(" ".join(f"{to + 1} : {table[origin, to]}.0;" for to in range(ZONES)))
    texts = {"town_net.tntp": net, "town_node.tntp": nodes, "town_trips.tntp": trips}
    return {f"tntp/{name}": "\n".join(lines) + "\n" for name, lines in texts.items()}


def gmns() -> dict[str, str]:
    """Return node and link tables of the General Modeling Network Specification: metres and km/h."""
    nodes = ["node_id,x_coord,y_coord"]
    nodes += [f"{node + 1},{place_of(node)[0]:.6f},{place_of(node)[1]:.6f}" for node in range(SIDE * SIDE)]
    links = ["link_id,from_node_id,to_node_id,directed,length,free_speed,lanes,capacity,facility_type,allowed_uses"]
    for number, (start, end, length_m) in enumerate(streets(), start=1):
        kind = "primary" if length_m == EAST_WEST_M else "residential"
        links.append(f"{number},{start + 1},{end + 1},1,{length_m},{SPEED_MPS * 3.6:g},1,900,{kind},auto")
    return {"gmns/node.csv": "\n".join(nodes) + "\n", "gmns/link.csv": "\n".join(links) + "\n"}


def taxis(rng: np.random.Generator) -> str:
    """Return positions of eight taxis over ten minutes, in the columns of T-Drive's samples."""
    lines = ["TaxiID,TimeStamp,Longitude,Latitude"]
    for taxi in range(1, 9):
        for moment_s, (lon, lat) in drive(rng, range(0, 601, 30)):
            lines.append(f"{taxi},2024-05-01 08:{moment_s // 60:02d}:{moment_s % 60:02d},{lon:.5f},{lat:.5f}")
    return "\n".join(lines) + "\n"


def check_ins(rng: np.random.Generator) -> str:
    """Return 120 check-ins of 40 people at six places; some places are busier than others."""
    at = [place_of(int(node)) for node in rng.permutation(SIDE * SIDE)[: len(PLACES)]]
    chosen = np.minimum(rng.integers(len(PLACES), size=120), rng.integers(len(PLACES), size=120))
    minutes = np.sort(rng.integers(12 * 60, size=120))
    lines = ["user,time,lon,lat,place"]
    for place, minute in zip(chosen.tolist(), minutes.tolist(), strict=True):
        lon, lat = at[place]
        stamp = f"2024-05-01T{8 + minute // 60:02d}:{minute % 60:02d}:00Z"
        lines.append(f"{int(rng.integers(1, 41))},{stamp},{lon:.6f},{lat:.6f},{PLACES[place]}")
    return "\n".join(lines) + "\n"


def floating_cars(rng: np.random.Generator) -> str:
    """Return ten cars over two minutes as SUMO writes floating-car data."""
    cars = [dict(drive(rng, range(0, 121, 10))) for _ in range(10)]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<fcd-export>"]
    for moment_s in range(0, 121, 10):
        lines.append(f'    <timestep time="{moment_s}.00">')
        for number, seen in enumerate(cars):
            lon, lat = seen[moment_s]
            identifier = quoteattr(f"car_{number}")
            lines.append(f'        <vehicle id={identifier} x="{lon:.6f}" y="{lat:.6f}" speed="{SPEED_MPS}.00"/>')
        lines.append("    </timestep>")
    return "\n".join([*lines, "</fcd-export>"]) + "\n"


def samples() -> dict[str, str]:
    """Return the text of every sample by its name."""
    rng = np.random.default_rng(SEED)
    return {
        **tntp(rng),
        **gmns(),
        "taxis.csv": taxis(rng),
        "check_ins.csv": check_ins(rng),
        "cars.fcd.xml": floating_cars(rng),
    }


def main() -> None:
    """Write the samples."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "samples"
    for name, text in samples().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
