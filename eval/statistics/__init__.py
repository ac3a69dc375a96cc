"""Compute statistics of how well a judge agrees with people, each with its interval."""
