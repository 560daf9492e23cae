"""Layers of geometries: the GeoPackage of a road network, and roads drawn as lines."""
