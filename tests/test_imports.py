"""Test imports: only light packages, and the same names in any order of imports."""

import json
import sys
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs.engine.registry import protocols

from .processes import ran

pytestmark = pytest.mark.slow
PROVIDERS = {"aiohttp", "langchain_google_genai", "langchain_openai", "openai"}
TABLES = {"datasets", "evalica", "pandas", "polars", "psycopg", "pyarrow", "scipy"}
METRICS = {"bert_score", "rouge_score", "sacrebleu", "torch", "transformers"}
OUTSIDE = {"google.genai", "matplotlib", "mermaidx", "opentelemetry", "playwright", "uvloop"}
HEAVY = PROVIDERS | TABLES | METRICS | OUTSIDE
GRAPHS = {"langchain_core", "langgraph"}
CONSOLE = {"sqlalchemy", "typer"}

COMMAND = """
import os
os.chdir({folder!r})
sys.argv = ["jurygraph", *{words!r}.split()]
from jurygraph.eval.cli.app import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
"""
HELP = COMMAND.format(folder=".", words="--help")
LIGHT = {
    "jurygraph": ("import jurygraph", HEAVY | GRAPHS | CONSOLE | {"numpy", "yaml"}),
    "jurygraph.state": ("import jurygraph.state", HEAVY | GRAPHS | CONSOLE | {"numpy", "yaml"}),
    "jurygraph.nodes.replies": (
        "import jurygraph.nodes.replies",
        HEAVY | GRAPHS | CONSOLE | {"numpy"},
    ),
    "jurygraph.eval": ("import jurygraph.eval", HEAVY | GRAPHS | CONSOLE),
    "a bundled dataset": (
        "from jurygraph.eval import load_dataset\nload_dataset('demo')\n",
        HEAVY | {"huggingface_hub", "pooch"},
    ),
    "agreement is the function whatever was loaded before": (
        "import jurygraph.eval.results.evaluation, jurygraph.eval as found\n"
        "assert callable(found.agreement), found.agreement\n",
        HEAVY | GRAPHS | CONSOLE,
    ),
    **{
        f"jurygraph {command}": (
            f"import jurygraph.eval.cli.{command}",
            HEAVY | GRAPHS | {"sqlalchemy"},
        )
        for command in ("show", "agree")
    },
}
READERS = {
    "agree": "agree run",
    "show": "show run lighthouse-good",
    "report": "report run --all",
    "report of comparisons": "report pairs --all",
    "the page of a report": "report run --html page.html",
    "export": "export run pairs --out verdicts.csv",
}
"""Commands that read finished runs."""
READING = GRAPHS | PROVIDERS | METRICS | {"sqlalchemy", "pandas", "polars", "psycopg", "pyarrow"}
"""Packages that these need for no format of theirs that is tested here."""
WITH_GRAPHS = {
    "all protocols": (
        "\n".join(f"import {module.__name__}" for module in protocols().values()),
        HEAVY | CONSOLE,
    ),
    "jurygraph --help": (HELP, HEAVY),
}
WRAPPERS = ("calibrated", "repeated", "cascade")
FUNCTIONS = """
from jurygraph.graphs import calibrated, repeated, cascade
from types import FunctionType
assert [type(one) for one in (calibrated, repeated, cascade)] == 3 * [FunctionType], (calibrated, repeated, cascade)
"""
ORDERS = {
    **{f"{name} first": f"import jurygraph.graphs.wrappers.{name}\n" for name in WRAPPERS},
    "the package first": "import jurygraph.graphs\n",
    "the registry first": (
        "from jurygraph.graphs.engine.registry import find_protocol, protocols\n"
        "assert all(find_protocol(name) for name in protocols())\n"
    ),
    "a protocol first": "import jurygraph.graphs.debate\n",
    "one found before": "from jurygraph.graphs.engine.registry import find_protocol\nfind_protocol('cascade')\n",
    "after the command line": "import jurygraph.eval.cli.app\n",
}

# Every case is a fork of one process: imports of a case are invisible to others, and shared imports
# happen once.
FORKS = """
import json, os, sys

def forked(code):
    there = set(sys.modules)
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = pipe.read()
        return {"code": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "modules": told.split()}
    os.dup2(2, 1)
    try:
        exec(code, {"sys": sys})
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    with os.fdopen(writing, "w") as pipe:
        pipe.write(" ".join(set(sys.modules) - there))
    os._exit(0)

light, heavy = json.loads(sys.stdin.read())
told = {name: forked(code) for name, code in light.items()}
# What these load themselves, OpenTelemetry among it where that is installed, is not ours to delay.
import langchain_core.language_models, langchain_core.runnables, langgraph.graph, langgraph.types
import jinja2, yaml
told |= {name: forked(code) for name, code in heavy.items()}
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """For every case how its process ended, and which modules it has loaded."""
    runs = tmp_path_factory.mktemp("runs")
    evaluate(["debate", "single"], "demo", aspects=["coherence"], limit=12, out=runs / "run")
    evaluate(["samre", "ensemble"], "demo-pairs", limit=6, out=runs / "pairs")
    light = {name: code for name, (code, _) in LIGHT.items()}
    light |= {
        name: COMMAND.format(folder=str(runs), words=words) for name, words in READERS.items()
    }
    heavy = {name: code for name, (code, _) in WITH_GRAPHS.items()}
    heavy |= {f"functions: {name}": code + FUNCTIONS for name, code in ORDERS.items()}
    done = ran(sys.executable, "-c", FORKS, input=json.dumps([light, heavy]))
    assert done.returncode == 0, done.stderr
    return {"errors": done.stderr, **json.loads(done.stdout)}


@pytest.mark.parametrize("name", [*LIGHT, *WITH_GRAPHS])
def test_what_is_heavy_is_loaded_where_it_is_needed(told: dict[str, Any], name: str) -> None:
    unwanted = {**LIGHT, **WITH_GRAPHS}[name][1]
    assert told[name]["code"] == 0, told["errors"]
    assert unwanted.isdisjoint(told[name]["modules"]), unwanted & set(told[name]["modules"])


@pytest.mark.parametrize("name", READERS)
def test_a_finished_run_is_read_without_graphs_and_database(
    told: dict[str, Any], name: str
) -> None:
    assert told[name]["code"] == 0, told["errors"]
    assert READING.isdisjoint(told[name]["modules"]), READING & set(told[name]["modules"])


@pytest.mark.parametrize("order", ORDERS)
def test_the_wrappers_are_functions_whatever_was_imported_before(
    told: dict[str, Any], order: str
) -> None:
    assert told[f"functions: {order}"]["code"] == 0, told["errors"]
