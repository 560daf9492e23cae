"""General Modeling Network Specification (GMNS): networks, with movements and signal timing."""
