"""Transportation Networks test problems (TNTP): networks, trips and published flows."""
