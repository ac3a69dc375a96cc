"""Fetching published files: the real clients against a hub on the loopback interface that serves files of ours."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import io
import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets.dataset import SOURCES
from jurygraph.eval.datasets.published import fetch
from jurygraph.eval.datasets.published.fetch import Sums, git_blob
from jurygraph.eval.datasets.published.source import GitHub, HuggingFace, Source
from jurygraph.state import DataError, UsageError

from .loopback_hub import Hub, blob, point_to, serving

CHAT = SOURCES["topical-chat"]
SUMMARIES = SOURCES["summeval"]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub without files, and a cache of its own."""
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "PATIENCE", replace(fetch.PATIENCE, first_wait=0.001, longest_wait=0.001))
    with serving(Hub()) as served:
        point_to(served.url, monkeypatch)
        yield served
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


def path_of(source: Source, number: int = 0) -> str:
    home = source.home
    assert home is not None
    revision = home.commit if isinstance(home, GitHub) else home.revision
    return f"{home.repository}/{revision}/{source.forms[0].files[number]}"


def known_as(source: Source, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Source:
    """The catalogue's entry, for as long as the test lasts, with what holds of the small files here."""
    changed = replace(source, **changes)
    monkeypatch.setitem(SOURCES, source.name, changed)
    return changed


@pytest.fixture
def chat(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> str:
    """Topical-Chat with two responses; the path of its file."""
    scores = {"understandability": 1, "naturalness": 2, "coherence": 3, "engagingness": 1, "groundedness": 0}
    rows = [
        {"source": "hi", "system_id": system, "system_output": "ho", "context": "a fact", "scores": scores}
        for system in ("Original Ground Truth", "Argmax Decoding")
    ]
    known_as(CHAT, monkeypatch, items=2)
    hub.files[path_of(CHAT)] = json.dumps(rows).encode()
    return path_of(CHAT)


@pytest.fixture
def summaries(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> str:
    """SummEval with one article; the path of its file."""
    import pyarrow as pa
    from pyarrow import parquet

    article = {
        "id": "a",
        "text": "It rained.",
        "machine_summaries": ["Rain.", "Sun."],
        "human_summaries": ["R."],
    }
    marks = {name: [4.0, 2.0] for name in SUMMARIES.aspects}
    written = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist([{**article, **marks}]), written)
    content = written.getvalue()
    assert isinstance(SUMMARIES.home, HuggingFace)
    home = replace(SUMMARIES.home, sha256=(hashlib.sha256(content).hexdigest(),))
    known_as(SUMMARIES, monkeypatch, items=2, home=home)
    hub.files[path_of(SUMMARIES)] = content
    return path_of(SUMMARIES)


def test_from_github_once(hub: Hub, chat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in trouble is asked again; what was fetched is there without network."""
    tree, file = f"GET repos/{CHAT.home.repository}/git/trees/{CHAT.home.commit}", f"GET {chat}"  # type: ignore[union-attr]
    hub.faults[chat] = "once busy"
    dataset = load_dataset("topical-chat")
    assert [item.id for item in dataset] == ["tc-00-0", "tc-00-1"]
    assert Path(dataset.location) == tmp_path / "cache" / "github" / chat
    assert hub.asked == [tree, file, file]
    point_to("http://127.0.0.1:9", monkeypatch)
    assert load_dataset("topical-chat").digest == dataset.digest
    known_as(SOURCES["topical-chat"], monkeypatch, items=360)
    with pytest.raises(DataError, match="holds 2 items, but 360 were published"):
        load_dataset("topical-chat")


def test_from_the_hub_once(hub: Hub, summaries: str, tmp_path: Path) -> None:
    dataset = load_dataset("summeval")
    assert [item.id for item in dataset] == ["a-0", "a-1"]
    assert Path(dataset.location).is_relative_to(tmp_path / "cache" / "hub")
    assert f"GET datasets/{summaries.replace('summeval/', 'summeval/resolve/', 1)}" in hub.asked
    hub.asked.clear()
    assert load_dataset("summeval").digest == dataset.digest
    assert hub.asked == []


def test_another_content_than_the_commits_is_refused(hub: Hub, chat: str, tmp_path: Path) -> None:
    hub.stated[chat] = "0" * 40
    words = r"topical_chat\.json of maszhongming/UniEval: the download is not the file of"
    with pytest.raises(DataError, match=words):
        load_dataset("topical-chat")
    assert not (tmp_path / "cache" / "github" / chat).exists()


def test_another_content_than_the_catalogues_is_refused(
    hub: Hub, summaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = SOURCES["summeval"].home
    assert isinstance(true, HuggingFace)
    known_as(SOURCES["summeval"], monkeypatch, home=replace(true, sha256=("f" * 64,)))
    words = r"has the SHA-256 \w+\.\.\., but should have ffffffffffff\.\.\.; it was removed"
    with pytest.raises(DataError, match=words):
        load_dataset("summeval")
    known_as(SOURCES["summeval"], monkeypatch, home=true)
    assert len(load_dataset("summeval")) == 2


def test_a_fetched_file_that_was_changed_is_refused(chat: str, tmp_path: Path, hub: Hub) -> None:
    path = Path(load_dataset("topical-chat").location)
    sums = tmp_path / "cache" / "github" / CHAT.home.repository / CHAT.home.commit / "SHA256SUMS"  # type: ignore[union-attr]
    assert sums.read_text() == f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {CHAT.forms[0].files[0]}\n"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(DataError, match=r"was changed after the download .* delete it to download it again"):
        load_dataset("topical-chat")
    path.unlink()
    assert len(load_dataset("topical-chat")) == 2


def test_other_content_under_the_same_commit_is_refused(chat: str, hub: Hub) -> None:
    """A mirror, or an API, that says something else than it did before."""
    path = Path(load_dataset("topical-chat").location)
    path.unlink()
    for tree in path.parents[4].glob("*.tree.json"):
        tree.unlink()
    hub.files[chat] += b"\n"
    with pytest.raises(DataError, match="this download differs from the earlier one"):
        load_dataset("topical-chat")


def test_a_download_that_was_cut_off_before_its_check(chat: str, hub: Hub, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "github" / chat
    path.parent.mkdir(parents=True)
    path.write_bytes(hub.files[chat][:10])
    with pytest.raises(DataError, match="the download is not the file"):
        load_dataset("topical-chat")
    assert len(load_dataset("topical-chat")) == 2


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("not found", "404"),
        ("busy", "503"),
        ("too many", "429"),
        ("half", "IncompleteRead|peer closed connection"),
    ],
)
@pytest.mark.parametrize("name", ["topical-chat", "summeval"])
def test_downloads_that_fail(
    hub: Hub, chat: str, summaries: str, name: str, fault: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    hub.faults[chat if name == "topical-chat" else summaries] = fault
    with pytest.raises(DataError, match=f"{name} could not be fetched .*({reason})"):
        load_dataset(name)
    if name == "topical-chat":
        assert hub.asked.count(f"GET {chat}") == (1 if fault == "not found" else 3)
    hub.faults.clear()
    assert len(load_dataset(name)) == 2


def test_what_keeps_a_file_from_being_fetched_is_named(
    hub: Hub, chat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(words: str) -> None:
        with pytest.raises(DataError, match=words):
            load_dataset("topical-chat")

    (tmp_path / "cache").write_text("")
    refused(r"Not a directory \(.*cache/github.*\)")
    (tmp_path / "cache").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Hub, "tree", lambda *_: b"<html>")
        refused("not a GitHub API")
    del hub.files[chat]
    refused(r"maszhongming/UniEval has no reproduce/.*topical_chat\.json at d33e7b6c")
    point_to("http://127.0.0.1:9", monkeypatch)
    (tmp_path / "cache").rename(tmp_path / "before")
    refused(
        r"could not be fetched from https://github.com/maszhongming/UniEval/.*: Connection refused; try again, or "
        r"give the folder that holds topical_chat\.json or topical_chat\.jsonl with --data-dir"
    )


def test_several_files_with_names_that_need_quoting(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    source = known_as(SOURCES["llmbar"], monkeypatch, items=8)
    row = {"input": "Say hi.", "output_1": "hi", "output_2": "ho", "label": 1}
    for number in range(8):
        hub.files[path_of(source, number)] = json.dumps([row]).encode()
    dataset = load_dataset("llmbar")
    assert len(dataset) == 8
    assert any("LLMEval^2" in asked for asked in hub.asked)


@pytest.mark.parametrize(
    ("name", "package", "extras"),
    [
        ("topical-chat", "pooch", "hub"),
        ("summeval", "huggingface_hub", "hub,frames"),
        ("mt-bench", "pyarrow", "hub,frames"),
    ],
)
def test_a_package_that_is_not_installed(
    name: str, package: str, extras: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else found(name))
    words = (
        rf'{package}, which .* not installed: pip install "jurygraph\[{extras}\]", or give the folder .* with'
    )
    with pytest.raises(UsageError, match=words):
        load_dataset(name)


def test_git_blob_against_git(tmp_path: Path) -> None:
    """``printf 'hello\\n' | git hash-object --stdin``."""
    path = tmp_path / "hello"
    path.write_bytes(b"hello\n")
    assert git_blob(path) == blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize(
    "source", [source for source in SOURCES.values() if source.home], ids=lambda s: s.name
)
def test_homes_are_fixed(source: Source) -> None:
    home = source.home
    revision = home.commit if isinstance(home, GitHub) else home.revision if home else ""
    assert len(revision) == 40
    assert set(revision) <= set("0123456789abcdef")
    if isinstance(home, HuggingFace):
        assert [len(digest) for digest in home.sha256] == [64] * len(source.forms[0].files)


def test_several_may_note_what_they_fetched_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")

    def note(_: int) -> None:
        for _ in range(50):
            Sums(tmp_path).add("a.json")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(note, range(4)))
    assert Sums(tmp_path).holds("a.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["SHA256SUMS", "a.json"]
