"""Files of a run for other programs: QGIS, kepler.gl and SimWrapper."""
