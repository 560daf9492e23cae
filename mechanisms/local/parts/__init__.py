"""What several mechanisms share: coins, packed rows, laws of answers, estimators and intervals."""
