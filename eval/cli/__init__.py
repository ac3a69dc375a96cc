"""Provide the command line.

Each command has one file, ``app`` lists them, and ``runtime`` has shared code.
"""
