"""Games: attacks of coalitions on what they stored, scored against the truth."""
