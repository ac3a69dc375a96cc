"""The agents, one call each, and what a call goes through: prompts, models, reading of replies."""
