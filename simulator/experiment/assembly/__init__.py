"""Composition root: the only package that names the concrete parts of a run."""
