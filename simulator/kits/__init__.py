"""Checks that users' own kinds satisfy the contracts of their roles."""
