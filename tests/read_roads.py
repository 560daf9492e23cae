"""Networks and their reports, as readers of road formats and the one function that makes networks give them."""

from __future__ import annotations

from simulator.formats.geo import geopackage
from simulator.formats.gmns import roads as gmns
from simulator.formats.matsim import roads as matsim
from simulator.formats.osm import roads as osm
from simulator.formats.sumo import roads as sumo_net
from simulator.formats.tables import roads as tables
from simulator.formats.tntp import roads as tntp
from simulator.roads.raw_network import build


def _built(read):
    return lambda *given, **named: build(read(*given, **named))


read_osm = _built(osm.read_osm)
read_gmns = _built(gmns.read_gmns)
read_matsim = _built(matsim.read_matsim)
read_tntp = _built(tntp.read_tntp)
read_tables = _built(tables.read_tables)
read_sumo_net = _built(sumo_net.read_sumo_net)


def read_geopackage(path):
    return build(geopackage.read_geopackage(path))[0]
