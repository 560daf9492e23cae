"""Road networks written to files: GeoPackage, GeoParquet, GMNS, SUMO's plain XML; the first two are read again here."""

from simulator.roads.writers.geo_files import read_geopackage, read_geoparquet, write_geopackage, write_geoparquet
from simulator.roads.writers.gmns import write_gmns
from simulator.roads.writers.sumo_plain import write_sumo_plain

__all__ = [
    "read_geopackage",
    "read_geoparquet",
    "write_geopackage",
    "write_geoparquet",
    "write_gmns",
    "write_sumo_plain",
]
