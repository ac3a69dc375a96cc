"""Plots, for papers and for pages."""
