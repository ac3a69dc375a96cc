"""Test the command line as users see it: output, exit codes, processes, ``check-model``."""

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import click
import pytest
from jurygraph import __version__
from jurygraph.eval.cli.app import app
from jurygraph.eval.cli.commands import COMMANDS, FIRST_OPTIONS, GUESSED
from jurygraph.eval.cli.exit_codes import ExitCode
from typer.main import get_command
from typer.testing import CliRunner

from .loopback import Answer, Failure, Provider, Request, Text, Usage
from .loopback_debate import OPENAI
from .processes import JURYGRAPH, Command, command_line, in_this_process, ran
from .sample_data import read_lines, write_lines


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a finished run, and its output."""
    folder = tmp_path_factory.mktemp("finished")
    run = "run debate,multiagent --data demo --limit 4 --out out"
    done = in_this_process(*command_line(run), cwd=folder)
    # Without a terminal there is neither progress nor colour.
    assert (done.returncode, done.stderr, "\x1b[" in done.stdout) == (0, "", False)
    before = (folder / "out" / "results.jsonl").read_bytes()
    assert in_this_process(*command_line(run), cwd=folder).returncode == 0
    assert (folder / "out" / "results.jsonl").read_bytes() == before, (
        "the same command did something twice"
    )
    return folder, done.stdout


def test_a_run_ends_in_the_sentences_of_its_report_and_the_next_step(
    finished: tuple[Path, str],
) -> None:
    folder, printed = finished
    for words in ("agreement (rho)", "not from a language model", "Next (results: out)"):
        assert words in printed
    assert "no_issue" not in printed, "an overview of the verdicts is printed with --verbose"
    verbose = in_this_process(
        *command_line("run debate,multiagent --data demo --limit 4 --out out --verbose"), cwd=folder
    )
    assert "no_issue" in verbose.stdout and "Verdicts" in verbose.stdout
    assert " show out lighthouse-" in printed
    assert " report out --html report.html --open" in printed
    reported = in_this_process("report", "out", cwd=folder).stdout.splitlines()
    assert reported[0] in printed.splitlines()
    assert reported[1] in printed.splitlines()


def test_show_reads_a_debate_aloud(finished: tuple[Path, str]) -> None:
    folder, _ = finished
    show = ("show", "out", "lighthouse-good", "--aspect", "fluency")
    done = in_this_process(*show, cwd=folder)
    assert done.returncode == 0
    for words in (
        "Skarrow Point",
        "candidate",
        "Scorer",
        "Critic",
        "Verdict",
        "multiagent · fluency",
    ):
        assert words in done.stdout
    one = in_this_process(*show, "--protocol", "debate", cwd=folder)
    assert "multiagent" not in one.stdout
    # Protocols are listed next to each other if there is room.
    wide = in_this_process(*show, cwd=folder, COLUMNS="180").stdout.splitlines()
    assert any("debate · fluency" in line and "multiagent · fluency" in line for line in wide)
    unknown = in_this_process("show", "out", "nobody", cwd=folder)
    assert (unknown.returncode, "its items are lighthouse-good" in unknown.stderr) == (2, True)


BAD = {
    "run '' --data demo": "no protocol given; protocols are baseline, ",
    "run ' , ' --data demo": "no protocol given; protocols are ", "run debat --data demo": "known are ",
    "run debate --data dmeo": "datasets are demo, demo-pairs",
    "run debate --data no.jsonl": "no.jsonl: cannot be read",
    "run debate --data demo-pairs --aspect wit": "--aspect only applies to scores",
    "run chateval --data demo --set roles=[critic]": "not valid JSON (Expecting value: line 1 column 2 (char 1))",
    "run repeated --data demo --set inner.n=1 --set 'inner={\"n\": 2}'": "parts of inner are already set",
    "run debate --data demo --set n": "'n' is not of the form --set KEY=VALUE",
    "run debate --data demo --limit 0": "--limit", "run debate": "--data", "show nowhere x": "holds no run",
    "graph debat": "known are ",
    **{f"run debate --data demo --max-cost {most}": "max_cost must be" for most in ("nan", "inf", "0", "-1")},
}  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_bad_usage_is_exit_code_2_and_a_clear_line(
    tmp_path: Path, command: Command, line: str
) -> None:
    assert command(*command_line(line)) == 2
    assert BAD[line] in command.errors
    assert list(tmp_path.iterdir()) == []


def test_a_warning_is_one_line_before_any_call(tmp_path: Path, command: Command) -> None:
    item = {"id": "a", "source": "Do fish sleep?", "candidate": "They rest.", "fact": "Fish rest."}
    write_lines(tmp_path / "own.jsonl", [item])
    with warnings.catch_warnings(action="default"):
        assert (
            command("run", "debate", "--data", "own.jsonl", "--aspect", "coherence", "--dry-run")
            == 0
        )
    [line] = command.errors.splitlines()
    assert line.startswith("Warning: ")
    assert "Rubric for coherence: topical-chat/coherence" in line


def test_lists_and_objects_may_be_set_as_json(tmp_path: Path, command: Command) -> None:
    roles = 'roles=["critic", {"name": "Nurse", "description": "You look for harm."}]'
    run = "run chateval --data demo --limit 1 --aspect fluency --out out --set turns=1"
    assert command(*command_line(run), "--set", roles) == 0
    [line] = read_lines(tmp_path / "out")
    assert len(line["transcript"]) == 2


def test_help_of_each_command_has_an_example_and_that_of_run_says_how_it_ends(
    tmp_path: Path,
) -> None:
    group: Any = get_command(app)
    listed = in_this_process("--help", cwd=tmp_path, COLUMNS="80").stdout.splitlines()
    assert max(map(len, listed)) <= 80
    for name, about in COMMANDS.items():
        assert any(name in line and about.summary in line for line in listed), name
        shown = in_this_process(name, "--help", cwd=tmp_path, COLUMNS="80").stdout
        assert f"Example: {example(name)}" in " ".join(shown.split())
        assert max(map(len, shown.splitlines())) <= 80
        assert "<bool>" not in shown
        # Brackets are printed and are not markup.
        wide = in_this_process(name, "--help", cwd=tmp_path, COLUMNS="2000").stdout
        _, command, _ = group.resolve_command(click.Context(group), [name])
        for told in filter(
            None, (command.help, *(getattr(param, "help", None) for param in command.params))
        ):
            for words in re.findall(r"\S*\[\S*\]", told.replace("\\[", "[")):
                assert words in wide, (name, words)
    assert "pip install 'jurygraph[hub]'" in in_this_process("datasets", cwd=tmp_path).stdout
    printed = " ".join(in_this_process("run", "--help", cwd=tmp_path, COLUMNS="120").stdout.split())
    for words in (
        "The same command with the same --out resumes a run that stopped",
        "Ctrl-C or SIGTERM stops the run once the calls in flight have finished",
        "0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 5 a gate is not met, "
        "130 interrupted.",
        *("Concurrency and limits", "Budget", "Output and cache"),
    ):
        assert words in printed


def test_the_help_of_run_shows_first_what_people_need_first(tmp_path: Path) -> None:
    shown = in_this_process("run", "--help", cwd=tmp_path, COLUMNS="120").stdout
    panels = re.split(r"╭─ (.+?) ─+╮", shown)[1:]
    listed = {
        title: re.findall(r"^│ +(--[a-z-]+)", panel, re.MULTILINE)
        for title, panel in zip(panels[::2], panels[1::2], strict=True)
    }
    assert next(title for title in listed if "ption" in title) == "Options"
    assert {*listed["Options"]} == {*FIRST_OPTIONS["run"], "--help"}
    assert "--columns" in listed["More options"]
    named = [option for options in listed.values() for option in options]
    assert len(named) == len({*named}) > 40


@pytest.mark.parametrize("name", GUESSED)
def test_a_command_that_people_guess_is_answered_with_those_they_may_mean(
    tmp_path: Path, name: str
) -> None:
    assert name not in COMMANDS
    done = in_this_process(name, "anything", cwd=tmp_path, COLUMNS="300")
    assert done.returncode == 2
    told = " ".join(done.stderr.split())
    assert f"No such command '{name}'. Did you mean one of these?" in told
    for command in GUESSED[name]:
        assert f"{command} ({COMMANDS[command].summary.rstrip('.')})" in told


def test_the_help_of_run_names_every_exit_code() -> None:
    docstring = inspect.getdoc(COMMANDS["run"].load())
    assert docstring is not None
    _, _, codes = " ".join(docstring.split()).partition("Exit codes: ")
    assert [int(code) for code in re.findall(r"\d+", codes)] == [*ExitCode]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_first_paragraph_of_its_docstring(name: str) -> None:
    function = COMMANDS[name].load()
    assert (
        function.__name__
        == COMMANDS[name].load.__name__
        == {"try": "try_"}.get(name, name.replace("-", "_"))
    )
    assert function.__module__ == f"jurygraph.eval.cli.{COMMANDS[name].file}"
    docstring = inspect.getdoc(function)
    assert docstring is not None
    assert COMMANDS[name].summary == docstring.split("\n\n")[0]


def options_with_one_value() -> list[tuple[str, str]]:
    """Every command of the program with each of its options that take one value."""
    group: Any = get_command(app)
    commands = {name: group.resolve_command(click.Context(group), [name])[1] for name in COMMANDS}
    return [
        (name, max(param.opts, key=len))
        for name, command in commands.items()
        for param in command.params
        if param.param_type_name == "option" and not (param.multiple or param.is_flag)
    ]


@pytest.mark.parametrize(("name", "option"), options_with_one_value())
def test_an_option_with_one_value_refuses_a_second_one(name: str, option: str) -> None:
    refused = CliRunner().invoke(app, [name, option, "1", f"{option}=2"], env={"COLUMNS": "200"})
    assert refused.exit_code == 2
    assert f"{option} takes one value, but is given 2 times" in refused.output


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("--set n=1 --set n=2", "n is already set"),
        (
            "--role-model critic=offline --role-model critic=m",
            "critic already has the model offline",
        ),
        (
            "--model offline --role-model *=m",
            "--model offline is the model of all other roles already",
        ),
        ("--aspect fluency --aspect fluency", "two aspects are named fluency"),
        ("--aspect coherence --aspect topical-chat/coherence", "two aspects are named coherence"),
    ],
)
def test_what_is_set_twice_under_one_name_is_refused(
    given: str, problem: str, command: Command
) -> None:
    assert command(*command_line(f"run debate --data demo --limit 1 --out out {given}")) == 2
    assert problem in command.errors


def example(name: str) -> str:
    return f"jurygraph {name} {COMMANDS[name].example}".strip()


@pytest.mark.slow
def test_the_examples_in_the_help_work(tmp_path: Path) -> None:
    for name in COMMANDS:
        program, *arguments = example(name).split()
        assert (program, arguments[0]) == ("jurygraph", name)
        done = in_this_process(*arguments, cwd=tmp_path)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)


def test_another_run_in_the_same_folder_needs_overwrite(command: Command) -> None:
    run = command_line("run single --data demo --limit 1 --aspect fluency --out out")
    assert command(*run) == 0
    assert command(*run, "--set", "temperature=0.5") == 2
    assert "--overwrite" in command.errors
    assert command(*run, "--set", "temperature=0.5", "--overwrite") == 0


@pytest.mark.slow
def test_drawing(tmp_path: Path) -> None:
    text = in_this_process("graph", "debate", cwd=tmp_path)
    assert "commander -. &nbsp;critic_speaks&nbsp; .-> critic;" in text.stdout
    picture = in_this_process("graph", "single", "--svg", "single.svg", cwd=tmp_path)
    assert picture.returncode == 0
    assert (tmp_path / "single.svg").read_text().startswith("<svg")


def test_lists(tmp_path: Path) -> None:
    listed = in_this_process("protocols", cwd=tmp_path, COLUMNS="200").stdout
    for words in (
        "debate",
        "multiagent",
        "compare",
        "tie_breaker",
        "persona=strict",
        "Kim et al. 2024",
    ):
        assert words in listed
    assert in_this_process("--version", cwd=tmp_path).stdout == f"jurygraph {__version__}\n"
    for width in (110, 115, 120):
        for command in ("protocols", "datasets"):
            lines = in_this_process(command, cwd=tmp_path, COLUMNS=str(width)).stdout.splitlines()
            assert max(map(len, lines)) <= width


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_is_no_error(finished: tuple[Path, str]) -> None:
    show = " ".join(f"'{part}'" for part in (*JURYGRAPH, "show", "out", "lighthouse-good"))
    done = ran("bash", "-o", "pipefail", "-c", f"{show} | head -1", cwd=finished[0])
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def checked(name: str = OPENAI) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["check-model", name])
    return done.exit_code, " ".join(done.output.split())


def lacking(printed: str, *wanted: str) -> list[str]:
    return [words for words in wanted if words not in printed]


def able(request: Request) -> Answer:
    if request.parameters.get("max_completion_tokens") or request.parameters.get("max_tokens"):
        return Text("one\ntwo\nthree", finish="length")
    cached = Usage(input=3000, cached=2048, output=20) if len(request.user) > 5000 else Usage()
    if request.form:
        return Text(fields={"reasoning": "It reads well.", "score": 4}, usage=cached)
    tops = ({"4": 0.75, "5": 0.25},) if request.parameters.get("logprobs") else ()
    return Text("It reads well.\nScore: 4", usage=cached, top=tops)


def test_a_model_that_can_do_all(provider: Provider) -> None:
    provider.play(by=able)
    code, printed = checked()
    assert (code, len(provider.requests)) == (0, 7)
    read = "requested as JSON by a schema; a score was read (4)"
    cached = "2,048 of 3,000 tokens"
    assert not lacking(printed, read, "supported: geval weights scores by them", cached)
    assert not lacking(printed, "several replies to one request", "known; this check took 7 calls")
    assert not lacking(
        printed, "a reply that was cut off is reported as such", "for JSON by a schema."
    )


def test_a_model_that_can_do_little_is_usable(provider: Provider) -> None:
    def by(request: Request) -> Answer:
        for field in ("temperature", "response_format", "tools", "logprobs"):
            if field in request.parameters:
                return Failure(
                    400, f"Unsupported parameter: '{field}'", field, "unsupported_parameter"
                )
        return Text("It reads well.\nScore: 4", usage=None)

    provider.play(by=by)
    code, printed = checked("openai:their-own-model")
    assert code == 0
    assert not lacking(
        printed, "geval takes samples", "add ?price_in=", "replies were asked for as text"
    )
    assert not lacking(printed, "max_tokens=16 was ignored, or the cut was not reported")
    assert not lacking(printed, "their-own-model takes no temperature", "ask this model for words.")


def test_a_model_of_which_no_score_is_read_or_whose_key_is_refused_is_not_usable(
    provider: Provider,
) -> None:
    provider.play(by=lambda _: Text("I like ferries."))
    code, printed = checked()
    assert (code, "No judge can use this model" in printed) == (2, True)
    provider.requests.clear()
    provider.play(by=lambda _: Failure(401, "Incorrect API key provided.", code="invalid_api_key"))
    code, printed = checked()
    assert (code, "the key was refused: check it" in printed) == (2, True)
    assert len(provider.requests) == 1


@pytest.mark.parametrize(("name", "code"), [("offline", 0), ("nobody:knows", 2)])
def test_a_name_alone(name: str, code: int, tmp_path: Path) -> None:
    assert in_this_process("check-model", name, cwd=tmp_path).returncode == code
