"""Run the papers' tables again, and set what is measured beside what they print."""
