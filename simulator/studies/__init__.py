"""Studies: many runs, of one scenario with varied values or over several data sets, with their results in one place."""
