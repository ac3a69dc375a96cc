"""How well a judge agrees with people: statistics, each with its interval."""
