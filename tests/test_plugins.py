"""Test other packages' protocols, metrics, datasets and providers from the command line.

``tests/plugin`` is such a package. It is laid out like an installed one, on the path of separate
processes.
"""

import ast
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from jurygraph.graphs.engine.options import ProtocolName
from jurygraph.graphs.engine.registry import protocols

from .processes import Forks, command_line, forking
from .sample_data import read_lines
from .source_tree import ROOT

HERE = Path(__file__).parent
PLUGIN = HERE / "plugin"

Run = Callable[..., str]


def install(project: Mapping[str, Any], packages: Path, folder: Path) -> Path:
    """Lay a project out like pip: its packages, and the metadata for importlib."""
    shutil.copytree(
        packages, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.toml")
    )
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n",
        encoding="utf-8",
    )
    groups = [
        f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n\n".join(groups), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return install(project, PLUGIN, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def forks_of_plugin(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Yield a starter of programs in processes where the package is installed."""
    with forking(tmp_path_factory.mktemp("printed"), installed, imports=IMPORTED) as forks:
        yield forks


IMPORTED = (
    *(f"jurygraph.eval.cli.{command}" for command in ("report", "show", "sweep")),
    "jurygraph.testing",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
)
"""What several tests here need and import only when they need it."""


@pytest.fixture(scope="module")
def jurygraph(forks_of_plugin: Forks, work: Path) -> Run:
    """Run a command to its end in the common folder; return its output."""

    def run(*arguments: str, code: int = 0, **environment: str) -> str:
        done = forks_of_plugin(*arguments, cwd=work, **environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def judged(jurygraph: Run, work: Path) -> Path:
    """Make a run of the foreign protocol and a bundled one, over the foreign dataset."""
    jurygraph(
        *command_line("run two_judges,debate --data weather --set two_judges.rounds=2 --out runs")
    )
    return work / "runs"


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_everything_is_listed(jurygraph: Run) -> None:
    listed = jurygraph("protocols")
    assert "two_judges" in listed and "pessimist" in listed and "rounds=1" in listed
    known = jurygraph("datasets")
    assert "weather" in known and "4 summaries" in known
    assert "provided by another package" in jurygraph("datasets", "weather")
    assert "optimist" in jurygraph("graph", "two_judges")
    told = jurygraph("run", "two_judges", "--data", "weather", "--set", "rounds=3", "--dry-run")
    assert "24" in told


def test_what_is_not_known_is_refused_with_all_there_is(jurygraph: Run) -> None:
    for line, told in (
        ("run no_such --data weather", "two_judges"),
        ("run two_judges --data no-such", "weather"),
        ("run two_judges --data weather --model no:such", "`acme:<name>`"),
        ("measure no-such --data weather", "brevity"),
        ("run two_judges --data weather --set two_judges.n=2", "n is not a setting of two_judges"),
    ):
        assert told in jurygraph(*command_line(line), code=2)


def test_its_roles_are_answered_offline_and_its_settings_are_signed(judged: Path) -> None:
    own = [line for line in read_lines(judged) if line["protocol"] == "two_judges"]
    assert len(own) == 4
    for line in own:
        assert line["status"] == "ok" and line["calls"] == 4 and len(line["score_by_round"]) == 2
        assert [turn["role"] for turn in line["transcript"]] == ["optimist", "pessimist"] * 2
        assert line["score"] == sum(turn["value"] for turn in line["transcript"][2:]) / 2
    scores = {line["item"]: line["score"] for line in own}
    assert scores["w1"] > scores["w2"]
    manifest = manifest_of(judged)
    assert "rounds:2" in manifest["signatures"]["two_judges"]
    assert manifest["protocols"]["two_judges"]["rounds"] == 2
    assert manifest["prompts"]["two_judges"] != manifest["prompts"]["debate"]


def test_its_templates_decide_the_prompts_hash(jurygraph: Run, judged: Path, work: Path) -> None:
    own = work / "prompts" / "two_judges"
    own.mkdir(parents=True)
    (own / "judge.md").write_text("You are {{ role }}. Give {{ wanted }}.", encoding="utf-8")
    jurygraph(
        *command_line(
            "run two_judges --data weather --set prompts=prompts --limit 1 --out reworded"
        )
    )
    prompts = manifest_of(judged)["prompts"]["two_judges"]
    assert prompts != manifest_of(work / "reworded")["prompts"]["two_judges"]
    both = "run two_judges,calibrated --set calibrated.of=two_judges --data demo-pairs --limit 2"
    jurygraph(*command_line(f"{both} --out pairs"))
    lines = read_lines(work / "pairs")
    assert [line["status"] for line in lines] == ["ok"] * 4
    assert {line["protocol"]: line["calls"] for line in lines} == {"two_judges": 2, "calibrated": 4}
    assert manifest_of(work / "pairs")["prompts"]["calibrated"].endswith(f"+{prompts}")


@pytest.mark.slow
def test_it_is_shown_reported_and_swept(jurygraph: Run, judged: Path, work: Path) -> None:
    shown = jurygraph("show", str(judged), "w1", "--protocol", "two_judges")
    assert "Optimist" in shown and "Pessimist" in shown
    assert "two_judges" in jurygraph("report", str(judged), "--html", "report.html")
    assert "two_judges" in (work / "report.html").read_text(encoding="utf-8")
    jurygraph("sweep", "two_judges", "--axis", "rounds=1,2", "--data", "weather", "--out", "axis")
    assert len(list((work / "axis" / "cells").glob("*/results.jsonl"))) == 2
    assert "second-thoughts" in jurygraph("sweep", "--plans")
    planned = jurygraph("sweep", "--plan", "second-thoughts", "--data", "weather", "--dry-run")
    assert "2 cells" in planned


@pytest.mark.slow
def test_a_metric_and_its_parameter_and_a_model_of_a_provider(jurygraph: Run, work: Path) -> None:
    jurygraph("measure", "brevity?words=10", "--data", "weather", "--out", "measured")
    assert [line["score"] for line in read_lines(work / "measured")] == pytest.approx(
        [0.0, 0.4, 0.2, 0.4]
    )
    assert "words:10" in manifest_of(work / "measured")["signatures"]["brevity"]
    asked = command_line("run two_judges --data weather --model acme:large --limit 1 --out acme")
    assert "ACME_API_KEY is not set" in jurygraph(*asked, code=2)
    jurygraph(*asked, ACME_API_KEY="any")
    (line,) = read_lines(work / "acme")
    assert line["score"] == 4
    assert {turn["model"] for turn in line["transcript"]} == {"acme:large"}
    assert line["transcript"][0]["content"].startswith("Acme's large")


def test_the_page_on_extending_shows_the_package_as_it_is() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    files = [PLUGIN / "pyproject.toml", *PLUGIN.rglob("*.py")]
    there = {line for file in files for line in file.read_text(encoding="utf-8").splitlines()}
    blocks = re.findall(r"```(?:py|toml)\n(.*?)```", page, re.DOTALL)
    shown = [line for block in blocks for line in block.splitlines()]
    assert len(shown) > 40
    assert [line for line in shown if line not in there] == []


RUN_PYTEST = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
QUIET = ("-q", "-rA", "--tb=short", "-p", "no:cacheprovider", "-p", "no:asyncio", "--rootdir=.")


@pytest.mark.slow
def test_its_parts_pass_the_contract_tests(forks_of_plugin: Forks, work: Path) -> None:
    shutil.copy(PLUGIN / "test_acme_judging.py", work)
    done = forks_of_plugin(*QUIET, "test_acme_judging.py", cwd=work, program=RUN_PYTEST)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = set(re.findall(r"^PASSED \S+::(\w+)::", done.stdout, re.MULTILINE))
    assert passed == {"TestTwoJudges", "TestBrevity", "TestWeather", "TestAcme"}


@pytest.fixture(scope="module")
def failures(forks_of_plugin: Forks, work: Path) -> str:
    """Run the contract tests of broken extensions; return what pytest reports."""
    shutil.copy(HERE / "broken_extensions.py", work / "test_broken_extensions.py")
    done = forks_of_plugin(*QUIET, "test_broken_extensions.py", cwd=work, program=RUN_PYTEST)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("extension", "tests"),
    [
        ("FewerCalls", {"test_the_declared_calls_are_made"}),
        ("NoSettings", {"test_calls_are_counted_with_settings_of_its_own"}),
        ("Undescribed", {"test_every_setting_is_described"}),
        ("OtherName", {"test_the_module_has_a_record_a_builder_and_a_graph_of_one_name"}),
        ("FirstAnswer", {"test_swapped_answers_swap_the_verdict"}),
        ("NotANumber", {
            "test_it_gives_a_finite_number_for_each_item",
            "test_it_gives_the_same_number_again",
            "test_it_measures_a_dataset_and_leaves_out_only_items_without_references",
        }),
        ("Unsigned", {"test_a_parameter_changes_the_signature"}),
        ("MoreItems", {"test_its_items_are_as_stated"}),
        ("Unlicensed", {"test_it_is_described"}),
        ("Unlabelled", {"test_it_has_labels_exactly_if_it_states_their_origin"}),
        ("Unrated", {"test_the_stated_aspects_are_known_and_labelled"}),
        ("DropsSeed", {"test_a_parameter_is_used_or_refused"}),
        ("KeyError", {"test_a_missing_key_is_named"}),
        ("Retries", {"test_a_call_is_one_request_without_a_time_limit"}),
        ("OneForAll", {"test_each_call_makes_a_model_of_its_own"}),
    ],
)  # fmt: skip
def test_a_broken_extension_fails_the_test_of_its_fault(
    failures: str, extension: str, tests: set[str]
) -> None:
    failed = re.findall(rf"^FAILED \S+::Test{extension}::(\w+)", failures, re.MULTILINE)
    assert set(failed) == tests


BROKEN = {
    "jurygraph.protocols": {"missing_module": "no_such_module"},
    "jurygraph.metrics": {"text": "broken_plugin:TEXT"},
    "jurygraph.datasets": {"text": "broken_plugin:TEXT"},
    "jurygraph.providers": {"text": "broken_plugin:make_text"},
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    packages = tmp_path_factory.mktemp("broken")
    module = "TEXT = 'no plugin'\n\n\ndef make_text(spec):\n    return TEXT\n"
    (packages / "broken_plugin.py").write_text(module, encoding="utf-8")
    project = {"name": "broken-plugin", "version": "1", "entry-points": BROKEN}
    site = install(project, packages, tmp_path_factory.mktemp("site"))
    with forking(tmp_path_factory.mktemp("printed"), site) as forks:
        yield forks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "protocols",
            "'missing_module', registered under jurygraph.protocols by no_such_module of broken-",
        ),
        ("measure text --data demo", "is not a function that makes a metric"),
        ("run single --data text", "is not a dataset: it is a str; register a Source with a file"),
        ("run single --data demo --model text:x", "made a str, not a LangChain chat model"),
    ],
)
def test_what_is_registered_and_is_none_is_told(
    broken: Forks, tmp_path: Path, line: str, said: str
) -> None:
    done = broken(*command_line(line), cwd=tmp_path)
    assert done.returncode == 2
    assert said in " ".join((done.stdout + done.stderr).split())


