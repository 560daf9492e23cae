"""What a run is: its tables and record, in memory or in a run directory, and the comparison of two runs."""
