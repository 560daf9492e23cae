"""Writers of road networks to GeoPackage, GeoParquet, GMNS and SUMO's plain XML, and readers of the first two."""

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
