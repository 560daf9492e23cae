"""The command `crowdveil plan`: what a user may ask of the planner, and its answer as a person reads it."""
