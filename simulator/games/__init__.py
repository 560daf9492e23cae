"""Games: attacks played on the recorded queries of campaigns, and their guesses scored against the truth."""