@pytest.mark.slow
def test_two_packages_with_one_name_are_told_apart(installed: Path, tmp_path: Path) -> None:
    other = {
        "name": "other",
        "version": "1",
        "entry-points": {"jurygraph.metrics": {"brevity": "math:sqrt"}},
    }
    (tmp_path / "nothing").mkdir()
    install(other, tmp_path / "nothing", tmp_path / "site")
    with forking(tmp_path, installed, tmp_path / "site") as forks:
        done = forks("measure", "brevity", "--data", "demo", cwd=tmp_path)
    assert done.returncode == 2
    assert "two packages register 'brevity'" in " ".join((done.stdout + done.stderr).split())


ALLOWED = {
    # A heading of a table.
    ("eval/report/study_tables.py", "ensemble"),
    # Default values that a caller may name: the speaker in a recorded file, and the sides of the
    # paper's two theorems.
    ("eval/run/replay/recording_sources.py", "scorer"),
    # The example of the command that draws a protocol.
    ("eval/cli/commands.py", "debate"),
    # A command, and the usual word for the transcript in a question.
    ("eval/cli/commands.py", "review"),
    ("eval/cli/run.py", "review"),
    # A file of a run.
    ("eval/report/exports/exporting.py", "review"),
    # The judge of a prompt without a protocol.
    ("eval/judges/judge.py", "single"),
    ("eval/review/review_queue.py", "debate"),
    # The example of an opponent's setting, for comparisons with the usual judges.
    ("eval/experiments/opponents.py", "single"),
    # The judge that a command attacks where none is named, and the one that reads recorded replies.
    ("eval/cli/redteam.py", "single"),
    ("eval/cli/panel.py", "single"),
    # A budget that is larger.
    ("eval/experiments/finding.py", "more"),
    # A paper that is the source of a protocol and of a dataset.
    ("eval/datasets/catalog.py", "faireval"),
    # What is fitted for the settings of these protocols.
    *(("eval/analysis/early_stops.py", name) for name in ("debate", "multiagent", "samre")),
    ("eval/analysis/fitted_cascade.py", "cascade"),
    # The types of a judge's and of a gate's settings, by the name that a caller writes.
    *(
        (f"eval/judges/{file}.py", name)
        for file in ("judge_options", "gate_options")
        for name in get_args(ProtocolName)
    ),
    # The command checks its rules as the wrapper does.
    ("eval/cli/review.py", "review"),
}
PLAIN_WORD = "judge"
"""A role of some protocols, and a plain word of the field: a column's heading, a key."""


def test_evaluation_names_no_protocol_and_no_role() -> None:
    """Except in docstrings, no text in ``eval`` names a protocol or role, and none is imported."""
    known = protocols()
    roles = {role for module in known.values() for role in module.protocol.roles}
    kept = {module.protocol.settings.__name__ for module in known.values()}
    modules = {*known, *roles}
    words = modules - {PLAIN_WORD}
    found = []
    for path in sorted((ROOT / "eval").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in words:
                found.append((place, node.value))
            # Modules of ``eval`` itself, such as judge and review, are not protocols.
            elif isinstance(node, ast.ImportFrom) and re.search(
                r"\b(graphs|settings)\b", node.module or ""
            ):
                last = (node.module or "").rpartition(".")[2]
                named = {alias.name for alias in node.names}
                found += [(place, name) for name in ({last} & modules) | (named & kept)]
    assert [one for one in found if one not in ALLOWED] == []
