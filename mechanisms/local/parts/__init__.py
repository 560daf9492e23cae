"""Shared by several mechanisms: coins, packed rows, answer distributions, estimators and intervals."""
