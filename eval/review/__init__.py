"""Ask people about the verdicts of a run."""
