"""Carry out a run: answer its calls within its limits, store its results, and log, trace and end it."""
