"""Check a run's scores against gates, and write the result for CI."""
