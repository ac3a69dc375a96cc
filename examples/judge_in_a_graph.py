"""Put a judge inside a LangGraph graph of your own: rewrite a draft until the judge accepts it.

Run it with ``python examples/judge_in_a_graph.py``. It prints each draft with the judge's score,
then the draft that the graph ends with. The judge is a node, so its agents' turns are part of the
graph's stream and its checkpoints. It needs no key: drafts come from a list, and without a model,
scores come from word counts. Pass ``model="openai:gpt-4o-mini"`` to ``create_judge`` to use a
language model.
"""

from typing import Literal

from jurygraph import create_judge
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

ARTICLE = "The mill burned in 1911. Nobody was hurt. It was rebuilt in brick."
DRAFTS = [
    "Forty workers drowned in a Paris flood in 1950.",
    "The mill burned in 1911 and nobody was hurt.",
]


class Newsroom(TypedDict, total=False):
    article: str
    draft: str
    attempts: int
    grade: float


def write(state: Newsroom) -> Newsroom:
    """Take the next draft; a real graph calls its writer here."""
    attempts = state.get("attempts", 0)
    return {"draft": DRAFTS[attempts], "attempts": attempts + 1}


def is_good_enough(state: Newsroom) -> Literal["accept", "rewrite"]:
    """Accept a draft with at least 4 points of 5, or the last draft."""
    print(f"draft {state['attempts']} has {state['grade']} points: {state['draft']}")
    return "accept" if state["grade"] >= 4 or state["attempts"] == len(DRAFTS) else "rewrite"


judge = create_judge("debate", aspect="consistency", n=1)
newsroom = StateGraph(Newsroom)
newsroom.add_node("write", write)
newsroom.add_node("judge", judge.node(Newsroom, source="article", candidate="draft", score="grade"))
newsroom.add_edge(START, "write")
newsroom.add_edge("write", "judge")
newsroom.add_conditional_edges("judge", is_good_enough, {"accept": END, "rewrite": "write"})

result = newsroom.compile().invoke({"article": ARTICLE})
print("accepted:", result["draft"])
