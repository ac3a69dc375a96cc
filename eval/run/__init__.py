"""Carrying out a run: its calls within limits, its results, log, traces and early end."""
