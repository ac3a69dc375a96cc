"""Fetch published datasets, and turn their rows into items."""
