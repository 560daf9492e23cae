"""Loaders: each reads one kind of file into a tidy table, with notes on what was left out."""
