"""Attacks: guesses of a coalition, computed only from what its members stored and what is public."""
