"""Files of a run for other programs: QGIS, kepler.gl, SimWrapper, SUMO and GMNS tools."""
