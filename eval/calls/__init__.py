"""Answer a run's calls within its limits, and judge, trace and stop with them."""
