"""Formats of road networks: a module a format, with its reader, its writer or both."""
