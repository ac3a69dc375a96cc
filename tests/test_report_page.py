"""Test the page in a browser: no requests, hostile text as text, search and sorting."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jurygraph.eval.report.debates import Debates, run_folders
from jurygraph.eval.report.page import write_page
from jurygraph.eval.report.sections import compose

from .on_demand import OnDemand
from .processes import HANG_GUARD
from .sample_run import debate, failed, turn, write_run
from .sample_study import OFFLINE, judge, study

if TYPE_CHECKING:
    from playwright import sync_api as playwright_api
    from playwright.sync_api import Browser, Dialog, Page, expect
else:
    playwright_api = OnDemand("playwright.sync_api")
    expect = OnDemand("playwright.sync_api", "expect")

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs a browser: {CHROMIUM} is not there"),
]

SCRIPT = "</script><script>window.hurt = 1; alert(1)</script><img src=x onerror='window.hurt = 1'>"
NAME = "evil\u202e<b onmouseover=alert(1)>\x1b[31m"
MANY = 300


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page over two runs: a few debates that matter, and many that fill the list."""
    folder = tmp_path_factory.mktemp("page")
    zalgo = "z" + "\u0310\u0349" * 200
    hostile = (
        turn(0, "scorer", SCRIPT, 4.0, model=SCRIPT),
        turn(1, "critic", f"{SCRIPT}\u2028nul\x00 half\ud800 {zalgo} \x1b[2J"),
        turn(1, "scorer", "x" * 200_000, 3.0),
        turn(2, "critic", "\u0645\u0631\u062d\u0628\u0627", True),
    )
    matter = [
        debate("near", words="A quiet harbour."),
        debate("far", score=5.0, human=1.0, score_by_round=(2.0, 5.0)),
        debate("unresolved", stop_reason="max_rounds", rounds=4),
        failed("broken", error=f"the reply was {SCRIPT}"),
        debate("dear", cost_usd=3.5, calls=90),
        debate("long", rounds=9),
        debate(NAME, transcript=hostile, warnings=(SCRIPT,)),
    ]
    others = [debate(f"item-{number:03}", "more", aspect="fluency") for number in range(MANY)]
    texts = {"source": f"Boats. {SCRIPT}", "candidate": "A harbour."}
    items = [{"id": "near", **texts, "human": {"coherence": 3}}]
    one = write_run(folder / "one", [*matter, *others], items)
    other = write_run(
        folder / "other", [debate("near", words="The second opinion.", score=2.0)], items
    )
    made = study(notes=(OFFLINE,), judges=(*study().judges, judge(SCRIPT, protocol="more")))
    manifests = [(each, json.loads((each / "run.json").read_text())) for each in (one, other)]
    write_page(compose(made, SCRIPT), Debates(run_folders(manifests)), folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=1000 * HANG_GUARD)
    with playwright_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield started
        started.close()


class Opened:
    """An open page, with all of its errors and requests."""

    def __init__(self, browser: Browser, file: Path, address: str = "", **context: Any) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, **context}
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(1000 * HANG_GUARD)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.url = file.as_uri()
        self.page.goto(self.url + address)
        self.page.wait_for_selector("html[data-ready]")

    def _refuse(self, dialog: Dialog) -> None:
        self.wrong.append(dialog.message)
        dialog.dismiss()

    def listed(self) -> list[str]:
        """The items in view in the list, from the top."""
        return self.page.locator("#rows .id").all_inner_texts()

    def choose(self, select: str, label: str) -> None:
        self.page.locator(f"#{select}").select_option(label=label)


@pytest.fixture
def opened(browser: Browser, page_file: Path) -> Iterator[Any]:
    all_of_them: list[Opened] = []

    def open_page(address: str = "", **context: Any) -> Opened:
        all_of_them.append(Opened(browser, page_file, address, **context))
        return all_of_them[-1]

    yield open_page
    for each in all_of_them:
        assert each.wrong == []
        assert set(each.asked) <= {each.url}
        each.context.close()


def test_it_asks_for_nothing_and_says_what_it_must(opened: Any) -> None:
    it = opened(java_script_enabled=True)
    assert it.asked == [it.url]
    expect(it.page.locator(".disclosure").first).to_contain_text(OFFLINE)
    expect(it.page.locator("h1")).to_have_text("debate agrees best with your annotators")
    policy = it.page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    expect(it.page.locator("#count")).to_have_text(f"{MANY + 8:,} verdicts")


def test_the_farthest_from_people_come_first_and_other_orders_can_be_chosen(opened: Any) -> None:
    it = opened()
    assert it.listed()[0] == "far"
    for label, first in (
        ("Unresolved first", "unresolved"),
        ("Failed first", "broken"),
        ("Cost, highest first", "dear"),
        ("Rounds, most first", "long"),
        ("Score change, largest first", "far"),
        ("Run order", "near"),
    ):
        it.choose("sort", label)
        assert it.listed()[0] == first, label


