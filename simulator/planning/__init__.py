"""The command `crowdveil plan`: the options of the planner, and its result formatted for the terminal."""
