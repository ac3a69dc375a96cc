"""Human review of the verdicts of a run."""
