"""Readers of replies: every form, every trap, every fault. All replies here are made up."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from jurygraph.nodes.delimiters import fence
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

STATED_SCORES = {
    4: ("SCORE: 4.", "Score = 4", "Score - 4", "Score:\n\n**4**", "**Score: 4**", "*Score*: _4_",
        "## Score\n4", "Score: `4`", "`Score: 4`", 'Score: "4"', "Score: (4)", "Score: 4 out of 5.",
        "Score: four", "Score: Four out of five.", "Score: 4 because it is clear.",
        "Score: 4, since 2 slips remain.", "Score (1-5): 4", "Score [1-5]: 4",
        "Score (1 = worst, 5 = best): 4", "Score on a scale of 1 to 5: 4",
        "On a scale of 1 to 5, I would give it a 4.", "The score of Assistant 1: 4", "Coherence score: 4",
        "Coherence Score: 4/5\nThe text flows.", "It deserves a 4.", "This is a solid text; 4 out of 5.",
        "The text is fine. 4", "I raise my score from 3 to 4.", "I revise the score to 4.",
        "Score: 3 -> 4", "Score: 3 \u2192 4", "Score: ~~3~~ 4", "<rating>4</rating> The text reads well.",
        "<score>4</score>", "The text is clear. 4/5", "The final score is $\\boxed{4}$.", "Score: $4$",
        "| Criterion | Value |\n|---|---|\n| Final score | 4 |", "Score: 2 + 2 = 4",
        "<think>First I thought 2. Score: 2</think>\nScore: 4", "Let me see. Score: 2</think>Score: 4"),
    3.5: ("Score: 3,5", "Score: three and a half"),
    2.5: ("Score: two point five", "Rating: [[2.5]]"),
    2: ("On a scale from 1 (worst) to 5 (best), this earns a 2.",
        "### Rating: [[2]]\n\nThe text is weak.", "My rating is 2.", "The rating is therefore 2.",
        "A recalculated score could be 2.", "A score of 2 might be more appropriate."),
    3: ("Overall rating: 3 out of 5", "My final score for this summary is 3.",
        "Therefore the final score remains 3.", "1. Coherence: 3", "* **Coherence**: 3",
        "Coherence: 3. The turns follow each other.", "Coherence = 3",
        "I would score it a 3 out of 5 for fluency.", "I would score the summary as a 3 out of 5.",
        "I'd rate this response a 3.",
        "Therefore, a score of 3 for engagingness seems more appropriate."),
    5: ("It deserves a perfect score of 5.",
        "The summary is fluent, making it a 5 out of 5 in terms of fluency."),
    1: ("Response: 1", "It has gaps, scoring a one out of five.", "It has gaps, with a score of one.",
        "The text is poor (1/5)."),
}  # fmt: skip

BARE_SCORES = {
    3: (" 3 \n", "(3)", "**3**", "`3`", "- 3", "3/5", "3 out of 5", "3 stars", "3. (somewhat)",
        "3. Somewhat clear", "3 - it wanders in the middle.", "3, somewhat clear",
        "3. The reply is clear but repeats itself.", "3\n\nThe reply is clear.",
        "The reply is clear.\n3.", "Three", "Good (3)",
        "The reply is rather clear (3). It names its subject.", "1. 3"),
    1: ("Yes, 1",),
}  # fmt: skip

OTHER_LANGUAGES = {
    4: ("评分：4", "最终评分: 4分", "评分：４", "分数是4", "スコア：4", "評価: 4点", "점수: 4점", "Оценка: 4",
        "Итоговая оценка: 4 из 5", "Оценка: четыре", "الدرجة: ٤", "अंक: ४",
        "Endgültige Bewertung: 4 von 5", "Punktzahl: vier", "Note finale : 4 sur 5", "Punteggio: 4 su 5",
        "Il punteggio finale è 4.", "Un punteggio di 4 su 5 è giusto.", "Puntuación: 4 de 5",
        "Puntuación final: cuatro", "Điểm: 4", "คะแนน: ๔", "Score\uff1a\uff14", "\ufeffScore: 4",
        "Sc\u200bore: 4", "Score:\u00a04", "Score:\u30004", "Score:\r\n4\r\n", "Score:\u20284"),
    3.5: ("Bewertung: 3,5",),
    1: ("\u0661",),
    3: ("\uff13", "\U0001d7d1", "3\ufe0f\u20e3"),
}  # fmt: skip

LAST_WORD = {
    4: ("Score: 2\nOn reflection that is too low.\nScore: 4", "Grammar: 3\nStyle: 2\nFinal score: 4",
        "Final score: 4\n\nGrammar: 3\nStyle: 2",
        "Score: 4\n\nA score of 5 would require more detail, and a score of 2 would be too harsh.",
        "The Scorer gave 2. I disagree. Final score: 4",
        "The Scorer's score of 2 is too low. I give it a 4.",
        "[[2]] is my first thought. After review: [[4]]",
        "It misses a perfect score of 5 by little. I would give it a 4.",
        "I would give it a 4. Small slips prevent it from reaching a perfect score of 5.",
        "I would give it a 4. It needs more depth to make it a perfect relevance score of 5.",
        "Lengths:\nArea = 3\nScore: 4"),
    3: ("A score of 5 would require more detail. Score: 3", "3 + 4 = 7 points lost; score: 3",
        "Rating: 3\nRationale: others may give it a 5.",
        "Breakdown:\n1. Grammar: 5/5\n2. Style: 1/5\n\nOverall, I would score the text a 3 out of 5.",
        "It earns a score of 3 out of 5.\n\nBreakdown:\n* Grammar: 5/5 (clean)\n* Style: 1/5 (flat)",
        "It earns a score of 3.\n\n1. Grammar is clean. Score: 5 out of 5.\n2. Style is flat. Score: 1 out of 5."),
    2: ("The score is fair at 2 of 3 points made. Final score: 2",),
}  # fmt: skip

NO_SCORES = {
    "missing": ("In 2015, 3 people read it.", "Version 2.1 of the text is longer.",
        "On 3/4/2015 it rained.", "The 4th sentence is odd.", "It gives 5 reasons.",
        "It covers 4 out of 5 key points.", "It repeats itself on a scale of 1 to 5.", "Score: (1-5)",
        "Score: good", "1. It is short.\n2. It is clear.", "1. Clear\n2. Short\n3. Dull",
        "Coherence: 3\nFluency: 4", "Coherence: 3, Fluency: 4", "Word count: 3", "Number of errors: 2",
        "Year: 4", "We compute:\nArea = 3\nso it is right.", "Step 2: read the text.",
        "The team won with a score of 3-1.", "Yes", "$ERROR$", "I would not give it a 4.",
        "A score of 5 would require more detail.", "B", "x = 4", "Score: 4th"),
    "off_scale": ("Score: 7", "7", "0", "Score: -1", "Score: 8/10", "8 out of 10", "Score: 80%",
        "Final score: 5.5", "Score: 1,000", "Score: " + "9" * 400, '{"score": 9}', '{"score": 1e400}',
        "Score: 2\nScore: 9", "Score: 2\nFinal score: 9"),
    "contradictory": ("Score: 3 or 4", "Score: 3 or maybe 4", "Score: 3-4", "Score: 3\u20134",
        "Score: 3 to 4", "Score: between 3 and 4", "3 or 4", "3-4", "Final score: 3, 4",
        "Score: three or four", "I would give it a 3 or 4.", "[[3]] or [[4]]", "3\n4",
        '{"score": 3, "score": 4}', "The score of Assistant 1: 3\nThe score of Assistant 2: 4"),
    "empty": ("", " \n\t ", "...", "\u200b", "```\n```"),
    "refused": ("I'm sorry, but I can't help with that.", "I\u2019m sorry, I can\u2019t rate this text.",
        "I cannot assist with this request.", "As an AI language model, I cannot judge 5 poems.",
        "I am unable to provide a score.", "I must decline to rate this.",
        "I won't give a score of 5 to this.", "Lo siento, no puedo ayudar con eso.",
        "申し訳ありませんが、評価できません。", "抱歉，我无法评价。"),
    "cut_off": ("The text is clear.\nScore:", '{"reason": "clear", "sco', "Final score: **"),
}  # fmt: skip

STRUCTURED = {
    4: ('{"score": "4"}', '{"score": "4/5"}', '{"reason": "says \\"score\\": 1", "score": 4}',
        '{"finalScore": 4, "grammar_score": 2}', '{"final_score": 4, "score": 2}', '{"rating": 4}',
        '{"coherence": 4}', '{"analysis": "In 2015 ...", "coherence": 4}',
        '{"result": {"score": 4, "reason": "ok"}}', "{'score': 4, 'reason': 'it\\'s ok'}",
        "{'score': 4, 'reason': \"it's ok\",}", "```\nScore: 4\n```",
        '\n\n```json\n{\n  "score": 4\n}\n```\n', 'Here is my evaluation:\n```json\n{"score": 4}\n```',
        'The text is clear.\n\n{"score": 4}', '"The text is clear.\\nScore: 4"'),
    4.5: ('{"score": 4.5, "reason": "Score: 1"}',),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "problem"), [
    ("Score: 7", "The reply states 7, which is off the scale 1 to 5."),
    ("Score: 3 or 4", "The reply states both 3 and 4 as its score."),
    ("Score: 8/10", "The reply states 8 out of 10, but the scale ends at 5."),
    ("Fine.", "The reply states no score."),
])  # fmt: skip
def test_problems_can_be_quoted_back(reply: str, problem: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_score(reply)
    assert caught.value.problem == problem


@pytest.mark.parametrize(("reply", "low", "high", "score"), [
    ("Score: 0", 0, 1, 0), ("0.75", 0, 1, 0.75), ("Yes, 1", 0, 1, 1), ("Score: 100", 0, 100, 100),
    ("Score: 80%", 0, 100, 80), ("Score: -2", -2, 2, -2), ("Rating: [[10]]", 1, 10, 10),
    ("Score: 3/4", 1, 4, 3), ("The text covers 4 parts. Total: 95/120. Final score: 95", 6, 120, 95),
])  # fmt: skip
def test_the_scale_decides(reply: str, low: float, high: float, score: float) -> None:
    assert read_score(reply, low, high) == score


def test_the_aspect_picks_its_line() -> None:
    reply = "Coherence: 3\nFluency: 4\nStyle: 1"
    assert read_score(reply, aspect="fluency") == 4
    assert read_score("The fluency of the text is 3 (good).", aspect="fluency") == 3
    assert read_score('{"coherence": 2, "fluency": 4}', aspect="Fluency") == 4
    assert read_score("Fluency: 3\nFinal score: 4", aspect="fluency") == 4


# --- pairs --------------------------------------------------------------------------------------------------------
PAIRS = {
    (8, 7): ("8 7", "8,7", "(8, 7)", "8/10 7/10", "8/10, 7/10", "8 and 7", "8 vs 7", "\uff18 \uff17",
        "The score of Assistant 1: 8\nThe score of Assistant 2: 7",
        "Evaluation evidence: both are short.\nThe score of Assistant 1: 8\nThe score of Assistant 2: 7",
        "The score of Assistant 2: 7\nThe score of Assistant 1: 8",
        "Score of answer 1: 8/10\nScore of answer 2: 7/10", "**Answer 1:** 8\n**Answer 2:** 7",
        "Answer 1 score: 8\nAnswer 2 score: 7", "Answer A: 8\nAnswer B: 7",
        "Assistant (a): 8, Assistant (b): 7", "Score 1: 8\nScore 2: 7", "score_1: 8\nscore_2: 7",
        "Final scores: 8 and 7", "The scores are (8, 7).",
        "In conclusion, the scores are (8, 7) for Assistant 1 and Assistant 2.",
        "I would give Assistant 1 a score of 8 and Assistant 2 a score of 7.",
        "Assistant 1 receives a score of 8. Assistant 2 gets 7/10.",
        "The points are (2, 3) and (5, 6).\n\nAssistant 1: 8\nAssistant 2: 7",
        "Assistant 1:\nx = 4\nAssistant 2:\nx = 5\n\nScores:\nAssistant 1: 8\nAssistant 2: 7",
        "Answer 1: 5\nAnswer 2: 5\nOn reflection:\nAnswer 1: 8\nAnswer 2: 7",
        "| | Answer 1 | Answer 2 |\n| Total | 8 | 7 |", '{"score_1": 8, "score_2": 7}',
        '{"scores": [8, 7]}', '{"scores": {"1": 8, "2": 7}}',
        '{"answer_1": {"score": 8}, "answer_2": {"score": 7}}',
        "{'assistant_a': 8, 'assistant_b': 7, 'reason': 'x'}",
        '```json\n{"score_1": 8, "score_2": "7"}\n```', "回答1：8分\n回答2：7分", "アシスタント1：8\nアシスタント2：7",
        '"10 10" is what the text asks for.\nScores: 8 7'),
    (9, 8.5): ("9 8.5\n\nBoth are fine.",),
    (8.5, 7): ("8,5 7",),
    (8.5, 7.5): ("8,5 7,5",),
    (8, 8): ("Both assistants receive a score of 8.",),
}  # fmt: skip


TOTALS = {
    (95, 87): ("(95, 87)", "Relevance: [18, 15]\nAccuracy: [17, 16]\nFinal scores: (95, 87)",
        "Relevance: (18, 15)\nAccuracy: (17, 16)\nDepth: (15, 14)\n\n(95, 87)",
        "Final score tuple: (95, 87)\n\nRelevance: (18, 15)",
        "Relevance\n- Answer 1: 18\n- Answer 2: 15\nTotal\n- Answer 1: 95\n- Answer 2: 87",
        "Relevance: Answer 1: 18, Answer 2: 15\nTotal: Answer 1: 95, Answer 2: 87",
        "Answer 1: 18 + 17 + 16 + 15 + 15 + 14 = 95\nAnswer 2: 15 + 14 + 14 + 15 + 15 + 14 = 87",
        "Sum: 95, 87", "Previous scores: (60, 70)\nFinal scores: (95, 87)",
        "**Final Score:** (95, 87)\nFeedback for Advocate 1: name 3 sources.",
        "Final tally: (95/120, 87/120)",
        '{"relevance": [18, 15], "total": {"answer_1": 95, "answer_2": 87}}'),
}  # fmt: skip


NO_PAIRS = {
    "empty": ("",),
    "refused": ("I'm sorry, but I can't compare these.",),
    "missing": ("8", "Assistant 1: 8", "8 7 6", "In 2015, 3 people and 4 dogs met.",
        "The points are (2, 3) and (5, 6).", "Relevance: (8, 5)\nAccuracy: (7, 6)",
        "```\n8 7\n```\nis what it asks for.", '{"score_1": 8}'),
    "off_scale": ("11 7", "Assistant 1: 8/5\nAssistant 2: 7/5", "Assistant 1: -3\nAssistant 2: 7"),
    "contradictory": ("Assistant 1: 8 or 9\nAssistant 2: 7",
        "The score of Assistant 1: 7-8\nThe score of Assistant 2: 7"),
    "cut_off": ('{"score_1": 8, "score_2": ',),
}  # fmt: skip


# --- votes --------------------------------------------------------------------------------------------------------
VOTES = {
    "1": ("[[A]]", "[[A>>B]]", "**Final verdict:** **[[A]]**",
        '"My final verdict is that A is better: [[A>B]]"',
        "Assistant B's answer is longer. Still, my verdict: [[A]]",
        "[[A]]\n\nAssistant B is better at jokes only.", "(1, 0)", "Therefore, Output (a) is better.",
        "Output (a) is clear. Output (b) is not. Therefore, Output (a) is better.",
        "Output (b) is better. It is shorter.\n\nTherefore, Output (a) is better.", "Summary 1",
        "A: Summary #1 is more fluent.", "Verdict: A", "My choice: Response 1",
        "I prefer Assistant A over Assistant B.", "I choose Response 1 because it is short.",
        "Assistant A's answer is better than Assistant B's.", "Assistant A outperforms Assistant B.",
        "The first answer is better.", "1", "A", "A > B", '{"winner": "A"}', "{'preference': '1'}",
        "回答1更好。[[A]]"),
    "2": ("[[B]]", "[[Assistant B]]", "[[B >> A]]", "[[A<B]]", "My final verdict is: [[B>>A]]",
        'Final verdict: "[[B>A]]".', "［［Ｂ］］".replace("Ｂ", "B"), "(0, 1)", "(0,1)", "My vote: (0, 1)",
        "Output (b) is better.", "**Output (b)**", "Output (b)\n\nIt answers the question.",
        "Output (b) (it answers the question)", "Summary #2", "Summary 2 is more fluent.",
        "Answer 2 wins", "Answer 2 wins.", "The winner is Answer 2.", "Winner: Answer 2", "Winner: B",
        "My vote: 2", "I prefer Assistant B.", "The better answer is Answer 2.",
        "The second response is better than the first response.", "Answer 1 is worse.",
        "Answer 2 is the winner here.", "Answer 2 better follows the question.", "2.", "(b)",
        "Verdict: B > A", "<verdict>B</verdict>", '{"winner": 2}', '{"verdict": "Answer 2"}',
        '```json\n{"choice": "B"}\n```', "両方とも有用です。したがって、アシスタントBの回答が優れています。[[B]]",
        "A vote for the text 'Answer 1 is better' would be wrong. Answer 2 is better.",
        'The text asks me to print "[[A]]". Final verdict: [[B]]'),
    "tie": ("[[C]]", "[[tie]]", "[[A=B]]", "C: Both summaries are equally fluent.", "tie", "Tie.",
        "It is a tie.", "Verdict: tie", "Both answers are equally good.",
        "Therefore, neither answer is better.", "There is no clear winner.",
        '{"vote": "tie", "reason": "Answer 1 is better at jokes"}'),
}  # fmt: skip


NO_VERDICTS = {
    "empty": ("",),
    "refused": ("I'm sorry, I can't decide for you.",),
    "missing": ("Assistant A and Assistant B both answer the question.",
        "Output (a) lists 3 facts. Output (b) lists 2 facts.",
        "Output (a) is more detailed, but Output (b) is more accurate.", "Is Output (a) better?",
        "It is hard to say whether Output (a) is better.", "Output (a) is not better.", "A text about B.",
        "D", 'Output "[[A]]" if A is better, "[[B]]" if B is better.'),
    "contradictory": ("[[A]] [[B]]", "[[A>B]] for style.\n\n[[B>A]] for facts."),
    "cut_off": ("Final verdict:",),
}  # fmt: skip


# --- what is read of the tables -----------------------------------------------------------------------------------
@pytest.mark.parametrize(("read", "options", "table"), [
    *((read_score, {}, table) for table in (STATED_SCORES, BARE_SCORES, OTHER_LANGUAGES, LAST_WORD)),
    (read_score, {}, STRUCTURED), (read_pair, {}, PAIRS),
    (read_pair, {"low": 6, "high": 120}, TOTALS), (read_vote, {}, VOTES),
])  # fmt: skip
def test_a_stated_verdict_is_read(read: Callable[..., object], options: Any, table: Any) -> None:
    for expected, replies in table.items():
        for reply in replies:
            assert read(reply, **options) == expected, reply


@pytest.mark.parametrize(
    ("read", "options", "table"),
    [
        (read_score, {}, NO_SCORES),
        (read_score, {}, {"missing": ["D"]}),  # letters are no scores
        (read_pair, {}, NO_PAIRS),
        (read_vote, {}, NO_VERDICTS),
    ],
)
def test_what_is_no_verdict_is_a_fault_and_never_clamped(
    read: Callable[..., object], options: Any, table: Any
) -> None:
    for fault, replies in table.items():
        for reply in replies:
            with pytest.raises(ReplyError) as caught:
                read(reply, **options)
            assert (caught.value.fault, caught.value.reply) == (fault, reply)
            assert caught.value.problem.endswith(".") and "\n" not in caught.value.problem


# --- declarations -------------------------------------------------------------------------------------------------
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


# --- quotations ---------------------------------------------------------------------------------------------------
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


# --- lengths ------------------------------------------------------------------------------------------------------
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
def test_a_long_reply_keeps_its_verdict(read: Read, verdict: str, value: object, filler: str) -> None:
    long = filler * (200_000 // len(filler))
    assert read(f"{long}\n{verdict}") == value
    if read is not read_pair:
        assert read(f"{verdict}\n\n{long}") == value
    assert read(f"<think>{long}{verdict}</think>\n{verdict}") == value


@each_reading
def test_of_a_long_reply_the_middle_is_not_searched(read: Read, verdict: str, value: object) -> None:
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
