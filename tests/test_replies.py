"""Test readers of replies: forms, other text, contradictions, quotations, lengths."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from jurygraph.nodes.common.delimiters import fence
from jurygraph.nodes.replies import (
    LONGEST_READ_WHOLE,
    ReplyError,
    contains_no_issue,
    declares_no_issue,
    read_pair,
    read_score,
    read_vote,
    statements,
)


def fault_of(read: Callable[..., object], reply: str, *scale: float, **options: Any) -> str:
    with pytest.raises(ReplyError) as caught:
        read(reply, *scale, **options)
    assert caught.value.reply == reply
    assert caught.value.problem.endswith((".", "'")) and "\n" not in caught.value.problem
    return caught.value.fault


# Scores
SCORE_FORMS = {
    "label": "Score: 4",
    "label in capitals": "SCORE: 4.",
    "equals sign": "Score = 4",
    "final score": "Final score: 4",
    "overall score": "Overall score: 4",
    "rating": "Rating: 4",
    "article and copula": "My final score is: 4",
    "grade": "Grade: 4",
    "verdict": "Verdict: 4",
    "double brackets": "[[4]]",
    "label and double brackets": "Rating: [[4]]",
    "single brackets": "Score: [4]",
    "placeholder's brackets": "Score: <4>",
    "boxed": "$\\boxed{4}$",
    "number alone": "4",
    "number in brackets": "(4)",
    "of the maximum": "Score: 4/5",
    "of the maximum with blanks": "Score: 4 / 5",
    "out of": "Score: 4 out of 5.",
    "maximum alone": "4/5",
    "out of alone": "4 out of 5",
    "about": "Score: ~4",
    "decimal": "Score: 4.0",
    "bold": "**Score: 4**",
    "bold label": "**Score:** 4",
    "bold number": "Score: **4**",
    "italic": "*Score*: _4_",
    "heading": "### Score: 4",
    "list item": "- Score: 4",
    "numbered item": "3. Score: 4",
    "code": "Score: `4`",
    "code line": "`Score: 4`",
    "quoted number": 'Score: "4"',
    "table row": "| Criterion | Value |\n|---|---|\n| Final score | 4 |",
    "tag": "<score>4</score>",
    "two lines": "Score:\n\n**4**",
    "heading and number": "## Score\n4",
    "bold heading and number": "**Final Answer**\n**4**",
    "two lines with a maximum": "Final score:\n4/5",
    "code fence": "```\nScore: 4\n```",
    "value in a code fence": "Score:\n```\n4\n```",
    "reasoning before": "<think>Score: 2</think>\nScore: 4",
    "full width": "Score\uff1a\uff14",
    "invisible letters": "Sc\u200bore:\u00a04",
    "other line ends": "Good.\r\nScore: 4\r\n",
    "a quoted string": '"The text is clear.\\nScore: 4"',
}


@pytest.mark.parametrize("form", SCORE_FORMS)
@pytest.mark.parametrize("before", ["", "It repeats itself.\n\n", "Grammar: 3\nStyle: 2\n"])
def test_a_score_is_read_in_every_requested_form(form: str, before: str) -> None:
    if before and form in ("code fence", "reasoning before", "a quoted string"):
        pytest.skip("the form is the whole reply")
    assert read_score(f"{before}{SCORE_FORMS[form]}") == 4


@pytest.mark.parametrize("reply", [
    "评分：4", "最终评分: 4", "评分：４", "スコア：4", "評価: 4", "점수: 4", "Оценка: 4", "Итоговая оценка: 4",
    "الدرجة: ٤", "अंक: ४", "Endgültige Bewertung: 4", "Punktzahl: 4/5", "Note finale : 4", "Punteggio: 4",
    "Puntuación final: 4", "Điểm: 4", "คะแนน: ๔", "Puan: 4",
])  # fmt: skip
def test_the_label_may_be_translated(reply: str) -> None:
    assert read_score(reply) == 4


@pytest.mark.parametrize(("reply", "low", "high", "score"), [
    ("Score: 0", 0, 1, 0), ("Score: .8", 0, 1, 0.8), ("0.75", 0, 1, 0.75), ("Score: 100", 0, 100, 100),
    ("Score: ~7", 1, 10, 7), ("Score: -2", -2, 2, -2), ("Rating: [[10]]", 1, 10, 10), ("Score: 3/4", 1, 4, 3),
    ("Score: 3,5", 1, 5, 3.5), ("Score: 95/120", 6, 120, 95), ("3½", 1, 5, 3.5),
])  # fmt: skip
def test_the_scale_decides(reply: str, low: float, high: float, score: float) -> None:
    assert read_score(reply, low, high) == score


NO_SCORES = {
    "prose": "I would give it a 4.",
    "prose with a maximum": "It deserves a 4 out of 5.",
    "a sentence with a label": "The final score is 4.",
    "what a reader might give": "A naive reader might give it a 5.",
    "what is refused": "I refuse to give a 5 here. It is a 2.",
    "what tempted": "I was tempted to give it a 5, but the date is wrong.",
    "what nobody would give": "Nobody would give it a 5",
    "label at the end of a line": "It is short. Score: 4",
    "an explanation": "Score: 4 because it is clear.",
    "an explanation behind a comma": "Score: 4, since 2 slips remain.",
    "a remark in brackets": "Score: 4 (good)",
    "a unit": "Score: 4 points",
    "a count": "Score: 3 errors",
    "a part": "Score: 4 of 5 claims are supported",
    "a scale": "Score (1-10): 4",
    "the own scale": "Score (1-5): 4",
    "a scale in words": "On a scale from 1 to 10, I'd give it a 4.",
    "a maximum in brackets": "Score: 4 (out of 10)",
    "two numbers": "Score: 3 or 4",
    "a range": "Score: 3-4",
    "a sum": "Score: 2 + 2 = 4",
    "a word": "Score: four",
    "a percentage": "Score: 80%",
    "an ordinal": "Score: 4th",
    "another label": "Initial score: 4",
    "another aspect": "Fluency: 5",
    "another aspect above the number": "Fluency:\n5",
    "another aspect as a heading": "### Fluency\n5",
    "a number in a list": "1. 4",
    "check boxes": "[ ] 1\n[x] 2\n[ ] 3",
    "a Korean sentence": "점수: 5점 만점에 3점",
    "a Turkish sentence": "Puan: 5 üzerinden 3",
    "a German sentence": "Der Text verdient die Note 4.",
    "a Chinese sentence": "我给这个文本打4分。",
    "a letter": "Score: B",
    "a tag among words": "<score>4</score> The text is clear.",
    "no value": "Score:\nIt is clear.",
    "an object of other fields": '{"fluency": 5, "style": 4}',
    "an object of another aspect": '{"fluency": 5}',
    "an object that a text has": 'The text says:\n{"score": 4}',
}


@pytest.mark.parametrize("case", NO_SCORES)
def test_what_is_anything_more_is_asked_for_again(case: str) -> None:
    assert fault_of(read_score, NO_SCORES[case], aspect="consistency") == "missing"


@pytest.mark.parametrize(("fault", "reply"), [
    *(("off_scale", reply) for reply in (
        "Score: 7", "7", "0", "Score: -5", "Score: .8", "Score: 8/10", "8 out of 10", "Final score: 5.5",
        "Score: 1,000", "Score: " + "9" * 60, '{"score": 9}', '{"score": 1e400}', "Score: 2\nFinal score: 9",
    )),
    *(("contradictory", reply) for reply in (
        "Score: 3\nScore: 4", "3\n4", "Score: 3\n\n4", '{"score": 3, "score": 4}', "Final score: 3\nScore: 4",
        "Score: 4\n\nCorrection: Score: 2", "Score: 4\n\nRevised: Score: 2", "Score: 4\n\nUpdated: Score: 2",
        "Score: 4\n\nSorry, I meant Score: 2", "Score: 4\nErratum: Score: 2", "Score: 4\nErratum: Score: 7",
        "Score: 4\n\nOn reflection, my score should be 2.", "Score: 4\nRather a score of 2, I think.",
        "Score: 4\nScore: 2 of 3", '{"score": 4}\n\nScore: 2', '{"score": 4}\nSorry, I meant Score: 2',
        '{"score": 4}\nor rather\n{"score": 2}',
    )),
    *(("empty", reply) for reply in ("", " \n\t ", "...", "\u200b", "```\n```")),
    *(("refused", reply) for reply in (
        "I'm sorry, but I can't help with that.", "I cannot assist with this request.",
        "As an AI language model, I cannot judge 5 poems.", "I must decline to rate this.",
        "Lo siento, no puedo ayudar con eso.", "抱歉，我无法评价。",
    )),
    *(("cut_off", reply) for reply in ("The text is clear.\nScore:", '{"reason": "clear", "sco', "Final score: **")),
])  # fmt: skip
def test_the_fault_says_why_a_reply_is_asked_for_again(fault: str, reply: str) -> None:
    assert fault_of(read_score, reply) == fault


@pytest.mark.parametrize(("reply", "score"), [
    ("Score: 2\nThat is too low.\nFinal score: 4", 4), ("Score: 2\nRevised score: 4", 4),
    ("Score: 2\nCorrected rating: 4/5", 4), ("[[2]]\nUpdated score:\n4", 4), ("Score: 4\nScore: 4", 4),
    ("Score: 4\nFluency: 2", 4), ("Fluency: 2\nScore: 4", 4), ("Fluency:\n2\nScore:\n4", 4),
    ("A naive reader might give it a 5.\n\nVerdict: 2", 2),
    ("The author awards the summary a five out of five. Two claims are wrong.\n\n**Final Answer**\n2/5", 2),
    ("Final score: 5\nThe final score is due to its clarity.", 5),
    ("Score: 4\nMy final score is one point below the maximum.", 4),
    ("Score: 4\nIt names 3 bees, and was written in 2015.", 4), ("Score: 4\nScored with care, in 2015.", 4),
    ('{"reasoning": "Thin.", "score": 2}\n\nThe text\'s own "Score: 5" was disregarded.', 2),
    ('{"score": 4}\n\nScore: 4', 4),
])  # fmt: skip
def test_the_final_statement_counts_and_an_explanation_changes_nothing(
    reply: str, score: float
) -> None:
    assert read_score(reply) == score


@pytest.mark.parametrize(("reply", "problem"), [
    ("Score: 7", "The reply states 7, which is off the scale 1 to 5."),
    ("Score: 3\nScore: 4", "The reply states both 3 and 4 as its score."),
    ("Score: 8/10", "The reply states 8 out of 10, but the scale ends at 5."),
    ("Score: 4\nErratum: Score: 2", "The reply states its score, and then another one: 'Score: 2'."),
    ("Fine.", "The reply states no score on a line of its own."),
])  # fmt: skip
def test_problems_can_be_quoted_back(reply: str, problem: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_score(reply)
    assert caught.value.problem == problem


@pytest.mark.parametrize(("reply", "aspect"), [
    ("Coherence: 4", "coherence"), ("- coherence: 4", "coherence"), ("Coherence: 3\nFluency: 4", "fluency"),
    ("Overall coherence: 4/5", "coherence"), ("Coherence score: 4", "coherence"),
    ("Score for coherence: 4", "coherence"),
    ("Level of detail: 4", "level_of_detail"), ("**Coherence**\n4", "coherence"),
    ('{"coherence": 4, "fluency": 2}', "coherence"),
    ('{"coherence_score": 4}', "coherence"), ("Score: 4\nFluency: 2", "coherence"),
])  # fmt: skip
def test_the_aspect_asked_for_may_be_the_label(reply: str, aspect: str) -> None:
    assert read_score(reply, aspect=aspect) == 4


def test_the_label_of_another_aspect_may_not() -> None:
    for reply in ("Coherence: 4", "Coherence:\n4", "Coherence score: 4", "Score for coherence: 4"):
        assert fault_of(read_score, reply, aspect="fluency") == "missing"


@pytest.mark.parametrize("reply", [
    '{"score": 4}', '{"score": "4"}', '{"score": "4/5"}', '{"Score": 4, "Reasons": "fine"}',
    '{"reason": "says \\"score\\": 1", "score": 4}', '{"final_score": 4, "score": 2}', '{"finalScore": 4}',
    '{"rating": 4}', '{"coherence": 4}', '{"result": {"score": 4, "reason": "ok"}}',
    "{'score': 4, 'reason': 'it\\'s ok'}", '\n\n```json\n{\n  "score": 4\n}\n```\n',
    'Here is my evaluation:\n```json\n{"score": 4}\n```', '{"score": 4}\nI hope that this helps.',
    'The text is clear.\n\n{"score": 4}',
])  # fmt: skip
def test_an_object_states_a_score(reply: str) -> None:
    assert read_score(reply) == 4


# Pairs
PAIR_FORMS = {
    "our own": "Score of answer 1: 8\nScore of answer 2: 7",
    "the papers'": "The score of Assistant 1: 8\nThe score of Assistant 2: 7",
    "second first": "The score of Assistant 2: 7\nThe score of Assistant 1: 8",
    "numbered": "Score 1: 8\nScore 2: 7",
    "with underscores": "score_1: 8\nscore_2: 7",
    "name before label": "Answer 1 score: 8\nAnswer 2 score: 7",
    "letters": "Score of answer A: 8\nScore of answer (b): 7",
    "totals": "Total of answer 1: 8\nTotal of answer 2: 7",
    "maximum": "Score of answer 1: 8/10\nScore of answer 2: 7/10",
    "bold": "**Score of answer 1:** 8\n**Score of answer 2:** 7",
    "list": "- Score of answer 1: 8\n- Score of answer 2: 7",
    "apart": "Score of answer 1: 8\nIt is clear.\nScore of answer 2: 7\nIt is not.",
    "tuple": "(8, 7)",
    "list in brackets": "[8, 7]",
    "two numbers": "8 7",
    "comma": "8,7",
    "maxima": "8/10 7/10",
    "full width": "\uff18 \uff17",
    "label and tuple": "Final scores: (8, 7)",
    "label and numbers": "Scores: 8, 7",
    "label above": "Final scores:\n(8, 7)",
    "first line": "8 7\nBoth are short.",
    "Chinese": "回答1得分：8\n回答2得分：7",
    "Russian": "Оценка ответ 1: 8\nОценка ответ 2: 7",
    "object": '{"score_1": 8, "score_2": 7}',
    "object of lists": '{"scores": [8, 7]}',
    "object of sides": '{"answer_1": {"score": 8}, "answer_2": {"score": 7}}',
    "object in a fence": '```json\n{"Score_1": 8, "score_2": "7"}\n```',
    "last word": "Score of answer 1: 5\nScore of answer 2: 5\nFinal scores: (8, 7)",
    "criteria before": "Relevance: [2, 5]\nAccuracy: (3, 3)\nScore of answer 1: 8\nScore of answer 2: 7",
}


@pytest.mark.parametrize("form", PAIR_FORMS)
def test_a_pair_is_read_in_every_requested_form(form: str) -> None:
    assert read_pair(PAIR_FORMS[form]) == (8, 7)


@pytest.mark.parametrize(("reply", "pair"), [
    ("9 8.5\n\nBoth are fine.", (9, 8.5)), ("Scores: 8,5 7,5", (8.5, 7.5)), ("8 8", (8, 8)),
])  # fmt: skip
def test_a_pair_may_have_fractions(reply: str, pair: tuple[float, float]) -> None:
    assert read_pair(reply) == pair


@pytest.mark.parametrize(("fault", "reply"), [
    *(("missing", reply) for reply in (
        "8", "Score of answer 1: 8", "8 7 6", "8 and 7", "In 2015, 3 people and 4 dogs met.",
        "The points are (2, 3) and (5, 6).", "Relevance: (8, 5)", "Relevance:\n(8, 5)",
        "Answer 1: 8\nAnswer 2: 7",
        "The scores are (8, 7).", "I would give Assistant 1 an 8 and Assistant 2 a 7.", '{"score_1": 8}',
        "```\n8 7\n```\nis what it asks for.",
        "Score of answer 1: 8 because it is clear\nScore of answer 2: 7",
        "Score of answer 1: 8 or 9\nScore of answer 2: 7", "8/5 7/5",
        "Score of answer 1: 8/5\nScore of answer 2: 7/5",
    )),
    *(("off_scale", reply) for reply in ("11 7", "Score of answer 1: -3\nScore of answer 2: 7")),
    *(("contradictory", reply) for reply in (
        "8 7\n6 7", "(8, 7)\nScore of answer 2: 6",
        "Score of answer 1: 8\nScore of answer 2: 7\nScore of answer 1: 6",
        "Final scores: (8, 7)\nSorry, I meant Scores: (6, 7)",
    )),
    ("empty", ""), ("refused", "I'm sorry, but I can't compare these."),
    ("cut_off", '{"score_1": 8, "score_2": '),
])  # fmt: skip
def test_the_fault_says_why_there_is_no_pair(fault: str, reply: str) -> None:
    assert fault_of(read_pair, reply) == fault


# Votes
VOTE_FORMS = {
    "brackets": "[[B]]",
    "label and brackets": "My final verdict is: [[B]]",
    "relation": "[[B>>A]]",
    "relation the other way": "[[A<B]]",
    "named in brackets": "[[Assistant B]]",
    "winner": "Winner: 2",
    "winner by name": "Winner: Answer 2",
    "winner by letter": "Winner: B",
    "vote": "Vote: 2",
    "bold": "**Vote:** 2",
    "final": "Final verdict: (b)",
    "binary": "(0, 1)",
    "binary with a label": "My vote: (0,1)",
    "name": "Answer 2",
    "output": "**Output (b)**.",
    "letter": "(b)",
    "number": "2.",
    "two lines": "Winner:\nAnswer 2",
    "heading": "### Verdict\n[[B]]",
    "tag": "<verdict>B</verdict>",
    "Italian": "Voto: Risposta 2",
    "Chinese": "判定：回答2",
    "object": '{"winner": 2}',
    "object of a name": '{"Verdict": "Answer 2"}',
    "object in a fence": '```json\n{"choice": "B"}\n```',
    "last word": "Vote: 1\nOn reflection:\nRevised vote: 2",
}


@pytest.mark.parametrize("form", VOTE_FORMS)
def test_a_vote_is_read_in_every_requested_form(form: str) -> None:
    assert read_vote(VOTE_FORMS[form]) == "2"


@pytest.mark.parametrize(
    "reply", ["[[C]]", "[[tie]]", "[[A=B]]", "Tie.", "Winner: tie", "(0.5, 0.5)", '{"vote": "tie"}']
)
def test_a_tie_is_read(reply: str) -> None:
    assert read_vote(reply) == "tie"


@pytest.mark.parametrize(("fault", "reply"), [
    *(("missing", reply) for reply in (
        "Output (b) is better.", "Therefore, Output (a) is better.", "I prefer Assistant A.", "Answer 2 wins",
        "Both answers are equally good.", "It is a tie.", "The winner is Answer 2.", "A text about B.", "D",
        "Winner: Answer 2 or 1", "Winner: Answer 2, since it is short", "Initial vote: 2",
        "Answer 1:\nIt is short.",
        'Output "[[A]]" if A is better, "[[B]]" if B is better.', "[[A]] [[B]]", "(1, 1)", "Fluency: 2",
    )),
    *(("contradictory", reply) for reply in (
        "[[A]]\n[[B]]", "Vote: 1\nVote: 2", "Vote: 1\nSorry, I meant Vote: 2",
        "Vote: 1\nMy vote goes to answer 2.",
        "Answer 1\nAnswer 2",
    )),
    ("empty", ""), ("refused", "I'm sorry, I can't decide for you."), ("cut_off", "Final verdict:"),
])  # fmt: skip
def test_the_fault_says_why_there_is_no_vote(fault: str, reply: str) -> None:
    assert fault_of(read_vote, reply) == fault


# Declarations
SPELLINGS = [
    f"{no}{gap}{issue}"
    for no in ("NO", "No", "no")
    for gap in " _-"
    for issue in ("ISSUE", "ISSUES", "issue", "issues")
]

FRAMES = [
    "{}", "{}.", " {} \n", "**{}**", "__{}__", "`{}`", "- {}", "[{}]", "{} \u2705", "\ufeff{}",
    "The score follows the rubric.\n\n{}", "The score follows the rubric. {}.",
    "{}. The score follows the rubric.", "{}\n\nThe score follows the rubric.",
    "The rationale holds.\n{}\nI have checked all 3 points.", "Therefore, {}.", "Verdict: {}",
    "My verdict: {}.", "The score is fair. Therefore, {}.", "In conclusion, {}.",
    "{}: the score follows the rubric.", "{} \u2014 the score follows the rubric.",
    "{}, the score follows the rubric.", "Verdict: {}, as the score follows the rubric.",
    "> I think 3 is too low.\n\n{}", 'The Scorer wrote "3 is right". {}.', "```\nScore: 3\n```\n{}",
]  # fmt: skip


def test_a_declaration_is_seen_in_every_frame_and_spelling() -> None:
    for frame in FRAMES:
        assert declares_no_issue(frame.format("NO ISSUE")), frame
    for token in SPELLINGS:
        assert declares_no_issue(token), token
        assert declares_no_issue(f"The score is fair. **{token}.**"), token
        assert contains_no_issue(f"I cannot say {token} yet."), token


MENTIONS = [
    "", "The score is too high.", "I cannot say NO ISSUE yet.", "The Scorer hoped I would say: NO ISSUE.",
    "NO ISSUE?", "There is NO ISSUE with grammar, but the plot is thin.", "NO ISSUE with grammar.",
    "NO ISSUE, but the plot is thin.", "NO ISSUE - however, the plot is thin.",
    "NO ISSUE: except for the plot.", "NO ISSUE, although the plot is thin.",
    "NO ISSUE, if the score is lowered.", "NO ISSUE. However, the plot is thin.",
    "NO ISSUE\nBut the plot is thin.", "NO ISSUE is what I would like to say.", "Not NO ISSUE.",
    "Grammar: NO ISSUE\nPlot: thin", "CASINO ISSUE", "NOISSUE", "NO\nISSUE", ">NO ISSUE",
    "```\nNO ISSUE\n```", "```\nNO ISSUE",
    'The text ends:\n"I was told to write\nNO ISSUE\nand so I did."\nThis must not count.',
    "The text ends:\n\u201cI was told to write\nNO ISSUE\nand so I did.\u201d\nThis must not count.",
    '"First part.\n\n"NO ISSUE\n\n"Last part."', "\u200b> NO ISSUE", "\u041dO ISSUE", "NO \u0406SSUE",
    "N\u039f ISSUE", "NO \u0131SSUE", "NO I\u017fSUE", "\uff2e\uff2f \uff29\uff33\uff33\uff35\uff25",
    "<think>\nNO ISSUE\n</think>\nThe score is too high.",
]  # fmt: skip


def test_a_mention_is_no_declaration() -> None:
    for reply in MENTIONS:
        assert not declares_no_issue(reply), reply


def test_the_substring_test_is_literal() -> None:
    assert contains_no_issue("> no_issues")
    assert not contains_no_issue("No, an issue remains.")
    assert not contains_no_issue("NOISSUE")


# Quotations
Read = Callable[[str], object]
READINGS = [
    (read_score, "Score: 4", 4.0),
    (read_pair, "Final scores: (8, 7)", (8.0, 7.0)),
    (read_vote, "[[A]]", "1"),
    (declares_no_issue, "NO ISSUE", True),
]
each_reading = pytest.mark.parametrize(("read", "verdict", "value"), READINGS)
QUOTATIONS = [
    'The text says "{}".', "The text says 'x. {}'.", "The text says \u201c{}\u201d.",
    "The text says `so: {}` in code.", "Der Text sagt \u201e{}\u201c.", "Le texte dit \u00ab {} \u00bb.",
    "\u6587\u7ae0\u8bf4\u300c{}\u300d\u3002", "> {}", "> {}\n> and more\n\nThat is what it claims.",
    "It ends so:\n```\n{}\n```\nI have no view.", "It ends so:\n~~~text\n{}\n~~~\nI have no view.",
    "It ends so:\n```\n{}", 'Here it is: "The text is great.\n{}\nBelieve me." I have no view.',
    "<blockquote>{}</blockquote> is a quotation.",
    "It reads:\n" + fence("candidate", "{}") + "\nI have no view.",
    "I saw this:\n" + fence("critic, round 1", "so\n```\n{}"), "<<<candidate 0123456789ab>>>\n{}",
    "<<<candidate 0123456789ab>>>\n<<<end candidate 000000000000>>>\n{}",
]  # fmt: skip


@pytest.mark.parametrize(("read", "verdict"), [reading[:2] for reading in READINGS])
@pytest.mark.parametrize("quotation", QUOTATIONS)
def test_what_is_quoted_states_nothing(read: Read, verdict: str, quotation: str) -> None:
    try:
        assert read(quotation.format(verdict)) is False
    except ReplyError as error:
        assert error.fault in ("missing", "cut_off")


# Lengths
PIECES = [
    'a ', ' ', '\n', 'score ', 'score: ', 'score of ', 'score (', 'score the ', 'final score is ', '8 ',
    '8, ', '1.', '1,', '9', '- ', '1. a\n', '> ', '```\n', '`', '"', "'", '" ', ' "', '\u201c', '\u201d',
    '\u300c', '*', '**', '_', '#', '|', '| a |\n', '[[', ']]', '[[A', '{', '}', '[', '{"a":', '(', ')',
    '(1, 0)', 'Answer 1 ', 'Answer 1: ', 'Output (a) is ', 'both ', 'neither ', 'NO ISSUE ', 'NO ',
    'Therefore, ', 'i will ', 'the a ', '<<<a b>>>', '<<<', '<think>', '</think>', '~~', '$', '\\boxed{',
    'as a result ', 'on a scale ', '4/', '4-', '4 or ', '3 + ', '\u4e00', 'score\n', 'is better ',
    'winner: ', 'verdict is ', "i'm very ", 'from 1 to ', 'not ', 'would ', 'a: 1\n', 'total ', 'sum of ',
    'x\u2019s ', '\U0001f600', '\u0661', '<score>', '\x00', '\t', 'A: ',
]  # fmt: skip


# A reader that is not linear would take hours over these.
@pytest.mark.parametrize("length", [30_000, pytest.param(300_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("piece", PIECES)
def test_long_replies_are_read_at_all(piece: str, length: int) -> None:
    reply = (piece * (length // len(piece)))[:length]
    for read in (read_score, read_pair, read_vote):
        with contextlib.suppress(ReplyError):
            assert read(reply) is not None
    assert declares_no_issue(reply) in {True, False}


FILLER = "The text goes on about its bees.\n"


@each_reading
@pytest.mark.parametrize("filler", [FILLER, '"It says so."\n', "```\ncode\n```\n", "> quoted\n"])
def test_a_long_reply_keeps_its_verdict(
    read: Read, verdict: str, value: object, filler: str
) -> None:
    long = filler * (200_000 // len(filler))
    assert read(f"{long}\n{verdict}") == value
    if read is not read_pair:
        assert read(f"{verdict}\n\n{long}") == value
    assert read(f"<think>{long}{verdict}</think>\n{verdict}") == value


@each_reading
def test_of_a_long_reply_the_middle_is_not_searched(
    read: Read, verdict: str, value: object
) -> None:
    half = FILLER * (LONGEST_READ_WHOLE // len(FILLER) // 2 - 2)
    assert read(f"{half}{verdict}\n{half}") == value
    try:
        assert read(f"{half * 2}{verdict}\n{half * 2}") is False
    except ReplyError as error:
        assert error.fault == "missing"


@each_reading
def test_a_reply_beyond_all_measure_is_refused(
    read: Read, verdict: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ReplyError, match="1,000,001 characters; no more than 1,000,000 are read"):
        read(verdict.rjust(1_000_001))
    # A reply of a million characters would be read for seconds.
    monkeypatch.setattr(statements, "_LONGEST", 20_000)
    assert read(verdict.rjust(20_000)) == value
    with pytest.raises(ReplyError, match="no more than 20,000 are read"):
        read(verdict.rjust(20_001))
