"""The agents, one file each, and their tools: prompts, models and reading of replies.

``runtime`` asks agents: ``agent_runtime`` sends a question, ``bound_judge`` has a graph's settings
and models, ``prompt_context`` builds prompts, ``output_schemas`` defines the forms of replies, and
``verdicts`` makes a verdict from the turns. ``replies`` reads texts, ``models`` calls models, and
``offline`` is the judge for demo mode, which does not call a model.
"""
