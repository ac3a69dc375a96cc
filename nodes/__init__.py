"""Ask the agents, one file each, and provide what they need: prompts, models, and the reading of replies.

``agent_runtime`` asks an agent, ``bound_judge`` holds a graph's settings and models, ``prompt_context`` makes prompts,
``output_schemas`` says how a reply is asked for and read, ``verdicts`` makes a verdict of the turns, ``replies`` reads
text, ``models`` calls models, ``offline`` is the judge that needs none.
"""
