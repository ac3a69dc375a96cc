"""List the commands of jurygraph, and import one only when it is called.

Most commands need large imports that other commands and ``jurygraph --help`` do not need. So the
summary of a command, the first paragraph of its function's docstring, is read from the file without
importing it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Function = Callable[..., Any]


class Command(NamedTuple):
    """A command in ``jurygraph --help``.

    Attributes:
        panel: its group of commands in the help.
        file: the module in this folder that contains its function.
        load: imports the module and returns the function; has the same name as the function.
        example: the arguments of a sample call.
    """

    panel: str
    file: str
    load: Callable[[], Function]
    example: str = ""

    @property
    def summary(self) -> str:
        """The first paragraph of the command function's docstring."""
        # Not with ``ast``, which would take a tenth of a second for all commands.
        source = Path(__file__).with_name(f"{self.file}.py").read_text("utf-8")
        _, _, function = source.partition(f"\ndef {self.load.__name__}(")
        docstring = function.split('"""')[1]
        return docstring.partition("\n\n")[0]


def try_() -> Function:
    from .try_judges import try_

    return try_


def run() -> Function:
    from .run import run

    return run


def sweep() -> Function:
    from .sweep import sweep

    return sweep


def versus() -> Function:
    from .versus import versus

    return versus


def whatif() -> Function:
    from .whatif import whatif

    return whatif


def redteam() -> Function:
    from .redteam import redteam

    return redteam


def bias() -> Function:
    from .bias import bias

    return bias


def reproduce() -> Function:
    from .reproduce import reproduce

    return reproduce


def merge() -> Function:
    from .run import merge

    return merge


def measure() -> Function:
    from .run import measure

    return measure


def check_model() -> Function:
    from .check_model import check_model

    return check_model


def report() -> Function:
    from .report import report

    return report


def show() -> Function:
    from .show import show

    return show


def gate() -> Function:
    from .gate import gate

    return gate


def plan() -> Function:
    from .plan import plan

    return plan


def export() -> Function:
    from .export import export

    return export


def agree() -> Function:
    from .agree import agree

    return agree


def panel() -> Function:
    from .panel import panel

    return panel


def review() -> Function:
    from .review import review

    return review


def audit() -> Function:
    from .audit import audit

    return audit


def protocols() -> Function:
    from .listing import protocols

    return protocols


def datasets() -> Function:
    from .listing import datasets

    return datasets


def new_protocol() -> Function:
    from .listing import new_protocol

    return new_protocol


def graph() -> Function:
    from .listing import graph

    return graph


def studio() -> Function:
    from .studio import studio

    return studio


def journal() -> Function:
    from .journal import journal

    return journal


# Each example works on the bundled data; later ones read the output of earlier ones.
COMMANDS = {
    "try": Command(
        "Judge", "try_judges", try_, "demo --aspect consistency --sample 6 --out runs/try"
    ),
    "run": Command("Judge", "run", run, "debate --data demo --limit 5 --out runs/demo"),
    "sweep": Command(
        "Judge", "sweep", sweep, "debate --axis n=1,2 --data demo --limit 5 --out runs/sweep"
    ),
    "versus": Command(
        "Judge",
        "versus",
        versus,
        "debate --data demo --aspect consistency --limit 12 --out runs/versus",
    ),
    "whatif": Command("Judge", "whatif", whatif, "runs/demo --drop critic:1"),
    "redteam": Command(
        "Judge",
        "redteam",
        redteam,
        "single --data demo --aspect consistency --limit 5 --out runs/redteam",
    ),
    "bias": Command("Judge", "bias", bias, "single --data demo-pairs --limit 12 --out runs/bias"),
    "reproduce": Command("Judge", "reproduce", reproduce, "courtroom-table2"),
    "merge": Command("Judge", "run", merge, "runs/demo --out runs/merged"),
    "measure": Command("Judge", "run", measure, "rouge-l --data demo --limit 5 --out runs/rouge"),
    "check-model": Command("Judge", "check_model", check_model, "offline"),
    "report": Command("Read results", "report", report, "runs/demo --html report.html"),
    "show": Command("Read results", "show", show, "runs/demo lighthouse-good"),
    "gate": Command(
        "Read results", "gate", gate, "runs/demo --fail-under coherence=2 --baseline runs/demo"
    ),
    "export": Command("Read results", "export", export, "runs/demo --out verdicts.csv"),
    "agree": Command("Read results", "agree", agree, "runs/demo"),
    "panel": Command("Read results", "panel", panel, "runs/versus/debate runs/versus/single"),
    "plan": Command("Read results", "plan", plan, "--pilot runs/try --gain 0.1"),
    "review": Command(
        "Read results", "review", review, "runs/demo --when always --queue queue.csv"
    ),
    "audit": Command("Read results", "audit", audit, "runs/demo"),
    "protocols": Command("Protocols and datasets", "listing", protocols),
    "datasets": Command("Protocols and datasets", "listing", datasets, "demo"),
    "new-protocol": Command(
        "Protocols and datasets", "listing", new_protocol, "two_scorers --in mine"
    ),
    "graph": Command("Protocols and datasets", "listing", graph, "debate"),
    "studio": Command("Protocols and datasets", "studio", studio, "--config langgraph.json"),
    "journal": Command("Maintenance", "journal", journal, "runs/demo"),
}
"""The commands, in the order of the help."""

GUESSED = {
    **dict.fromkeys(("evaluate", "eval", "judge", "score", "start"), ("run", "try")),
    "compare": ("report", "versus", "run"),
    "agreement": ("agree",),
    **dict.fromkeys(("list", "ls"), ("protocols", "datasets")),
    **dict.fromkeys(("view", "read"), ("show", "report")),
    **dict.fromkeys(("new", "init", "create"), ("new-protocol",)),
    **dict.fromkeys(("model", "models"), ("check-model",)),
    "cache": ("journal",),
}
"""The names that people try, with the commands that they may mean."""

FIRST_OPTIONS = {
    "run": (
        *("--data", "--model", "--aspect", "--role-model", "--set", "--limit", "--sample"),
        *("--repeats", "--out", "--max-cost", "--concurrency", "--fail-under"),
    )
}
"""The options that the help of a command shows first; without an entry, it shows all together."""

OTHER_OPTIONS = "More options"
"""The heading of the other options that have none of their own."""
