"""Evaluation of attacks: what coalitions stored, what they guess, and how often they are right."""
