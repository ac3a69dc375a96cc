"""Check a run's figures against gates, and write the outcome for CI."""
