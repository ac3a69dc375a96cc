"""Test that bad input of ``reproduce`` ends with exit code 2 and clear words before any call."""

import json
from pathlib import Path

import pytest

from .loopback import Provider
from .processes import Command
from .sample_data import write_lines

MODEL = ("--model", "openai:gpt-4o-mini")


def refused(command: Command, *words: str | Path) -> str:
    assert command("reproduce", *words) == 2
    return " ".join(command.errors.split())


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("Rate {{ candidat }}.", "the template has no placeholder 'candidat'; did you mean candid"),
        ("Rate ${generated_text}.", "${generated_text} is not a placeholder of these templates"),
        ("Rate it.", "the template does not use the placeholder 'candidate'"),
        ('{{ fence("candidate", candidate) }}', "does not use the placeholder 'source'"),
    ],
)
def test_a_published_prompt_with_a_wrong_placeholder(
    template: str, fault: str, provider: Provider, command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "published" / "shared" / "score_task.md"
    file.parent.mkdir(parents=True)
    file.write_text(template, encoding="utf-8")
    data = ("--data", "demo", "--limit", "2", "--out", tmp_path / "out")
    prompts = ("--set", f"prompts={tmp_path / 'published'}")
    said = refused(command, "debate-table3", *data, *MODEL, *prompts)
    assert fault in said
    assert "score_task.md" in said
    assert not provider.requests
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("nosuch:model", "unknown model 'nosuch:model'"),
        ("openai:gpt-4o-mini", "OPENAI_API_KEY is not set"),
        ("local?model_path=/nowhere/x.gguf", "local"),
    ],
)
def test_a_model_that_is_not_there(
    model: str, fault: str, command: Command, tmp_path: Path
) -> None:
    data = ("--data", "demo", "--limit", "2", "--out", tmp_path / "out")
    assert fault in refused(command, "debate-table3", *data, "--model", model)
    assert not (tmp_path / "out").exists()


def test_a_table_with_half_its_data(provider: Provider, command: Command, tmp_path: Path) -> None:
    questions = [{"question_id": n, "text": f"Q{n}", "category": "generic"} for n in range(8)]
    write_lines(tmp_path / "question.jsonl", questions)
    (tmp_path / "answer").mkdir()
    (tmp_path / "review").mkdir()
    for model in ("gpt35", "vicuna-13b"):
        answers = [{"question_id": n, "text": f"{model} {n}"} for n in range(8)]
        write_lines(tmp_path / "answer" / f"answer_{model}.jsonl", answers)
    verdicts = tmp_path / "review" / "review_gpt35_vicuna-13b_human.txt"
    verdicts.write_text("CHATGPT\nTIE\n" * 2, encoding="utf-8")
    said = refused(command, "chateval-table3", "--data-dir", tmp_path, *MODEL)
    assert "review_gpt35_vicuna-13b_human.txt: has 4 verdicts for 8 questions" in said
    assert not provider.requests


def test_a_replication_folder_with_an_edited_journal_is_named_and_not_continued(
    command: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "table"
    words = ("chateval-table3", "--data", "demo-pairs", "--model", "offline", "--out", folder)
    assert command("reproduce", *words, "--limit", "2") == 0
    journal = folder / "calls.sqlite"
    content = bytearray(journal.read_bytes())
    content[4096:] = bytes(byte ^ 255 for byte in content[4096:])
    journal.write_bytes(content)
    # A check calls no model: exit code 3 says that something differs.
    assert command("reproduce", "chateval-table3", "--check", folder) == 3
    assert "differs: calls.sqlite: edited after the run (the journal of calls)" in " ".join(
        command.printed.split()
    )
    said = refused(command, *words, "--limit", "4")
    assert "calls.sqlite" in said
    assert "the file is damaged: move it away" in said


@pytest.mark.slow
def test_a_check_finds_a_changed_digit(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "table"
    words = ("chateval-table3", "--data", "demo-pairs", "--model", "offline", "--out", folder)
    assert command("reproduce", *words, "--limit", "4") == 0
    assert command("reproduce", "chateval-table3", "--check", folder) == 0
    stored = json.loads((folder / "reproduce.json").read_text(encoding="utf-8"))
    stored["rows"][0][2]["value"] += 0.001
    (folder / "reproduce.json").write_text(json.dumps(stored), encoding="utf-8")
    assert command("reproduce", "chateval-table3", "--check", folder) == 3
    said = " ".join(command.printed.split())
    assert "differs: reproduce.json: edited after the run" in said
    assert "differs: reproduce.json: single agent, here, offline, accuracy: " in said
    assert "follows from the verdicts" in said
