"""Files of a run for other programs: QGIS, SUMO and GMNS tools."""
