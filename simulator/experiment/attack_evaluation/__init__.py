"""Evaluation of attacks: what coalitions stored, their guesses, and the success of these guesses."""
