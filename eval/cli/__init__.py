"""The command line: one file for each command, ``app`` with the list of them, ``runtime`` with what they share."""
