"""Provide the command line: one file for each command; ``app`` lists them, ``runtime`` has what they share."""
