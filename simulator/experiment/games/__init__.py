"""Games: the one who knows the truth lets coalitions attack what they stored, and scores what they say."""