def test_filters_narrow_the_list_and_the_count_is_told(opened: Any) -> None:
    it = opened()
    count = it.page.locator("#count")
    assert count.get_attribute("aria-live") == "polite"
    for select, label, left in (
        ("protocol", "more", MANY),
        ("aspect", "coherence", 0),
        ("protocol", "All", 8),
        ("status", "Failed", 1),
        ("status", "All", 8),
        ("reason", "max rounds", 1),
        ("run", "other", 0),
        ("reason", "All", 1),
    ):
        it.choose(select, label)
        expect(count).to_have_text(f"{left} of {MANY + 8} verdicts")
        assert label != "max rounds" or it.listed() == ["unresolved"]


def test_only_what_is_in_view_is_on_the_page(opened: Any) -> None:
    it = opened()
    assert len(it.listed()) < 40
    it.page.locator("#list").evaluate("list => list.scrollTo(0, 200 * 66)")
    it.page.wait_for_selector('#rows [aria-posinset="200"]')
    assert len(it.listed()) < 60
    places = it.page.locator("#rows li").evaluate_all(
        "rows => rows.map(row => Number(row.ariaPosInSet))"
    )
    assert places == sorted(places)


def test_search_goes_through_everything_that_was_said_and_marks_what_was_sought(
    opened: Any,
) -> None:
    it = opened()
    it.page.keyboard.press("/")
    evil = "evil[U+202E]<b onmouseover=alert(1)>[U+001B][31m"
    for sought, found in (
        ("second opinion", {"near"}),
        ("onerror='window", {evil, "broken", "near"}),
        ("item-123", {"item-123"}),
        ("boats.", {"near"}),
        ("no such words", set()),
    ):
        it.page.keyboard.type(sought)
        expect(it.page.locator("#count")).to_have_text(re.compile(r"^\d+ of \d+ verdicts$"))
        assert set(it.listed()) == found, sought
        it.page.keyboard.press("Escape")
        expect(it.page.locator("#count")).to_have_text(f"{MANY + 8} verdicts")
    it.page.keyboard.type("QUIET")
    expect(it.page.locator("#count")).to_have_text(re.compile("^1 of"))
    it.page.locator("#rows a").first.click()
    expect(it.page.locator("article.sheet mark")).to_have_text("quiet")


def test_a_debate_is_read_round_by_round(opened: Any) -> None:
    it = opened("#item=near&run=1")
    sheet = it.page.locator("article.sheet")
    expect(sheet.locator("h3")).to_have_text("near")
    expect(sheet.locator(".facts")).to_contain_text("Label3")
    assert sheet.locator(".round h4").all_inner_texts() == ["Opening", "Round 1", "Round 2"]
    assert sheet.locator(".turn b").all_inner_texts() == ["Scorer", "Critic", "Scorer", "Critic"]
    chips = sheet.locator(".turn .chip").all_inner_texts()
    assert chips == ["4", "objects", "3", "changed from 4", "no issue"]
    for text in ("Boats.", "A harbour."):
        expect(sheet.locator(".texts")).to_contain_text(text)


def test_hostile_text_is_text(opened: Any) -> None:
    it = opened()
    it.choose("sort", "Run order")
    it.page.locator("#rows a").nth(6).click()
    sheet = it.page.locator("article.sheet")
    expect(sheet.locator("h3")).to_contain_text("evilU+202E<b onmouseover=alert(1)>U+001B[31m")
    said = sheet.locator(".said").all_inner_texts()
    assert said[0] == SCRIPT
    assert f"{SCRIPT}U+2028nulU+0000" in said[1]
    assert len(said[2]) < 10_000
    it.page.get_by_role("button", name="Show the other").click()
    assert len(sheet.locator(".said").nth(2).inner_text()) == 200_000
    assert it.page.evaluate("window.hurt") is None
    assert (
        it.page.evaluate("document.querySelectorAll('img, b[onmouseover], iframe, link').length")
        == 0
    )
    assert (
        it.page.evaluate("[...document.scripts].filter(script => script.type === 'module').length")
        == 1
    )
    assert it.page.title() == SCRIPT


def test_keys_go_through_the_debates_and_back(opened: Any) -> None:
    it = opened()
    it.page.keyboard.press("j")
    expect(it.page.locator("article.sheet h3")).to_have_text("far")
    it.page.keyboard.press("j")
    second = it.page.locator("#rows a").nth(1)
    expect(second).to_have_attribute("aria-current", "true")
    it.page.keyboard.press("k")
    expect(it.page.locator("article.sheet h3")).to_have_text("far")
    it.page.locator("#rows a").first.focus()
    it.page.keyboard.press("ArrowDown")
    expect(second).to_be_focused()
    it.page.keyboard.press("Enter")
    expect(it.page.locator("article.sheet h3")).to_be_focused()
    it.page.keyboard.press("Escape")
    expect(it.page.locator("article.sheet")).to_have_count(0)
    expect(second).to_be_focused()


