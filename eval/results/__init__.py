"""The results of a run: results file, manifest, log, merging, and agreement with labels."""
