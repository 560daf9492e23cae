"""Stationary data owners: vehicles counted at detectors, people who checked in at places."""
