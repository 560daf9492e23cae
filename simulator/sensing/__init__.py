"""What happens between a vehicle and its aggregator: the channel and the campaign."""
