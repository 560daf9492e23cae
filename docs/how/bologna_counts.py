"""Fit trips to the loops of Bologna with SUMO's tools, for bologna-counts.toml.

Run it in a folder with a copy of bologna-counts.toml and the data in the folder bologna_counts, with that folder's
parent as CROWDVEIL_DATA. It takes a minute, and needs SUMO's tools (`pip install eclipse-sumo`). Of
https://github.com/alessandrasomma28/BoMoDT (AGPL-3.0) at commit 938087c79f54 it needs joined_lanes.net.xml and
joined_tls.add.xml of sumoenv/static, SUMO's scenario of Bologna (EPL-2.0), and real_traffic_flow.csv of
data/realworlddata/mvenvdata, hourly counts of Comune di Bologna, whose portal states their licence. By day
the fitted trips jam in SUMO too: from 7 to 9 it inserts a third of them.
"""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import sumo

from crowdveil import run

FOLDER, TOOLS = Path("bologna_counts"), Path(sumo.SUMO_HOME) / "tools"
HOURS = ["21:00-22:00", "22:00-23:00"]


def tool(script: str, options: str) -> None:
    """Run one of SUMO's tools."""
    subprocess.run([sys.executable, TOOLS / script, *options.split()], check=True)  # noqa: S603 - our own


table = pd.read_csv(FOLDER / "real_traffic_flow.csv", sep=";").query("data == '2024-02-01'")
table[["lat", "lon"]] = table["geopoint"].str.split(", ", expand=True)
table["direction"] = table["direzione"].str.replace("O", "W")  # ovest
table = table.rename(columns={"codice_spira": "name"})
counts = table.melt(["name", "lat", "lon", "direction"], HOURS, "from_s", "count")
counts["from_s"] = counts["from_s"].str[:5]
counts.to_csv(FOLDER / "counts.csv", index=False)

net, routes, fitted, loops = (
    FOLDER / name for name in ("joined_lanes.net.xml", "candidates.rou.xml", "fitted.rou.xml", "loops.xml")
)
drawn = "--fringe-factor 10 --random-routing-factor 2 --min-distance 400 --seed 42 --validate"
tool("randomTrips.py", f"-n {net} -r {routes} -e 20000 {drawn}")
fitted.write_bytes(routes.read_bytes())  # to place the loops, any trips do
placed = run("bologna-counts.toml", overrides=["traffic.undrivable=leave_out"])
link = placed.counts.drop_duplicates("place").set_index("place")["link"]
counts["edge"] = counts["name"].map(link).map(placed.roads.set_index("link")["source_id"])
lines = ["<data>"]
for hour, rows in counts.groupby("from_s"):
    begin = 3600 * (int(str(hour)[:2]) - 21)
    lines.append(f'<interval id="loops" begin="{begin}" end="{begin + 3600}">')
    mean = rows.groupby("edge")["count"].mean().round().astype(int)
    lines += [f'<edge id="{name}" entered="{number}"/>' for name, number in mean.items()]
    lines.append("</interval>")
loops.write_text("\n".join([*lines, "</data>"]), encoding="utf-8")
tool("routeSampler.py", f"-r {routes} -d {loops} -o {fitted} --optimize full --seed 42")
