"""OpenStreetMap: streets of extracts, and of graphs of OSMnx."""
