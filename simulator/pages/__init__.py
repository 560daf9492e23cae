"""Pages, plots and exports of a finished run; their only input is its directory."""
