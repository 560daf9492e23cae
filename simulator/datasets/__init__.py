"""Data sets: what is known of each, where it belongs, and its table."""
