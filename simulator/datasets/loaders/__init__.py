"""Loaders: each turns one kind of file into a tidy table and says what it left out."""
