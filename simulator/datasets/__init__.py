"""Data sets: their manifest, and the check and download of their files."""
