"""Conformance kit: checks that every mechanism must pass, whether it is part of this project or a user's own."""
