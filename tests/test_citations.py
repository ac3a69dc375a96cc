"""Test that every protocol of a paper cites it, and that all places cite the same papers."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jurygraph.graphs.engine.registry import protocols
from jurygraph.state.citations import Citation

from .processes import Command
from .source_tree import beside


def by_paper() -> dict[Citation, list[str]]:
    named: dict[Citation, list[str]] = {}
    for name, module in protocols().items():
        if module.protocol.citation is not None:
            named.setdefault(module.protocol.citation, []).append(name)
    return named


def test_a_protocol_has_a_citation_if_its_source_is_a_paper() -> None:
    without = [name for name, module in protocols().items() if module.protocol.citation is None]
    assert not [name for name in without if re.search(r"\d{4}|LLM", find_source(name))]
    assert {"cascade", "review"} <= {*without}
    assert len(by_paper()) == 6


def find_source(name: str) -> str:
    return str(protocols()[name].protocol.source)


@pytest.mark.parametrize("paper", by_paper(), ids=lambda paper: paper.cite)
def test_a_bibtex_entry_has_the_paper_s_title_year_and_address(paper: Citation) -> None:
    plain = re.sub(r"[{}]", "", paper.bibtex)
    assert f"title = {paper.title}," in plain
    assert f"year = {paper.cite[-4:]}" in plain
    assert f"url = {paper.url}" in plain
    assert re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{5}(v\d)?", paper.url)
    assert paper.bibtex.count("{") == paper.bibtex.count("}")


def test_the_citation_file_has_the_papers_of_all_protocols() -> None:
    listed = yaml.safe_load(beside("CITATION.cff").read_text(encoding="utf-8"))["references"]
    named: dict[str, dict[str, Any]] = {reference["url"]: reference for reference in listed}
    assert {*named} == {paper.url for paper in by_paper()}
    for paper, names in by_paper().items():
        reference = named[paper.url]
        assert (reference["title"], str(reference["year"])) == (paper.title, paper.cite[-4:])
        assert [name for name in names if name not in reference["notes"]] == []
        families = [author["family-names"] for author in reference["authors"]]
        authors = re.sub(r"\s+", " ", re.search(r"author = \{(.*?)\}", paper.bibtex, re.S)[1])  # type: ignore[index]
        assert [author.partition(",")[0] for author in authors.split(" and ")] == families


@pytest.mark.parametrize("paper", by_paper(), ids=lambda paper: paper.cite)
def test_the_docs_have_the_entry_and_a_link_on_each_protocol_s_page(paper: Citation) -> None:
    index = beside("docs/protocols/index.md").read_text(encoding="utf-8")
    assert paper.bibtex in index
    named = ", ".join(f"`{name}`" for name in by_paper()[paper])
    assert f"- {named}: {paper.cite}, [*{paper.title}*]({paper.url})" in index
    for name in by_paper()[paper]:
        page = beside(f"docs/protocols/{name}.md").read_text(encoding="utf-8")
        assert paper.url in page, name


def test_the_command_prints_addresses_and_entries(command: Command) -> None:
    assert command("protocols") == 0
    for paper, names in by_paper().items():
        assert f"{', '.join(names)}: {paper.cite}, {paper.url}" in command.printed
    assert command("protocols", "--bibtex") == 0
    assert command.printed.strip() == "\n\n".join(paper.bibtex for paper in by_paper())


def test_a_protocol_without_a_paper_has_no_entry_to_print(command: Command, tmp_path: Path) -> None:
    assert command("new-protocol", "own_scorers", "--in", str(tmp_path)) == 0
    file = str(tmp_path / "own_scorers.py")
    assert command("protocols", file) == 0
    assert "bibtex" not in command.printed
    assert command("protocols", file, "--bibtex") == 2
    assert "its protocol has no `citation`" in command.errors
