"""Test that no text can control the terminal, and printed commands can be pasted."""

import subprocess
import unicodedata
from pathlib import Path

import pytest
from jurygraph.state.redaction import shell_line

from .processes import Command
from .sample_data import write_lines

ESCAPES = "\x1b[2J\x1b]0;x\x07"
"""Clears the screen and changes the title of the window."""

EVIL = f"i0 {ESCAPES}\x9b31m\u202eb\x08\r"
SOURCE = "It rained in Paris all day, and the river rose by a metre."


def is_steering(text: str) -> list[str]:
    """Return the parts of a text that control a terminal."""
    return [
        char for char in text if unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\t"
    ]


def scores(folder: Path) -> Path:
    """Make items whose ids, groups, systems and further columns are hostile."""
    rows = [
        {
            "id": f"{EVIL}{number}",
            "group": f"{EVIL}g{number // 2}",
            "system": f"{EVIL}s{number % 2}",
            "source": SOURCE,
            "candidate": f"It rained {number} times. {ESCAPES}",
            "human": {"coherence": 1 + number % 5},
            f"column {EVIL}": 1,
        }
        for number in range(6)
    ]
    return write_lines(folder / f"scores {EVIL.replace('/', '')}.jsonl", rows)


# Notices name a hostile column: they are printed and checked like all other output.
@pytest.mark.filterwarnings("default::jurygraph.eval.datasets.reading.ReadingNotice")
def test_no_command_prints_control_characters(command: Command, tmp_path: Path) -> None:
    data = scores(tmp_path)
    folder = f"out {EVIL}"
    other = f"other {EVIL}"
    first = f"{EVIL}0"
    pairs = write_lines(
        tmp_path / "pairs.jsonl",
        [{"id": EVIL, "question": "Why?", "answer_1": "So.", "answer_2": "No.", "human": "1"}],
    )
    unread = write_lines(tmp_path / "unread.jsonl", [{"id": EVIL, f"text {EVIL}": "a"}])
    (tmp_path / "cut.csv").write_text(
        f'id,source,candidate\n{EVIL.strip()},"a\n', encoding="utf-8", newline=""
    )
    run = (
        "run",
        "debate,single",
        "--data",
        data,
        "--aspect",
        "coherence",
        "--model",
        "offline",
        "--out",
    )
    commands: list[tuple[str | Path, ...]] = [
        (*run, folder),
        (*run, other, "--limit", "4"),
        ("run", "debate", "--data", pairs, "--model", "offline", "--out", f"pairs {EVIL}"),
        ("show", folder, first),
        ("show", folder, f"none {EVIL}"),
        ("agree", folder),
        ("agree", folder, "--json"),
        ("agree", data),
        ("report", folder),
        ("report", folder, other, "--csv", f"csv {EVIL}"),
        ("report", f"none {EVIL}"),
        ("review", folder, "--queue", f"queue {EVIL}.csv"),
        ("review", folder, "--answers", f"queue {EVIL}.csv", "--name", EVIL),
        ("merge", f"merged {EVIL}", folder, other),
        (
            "versus",
            "debate",
            "--data",
            data,
            "--model",
            "offline",
            "--out",
            f"versus {EVIL}",
            "--yes",
        ),
        (
            "sweep",
            "debate",
            "--data",
            data,
            "--model",
            "offline",
            "--set",
            "n=1,2",
            "--out",
            f"sweep {EVIL}",
        ),
        ("try", data, "--model", "offline", "--out", f"try {EVIL}"),
        ("run", "debate", "--data", unread, "--model", "offline"),
        ("run", "debate", "--data", "cut.csv", "--model", "offline"),
        ("run", f"debate {EVIL}", "--data", data),
        ("run", "debate", "--data", data, "--aspect", EVIL, "--model", "offline"),
        ("run", "debate", "--data", data, "--model", EVIL),
        ("run", "debate", "--data", data, "--set", f"n={EVIL}"),
        (
            "run",
            "debate",
            "--data",
            data,
            "--columns",
            f"human.{EVIL}=column {EVIL}",
            "--model",
            "offline",
        ),
        ("run", "debate", f"--no{EVIL}"),
        ("run", "debate", "--limit", EVIL),
        (EVIL,),
        ("datasets", EVIL),
        ("graph", EVIL),
        ("check-model", EVIL),
        ("journal", f"none {EVIL}"),
        ("reproduce", EVIL),
    ]
    for words in commands:
        command(*words)
        assert is_steering(command.printed) == [], words
        assert is_steering(command.errors) == [], words
        if words[0] == "run" and folder in words:
            assert "read a transcript" in command.printed


@pytest.mark.parametrize(
    "item", ["a b", "it's", 'say "so"', "$HOME `id` \\n", EVIL, "-x", "naïve 日本"]
)
def test_a_printed_command_is_read_by_the_shell_as_it_was_meant(item: str) -> None:
    line = shell_line("printf", "%s", item)
    assert is_steering(line) == []
    assert (
        subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout.decode()
        == item
    )


def test_the_command_for_an_odd_id_shows_its_debate(command: Command, tmp_path: Path) -> None:
    for item in ("-rf it's", EVIL):
        row = {"id": item, "source": SOURCE, "candidate": "It rained.", "human": {"coherence": 3}}
        data = write_lines(tmp_path / "one.jsonl", [row])
        out = f"run {len(item)}"
        run = ("run", "single", "--data", data, "--aspect", "coherence", "--model", "offline")
        assert command(*run, "--out", out) == 0, command.errors
        [line] = [
            line for line in command.printed.splitlines() if line.startswith("  read a transcript ")
        ]
        shown = line.removeprefix("  read a transcript ").strip().partition(" ")[2]
        words = (
            subprocess.run(
                ["bash", "-c", f"printf '%s\\0' {shown}"], capture_output=True, check=True
            )
            .stdout.decode()
            .split("\0")[:-1]
        )
        assert words[-1] == item
        assert command(*words) == 0, command.errors
        assert "It rained." in command.printed
