"""Export the verdicts of runs to one table for notebooks, databases and spreadsheets."""
