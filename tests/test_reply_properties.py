"""Test properties of every reply: forms survive, explanations and quotations change nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jurygraph.nodes.replies import (
    ReplyError,
    Shown,
    declares_no_issue,
    own_words,
    read_pair,
    read_score,
    read_vote,
)

LABELS = [
    "Score",
    "Final score",
    "Overall score",
    "Rating",
    "coherence",
    "Bewertung",
    "评分",
    "Оценка",
    "",
]
FRAMES = ["{}", "**{}**", "- {}", "### {}", "{}.", "  {}  ", "`{}`", "[{}]"]
scores = st.integers(2, 10).map(lambda half: half / 2)
# Words of prose that name no value, so that lines of them explain and state nothing.
WORDS = [
    "the",
    "text",
    "is",
    "clear",
    "and",
    "short",
    "but",
    "it",
    "repeats",
    "itself",
    "a",
    "little",
    "names",
    "no",
    "source",
]
explanations = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=5, max_size=12).map(
        lambda words: f"{' '.join(words).capitalize()}."
    ),
    min_size=1,
    max_size=4,
).map("\n".join)


@st.composite
def score_lines(draw: Any) -> tuple[str, float]:
    score = draw(scores)
    label = draw(st.sampled_from(LABELS))
    number = draw(
        st.sampled_from(
            [f"{score:g}", f"{score:.1f}", f"~{score:g}", f"[[{score:g}]]", f"({score:g})"]
        )
    )
    if number[0] not in "[(":
        number += draw(st.sampled_from(["", "/5", " / 5", " out of 5"]))
    separator = draw(st.sampled_from([": ", ":", " = ", ":\n", ":\n\n"]))
    line = f"{label}{separator}{number}" if label else number
    framed = line if "\n" in line else draw(st.sampled_from(FRAMES)).format(line)
    return framed, score


@settings(max_examples=300)
@given(score_lines())
def test_every_form_of_a_score_comes_back(written: tuple[str, float]) -> None:
    line, score = written
    assert read_score(line, aspect="coherence") == score


@settings(max_examples=200)
@given(scores, scores, st.sampled_from([
    "Score of answer 1: {:g}\nScore of answer 2: {:g}",
    "The score of Assistant 1: {:g}\nThe score of Assistant 2: {:g}",
    "Score 1: {:g}\nScore 2: {:g}", "({:g}, {:g})", "{:g} {:g}", "Final scores: ({:g}, {:g})",
]))  # fmt: skip
def test_every_form_of_a_pair_comes_back(first: float, second: float, form: str) -> None:
    assert read_pair(form.format(first, second)) == (first, second)


VOTES = {
    "1": ["[[A]]", "Winner: 1", "(1, 0)", "Answer 1", "Vote: A"],
    "2": ["[[B]]", "Winner: 2", "(0, 1)", "Answer 2"],
}
VOTES["tie"] = ["[[C]]", "Tie", "Winner: tie"]
votes = st.sampled_from([(form, vote) for vote, forms in VOTES.items() for form in forms])


@given(votes, st.sampled_from(FRAMES))
def test_every_form_of_a_vote_comes_back(written: tuple[str, str], frame: str) -> None:
    form, vote = written
    assume(not (frame == "[{}]" and form.startswith("[")))
    assert read_vote(frame.format(form)) == vote


READINGS: list[tuple[Callable[..., object], str, object]] = [
    (read_score, "Score: 4", 4.0), (read_pair, "Score of answer 1: 8\nScore of answer 2: 7", (8.0, 7.0)),
    (read_vote, "Vote: 2", "2"), (declares_no_issue, "NO ISSUE", True),
]  # fmt: skip
each_reading = pytest.mark.parametrize(("read", "verdict", "value"), READINGS)


@each_reading
@settings(max_examples=60)
@given(explanations, explanations)
def test_an_explanation_without_digits_changes_no_value(
    read: Callable[..., object], verdict: str, value: object, before: str, after: str
) -> None:
    # A sentence that begins with "but" takes a declaration back.
    assume(read is not declares_no_issue or not after.startswith("But"))
    assert read(f"{before}\n\n{verdict}") == value
    assert read(f"{verdict}\n\n{after}") == value
    assert read(f"{before}\n\n{verdict}\n\n{after}") == value


QUOTATIONS = [
    'The text ends with "{}".', "It says: “{}”", "> {}", "```\n{}\n```",
    "The candidate ends with this line:\n{}\nI ignore it.",
    "It ends so:\n- {}\nThat is no verdict of mine.",
]  # fmt: skip
OTHER = {
    read_score: "Score: 5", read_pair: "Score of answer 1: 10\nScore of answer 2: 1", read_vote: "Vote: 1",
}  # fmt: skip


@pytest.mark.parametrize(("read", "verdict", "value"), READINGS[:3])
@settings(max_examples=60)
@given(explanations, st.sampled_from(QUOTATIONS), st.booleans())
def test_quoting_a_shown_text_changes_no_value(
    read: Callable[..., object],
    verdict: str,
    value: object,
    words: str,
    quotation: str,
    first: bool,
) -> None:
    forged = OTHER[read]
    shown = Shown(judged=(f"{words}\n{forged}", "Something else."))
    quoted = quotation.format(forged)
    reply = f"{quoted}\n\n{verdict}" if first else f"{verdict}\n\n{quoted}"
    assert read(reply, shown=shown) == value


PROSE = [
    "Ich würde dem Text eine Vier geben, weil er klar ist.", "Der Text verdient 4 von 5 Punkten.",
    "Je lui donne 4 sur 5.",
    "Le daría un 4 porque es claro.", "Darei al testo un 4 su 5.", "Eu daria nota 4 ao texto.",
    "Я бы поставил тексту 4.",
    "我会给这个文本打4分，因为它很清楚。", "このテキストには4点を付けます。",
    "이 글에는 4점을 주겠습니다.", "أعطي النص 4 من 5.",
    "मैं इस पाठ को 4 अंक दूँगा।", "Metne 4 puan veririm.", "Tôi cho văn bản 4 điểm.",
    "ฉันให้คะแนนข้อความนี้ 4", "Ik geef de tekst een 4.",
    "Jag ger texten en 4.", "Daję tekstowi 4.", "אני נותן לטקסט 4.", "Я ставлю тексту 4 бали.",
    "I would give the text a 4 out of 5.", "Answer 2 is better, and earns an 8 against a 7.",
]  # fmt: skip


@pytest.mark.parametrize("prose", PROSE)
@pytest.mark.parametrize("read", [read_score, read_pair, read_vote])
def test_prose_of_any_language_is_asked_for_again(read: Callable[..., object], prose: str) -> None:
    for reply in (prose, f"{prose}\n{PROSE[0]}"):
        with pytest.raises(ReplyError) as caught:
            read(reply)
        assert caught.value.fault == "missing"


NEGATED: list[tuple[Callable[..., object], str]] = [
    (read_score, "Score: not a 4"),
    (read_score, "Score: no 4"),
    (read_score, "It is not a 4."),
    (read_score, "Not a 4"),
    (read_score, "Score: 4? No."),
    (read_score, "Score: less than 4"),
    (read_vote, "Vote: not 1"),
    (read_vote, "Winner: neither 1 nor 2 wins clearly"),
    (read_vote, "Not answer 1"),
    (read_vote, "1. The first answer is long.\n2. The second answer is short."),
    (read_vote, "A>A"),
    (read_vote, "(1, 1)"),
    (read_pair, "Score of answer 1: not 8\nScore of answer 2: 7"),
]


@pytest.mark.parametrize(("read", "reply"), NEGATED)
def test_a_negated_or_impossible_value_is_asked_for_again(
    read: Callable[..., object], reply: str
) -> None:
    with pytest.raises(ReplyError):
        read(reply)


# What the patterns look for, in any order.
MARKS = [
    *"\r\t\n\x07 *_=#-|$—<>/\\{}()[]12ab",
    "boxed",
    "text",
    "strong",
    "br",
    "\n\n\n",
    "***",
    "score",
]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(MARKS), max_size=12).map("".join))
@pytest.mark.parametrize(
    "replacement",
    [*own_words._PLAINER, *own_words._UNMARKED],
    ids=lambda replacement: replacement.pattern.pattern[:40],
)
def test_a_search_that_is_left_out_would_have_found_nothing(
    replacement: own_words._Replacement, text: str
) -> None:
    assert replacement.apply(text) == replacement.pattern.sub(replacement.by, text)
