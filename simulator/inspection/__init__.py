"""What a user's files are, and the scenario that reads them."""
