"""From a target to parameters that meet it, or the reason there are none."""
