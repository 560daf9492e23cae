"""Functions and classes shared by the local mechanisms."""
