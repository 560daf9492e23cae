"""Tables: nodes and edges, trips between zones or points, matrices."""
