"""What a trusted aggregator does before it publishes: suppression, generalisation, noise."""
