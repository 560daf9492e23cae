"""The mathematics of crowdveil: mechanisms that run on a device, their estimators, and what they claim per view."""
