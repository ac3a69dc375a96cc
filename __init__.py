"""jurygraph: juries of language models that debate before they judge.

Each protocol is one compiled LangGraph graph:

>>> from jurygraph.graphs import debate
>>> task = {"kind": "score", "source": "It rained.", "candidate": "It rained.", "aspect": "consistency"}
>>> debate.graph.invoke({"task": task})["verdict"]["kind"]
'score'

``create_judge("debate", aspect="coherence")`` makes a judge that LangSmith and openevals take as an evaluator.

``jurygraph.state`` holds tasks, aspects, verdicts and settings, ``jurygraph.nodes`` the agents,
``jurygraph.graphs`` the protocols, ``jurygraph.eval`` datasets, batches and agreement with people.
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .eval.judges.answer_gate import AnswerGate
    from .eval.judges.judge import create_async_judge, create_judge
    from .state import (
        Aspect,
        CompareTask,
        JurygraphError,
        LimitError,
        ReplyError,
        ScoreTask,
        UsageError,
        Verdict,
    )

__all__ = [
    "AnswerGate",
    "Aspect",
    "CompareTask",
    "JurygraphError",
    "LimitError",
    "ReplyError",
    "ScoreTask",
    "UsageError",
    "Verdict",
    "create_async_judge",
    "create_judge",
]
__version__ = "0.1.0"

_MODULES = {
    "AnswerGate": ".eval.judges.answer_gate",
    "create_async_judge": ".eval.judges.judge",
    "create_judge": ".eval.judges.judge",
}
"""The modules of the names that are not in ``jurygraph.state``."""

# Who uses the library decides what becomes of its log; Python's last resort would print half of it.
logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    # A name is imported when it is first asked for: the command line must be there before all that takes time.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, ".state"), __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
