"""From a scenario to a result: build, run, keep."""
