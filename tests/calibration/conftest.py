from hypothesis import settings

# The same examples in every run, and no failure because the machine is busy.
settings.register_profile("calibration", derandomize=True, deadline=None)
settings.load_profile("calibration")