def test_two_debates_stand_side_by_side_and_the_address_remembers(opened: Any) -> None:
    it = opened("#item=near&run=1")
    it.page.get_by_label("Compare with").select_option(label="debate · coherence · other")
    sheets = it.page.locator("article.sheet")
    expect(sheets).to_have_count(2)
    expect(sheets.nth(1)).to_contain_text("The second opinion.")
    boxes = [sheets.nth(place).bounding_box() for place in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    expect(it.page.locator(".texts")).to_have_count(1)
    again = opened(it.page.url.removeprefix(it.url))
    expect(again.page.locator("article.sheet")).to_have_count(2)
    again.page.keyboard.press("Escape")
    expect(again.page.locator("article.sheet")).to_have_count(1)
    nothing = "No verdict on the item <img src=x onerror=alert(1)> is on this page."
    expect(opened("#item=<img src=x onerror=alert(1)>").page.locator("#open")).to_have_text(nothing)


def test_light_and_dark_follow_the_system_or_the_button(opened: Any) -> None:
    def paper(it: Opened) -> str:
        return str(it.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = opened(color_scheme="light")
    dark = opened(color_scheme="dark")
    assert paper(light) == "rgb(253, 253, 252)"
    assert paper(dark) == "rgb(21, 24, 29)"
    axis = "getComputedStyle(document.querySelector('figure svg text')).fill"
    assert light.page.evaluate(axis) != dark.page.evaluate(axis)
    button = light.page.get_by_role("button", name="Colours")
    button.click()
    button.click()
    assert paper(light) == "rgb(21, 24, 29)"
    light.page.reload()
    assert paper(light) == "rgb(21, 24, 29)"


def test_nothing_scrolls_sideways_but_tables(opened: Any) -> None:
    it = opened()
    beside = "#item=near&run=1&beside=2%2F0%2Fdebate%2Fcoherence"
    for width in (360, 390, 768, 1280):
        it.page.set_viewport_size({"width": width, "height": 740})
        for address in ("#top", "#item=near&run=1", "#item=far", beside):
            it.page.goto(it.url + address)
            it.page.wait_for_timeout(30)
            assert it.page.evaluate("document.documentElement.scrollWidth") <= width, (
                width,
                address,
            )


def test_on_a_phone_a_debate_has_the_screen_to_itself(opened: Any) -> None:
    it = opened(viewport={"width": 360, "height": 740}, has_touch=True)
    it.page.locator("#rows a").first.click()
    expect(it.page.locator("article.sheet")).to_be_visible()
    expect(it.page.locator("#list")).to_be_hidden()
    it.page.get_by_role("button", name="All verdicts").click()
    expect(it.page.locator("#list")).to_be_visible()
    expect(it.page.locator("article.sheet")).to_have_count(0)


def test_on_a_phone_a_section_opens_when_it_is_asked_for_and_no_column_is_lost(opened: Any) -> None:
    it = opened(viewport={"width": 360, "height": 740}, has_touch=True)
    folds = it.page.locator("details.fold")
    first, *others = [
        folds.nth(place).evaluate("fold => fold.open") for place in range(folds.count())
    ]
    assert first and others and not any(others)
    right = "drawn => drawn.map(each => each.getBoundingClientRect().right)"
    for wide in ("figure svg", "#leaderboard td"):
        assert max(it.page.locator(wide).evaluate_all(right)) <= 360
    columns = it.page.locator("#leaderboard .stacks td").evaluate_all(
        "all => all.map(c => c.dataset.column)"
    )
    assert {"judged", "failed", "calls", "cost"} <= set(columns)
    last = it.page.locator("main > section:has(details.fold)").last
    last.locator("h2").click()
    assert last.locator("details.fold").evaluate("fold => fold.open")


def test_it_can_be_used_without_seeing_it(opened: Any) -> None:
    it = opened("#item=near&run=1")
    page = it.page
    assert page.evaluate("document.documentElement.lang") == "en"
    for role, count in (("main", 1), ("banner", 1), ("contentinfo", 1), ("search", 1)):
        expect(page.get_by_role(role)).to_have_count(count)
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))"
    )
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    bare = page.evaluate(
        """[...document.querySelectorAll('input,select,button')]
            .filter(each => !each.labels?.length && !each.ariaLabel && !each.textContent.trim()).map(each => each.id)"""
    )
    assert bare == []
    assert page.evaluate(
        "[...document.querySelectorAll('table')].every(each => each.caption?.textContent)"
    )
    assert page.evaluate("[...document.querySelectorAll('th')].every(each => each.scope)")
    assert page.evaluate(
        "[...document.querySelectorAll('figure svg')].every(each => each.role === 'img')"
    )
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(each => each.id)")
    assert len(ids) == len(set(ids))
    page.reload()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()


CONTRAST = """() => {
  const channel = (part) => ((part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const shine = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility() || element.closest('svg, script')) continue;
    const [one, other] = [shine(parts(getComputedStyle(element).color)), shine(behind(element))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) poor.push(texts.currentNode.data.trim().slice(0, 40));
  }
  return [...new Set(poor)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(opened: Any, scheme: str) -> None:
    it = opened("#item=near&run=1", color_scheme=scheme)
    it.page.wait_for_selector("article.sheet")
    assert it.page.evaluate(CONTRAST) == []


def test_without_scripts_the_tables_are_there(browser: Browser, page_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    expect(page.get_by_role("row", name="debate 0.395")).to_be_visible()
    expect(page.get_by_text("need JavaScript")).to_be_visible()
    context.close()
