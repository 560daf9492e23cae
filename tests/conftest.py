"""What holds for all tests."""

from hypothesis import settings

# A kernel is compiled in whichever example calls it first: in a fresh clone that takes seconds, and is no fault of the
# example's. Tests that hang are ended by pytest's own timeout.
settings.register_profile("crowdveil", deadline=None)
settings.load_profile("crowdveil")
