"""Test fetching published files: real clients against a hub on loopback with our files."""

import hashlib
import importlib.util
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets import fetch
from jurygraph.eval.datasets.catalog import SOURCES, GitHub, HuggingFace, Source
from jurygraph.eval.datasets.fetch import git_blob
from jurygraph.state import UsageError

from .loopback_hub import Hub, blob, point_to, serving
from .sample_data import refused
from .test_datasets_published import ARTICLE, INSTRUCTION, TRUTH, as_bytes, said

CHAT = SOURCES["topical-chat"]
SUMMARIES = SOURCES["summeval"]


@pytest.fixture
def hub(collected: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        fetch, "PATIENCE", replace(fetch.PATIENCE, first_wait=0.001, longest_wait=0.001)
    )
    with serving(Hub()) as served:
        point_to(served.url, monkeypatch)
        yield served


def path_of(source: Source, number: int = 0) -> str:
    assert source.home is not None
    return f"{source.home.repository}/{revision(source)}/{source.forms[0].files[number]}"


def revision(source: Source) -> str:
    """Return the commit, or the Hub's name for it, from which a dataset is fetched."""
    assert source.home is not None
    return source.home.commit if isinstance(source.home, GitHub) else source.home.revision


def known_as(source: Source, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Source:
    """Replace the catalogue's entry during the test by one for the small files here."""
    changed = replace(source, **changes)
    monkeypatch.setitem(SOURCES, source.name, changed)
    return changed


@pytest.fixture
def chat(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> str:
    """Topical-Chat with two responses; the path of its file."""
    known_as(CHAT, monkeypatch, items=2)
    path = path_of(CHAT)
    hub.files[path] = as_bytes(
        path, [said("hi", system, "ho") for system in (TRUTH, "Argmax Decoding")]
    )
    return path


@pytest.fixture
def summaries(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> str:
    """SummEval with one article; the path of its file."""
    path = path_of(SUMMARIES)
    hub.files[path] = as_bytes(path, [ARTICLE])
    assert isinstance(SUMMARIES.home, HuggingFace)
    home = replace(SUMMARIES.home, sha256=(hashlib.sha256(hub.files[path]).hexdigest(),))
    known_as(SUMMARIES, monkeypatch, items=2, home=home)
    return path


def test_from_github_once(
    hub: Hub, chat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing server is asked again; fetched files are available without network."""
    tree = f"GET repos/{CHAT.home.repository}/git/trees/{CHAT.home.commit}"  # type: ignore[union-attr]
    file = f"GET {chat}"
    hub.faults[chat] = "once busy"
    dataset = load_dataset("topical-chat")
    assert [item.id for item in dataset] == ["tc-00-0", "tc-00-1"]
    assert Path(dataset.location) == tmp_path / "cache" / "github" / chat
    assert hub.asked == [tree, file, file]
    point_to("http://127.0.0.1:9", monkeypatch)
    assert load_dataset("topical-chat").digest == dataset.digest
    known_as(SOURCES["topical-chat"], monkeypatch, items=360)
    refused("contains 2 items, but 360 were published", "topical-chat")


def test_from_the_hub_once(hub: Hub, summaries: str, tmp_path: Path) -> None:
    dataset = load_dataset("summeval")
    assert [item.id for item in dataset] == ["cnn-1-0", "cnn-1-1"]
    assert Path(dataset.location).is_relative_to(tmp_path / "cache" / "hub")
    assert f"GET datasets/{summaries.replace('summeval/', 'summeval/resolve/', 1)}" in hub.asked
    hub.asked.clear()
    assert load_dataset("summeval").digest == dataset.digest
    assert hub.asked == []


def test_another_content_than_the_commits_is_refused(hub: Hub, chat: str, tmp_path: Path) -> None:
    hub.stated[chat] = "0" * 40
    refused(
        r"topical_chat\.json of maszhongming/UniEval: the download is not the file of",
        "topical-chat",
    )
    assert not (tmp_path / "cache" / "github" / chat).exists()


def test_another_content_than_the_catalogues_is_refused(
    hub: Hub, summaries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = SOURCES["summeval"].home
    assert isinstance(true, HuggingFace)
    known_as(SOURCES["summeval"], monkeypatch, home=replace(true, sha256=("f" * 64,)))
    refused(
        r"has the SHA-256 \w+\.\.\., but should have ffffffffffff\.\.\.; it was removed", "summeval"
    )
    known_as(SOURCES["summeval"], monkeypatch, home=true)
    assert len(load_dataset("summeval")) == 2


def test_a_file_that_differs_from_the_fetched_one_is_refused(chat: str, hub: Hub) -> None:
    path = Path(load_dataset("topical-chat").location)
    path.write_bytes(path.read_bytes() + b"\n")
    refused(r"was changed after the download .* delete it to download it again", "topical-chat")
    path.unlink()
    assert len(load_dataset("topical-chat")) == 2
    # A mirror with other contents than before.
    path.unlink()
    hub.files[chat] += b"\n"
    refused("the download is not the file of commit", "topical-chat")


@pytest.mark.parametrize(("fault", "reason"), [
    ("not found", "404"), ("busy", "503"), ("too many", "429"),
    ("half", "IncompleteRead|peer closed connection"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["topical-chat", "summeval"])
def test_downloads_that_fail(
    hub: Hub,
    chat: str,
    summaries: str,
    name: str,
    fault: Any,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    hub.faults[chat if name == "topical-chat" else summaries] = fault
    refused(f"{name} could not be fetched .*({reason})", name)
    if name == "topical-chat":
        assert hub.asked.count(f"GET {chat}") == (1 if fault == "not found" else 3)
    hub.faults.clear()
    assert len(load_dataset(name)) == 2


def test_what_keeps_a_file_from_being_fetched_is_named(
    hub: Hub, chat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("")
    refused(r"Not a directory \(.*cache/github.*\)", "topical-chat")
    (tmp_path / "cache").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Hub, "tree", lambda *_: b"<html>")
        refused("not a GitHub API", "topical-chat")
    del hub.files[chat]
    refused(
        r"maszhongming/UniEval has no reproduce/.*topical_chat\.json at d33e7b6c", "topical-chat"
    )
    point_to("http://127.0.0.1:9", monkeypatch)
    (tmp_path / "cache").rename(tmp_path / "before")
    refused(
        r"could not be fetched from https://github.com/maszhongming/UniEval/.*: Connection refused; try again, or "
        r"give the folder with topical_chat\.json or topical_chat\.jsonl with --data-dir",
        "topical-chat",
    )


def test_several_files_with_names_that_need_quoting(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = known_as(SOURCES["llmbar"], monkeypatch, items=8)
    for path in (path_of(source, number) for number in range(8)):
        hub.files[path] = as_bytes(path, [INSTRUCTION])
    dataset = load_dataset("llmbar")
    assert len(dataset) == 8
    assert any("LLMEval^2" in asked for asked in hub.asked)


@pytest.mark.parametrize(("name", "package", "extras"), [
    ("topical-chat", "pooch", "hub"), ("summeval", "huggingface_hub", "hub,frames"),
    ("mt-bench", "pyarrow", "hub,frames"),
])  # fmt: skip
def test_a_package_not_installed(
    name: str, package: str, extras: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == package else found(name)
    )
    words = rf'{package}, which .* not installed: pip install "jurygraph\[{extras}\]", or give the folder .* with'
    with pytest.raises(UsageError, match=words):
        load_dataset(name)


def test_homes_are_fixed_and_blobs_are_gits(tmp_path: Path) -> None:
    for source in SOURCES.values():
        if source.home:
            assert re.fullmatch("[0-9a-f]{40}", revision(source)), source.name
        if isinstance(source.home, HuggingFace):
            assert [len(digest) for digest in source.home.sha256] == [64] * len(
                source.forms[0].files
            )
    path = tmp_path / "hello"
    path.write_bytes(b"hello\n")
    assert git_blob(path) == blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("name", ["topical-chat", "summeval"])
def test_a_file_that_is_too_large_is_refused_and_not_kept(
    name: str, hub: Hub, chat: str, summaries: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = chat if name == "topical-chat" else summaries
    monkeypatch.setattr(fetch, "MOST_BYTES", 4_000)
    hub.files[path] = b" " * 5_000
    error = refused("the limit for a download is 4,000 bytes; download it yourself", name)
    assert Path(path).name in str(error) and "--data-dir" in str(error)
    kept = [
        file
        for file in (tmp_path / "cache").rglob("*")
        if file.is_file() and file.suffix != ".json"
    ]
    assert all(file.stat().st_size < 4_000 for file in kept)
    assert Path(path).name not in {file.name for file in kept}
    # Smaller files of the same hub are fetched as before.
    monkeypatch.setattr(fetch, "MOST_BYTES", 1 << 20)
    if name == "topical-chat":
        hub.files[path] = as_bytes(
            path, [said("hi", system, "ho") for system in (TRUTH, "Argmax Decoding")]
        )
        home: Any = CHAT.home
        listed = tmp_path / "cache" / "github" / home.repository / f"{revision(CHAT)}.tree.json"
        listed.unlink()
        assert len(load_dataset(name)) == 2
