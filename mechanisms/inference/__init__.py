"""Inference of a device's cell from its reports, success of the best guess, and the effect of forged reports."""
