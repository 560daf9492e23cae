"""Readers of road networks: tables, GMNS, OpenStreetMap, SUMO and TNTP."""
