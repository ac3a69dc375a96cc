"""Know the words of replies: what a score is called, what qualifies it, and how the two compared texts are named."""

from __future__ import annotations

import re

SCORE_WORDS = (
    r"(?:(?<![^\W\d_])(?:scores?|scoring|ratings?|grades?|marks?"
    r"|punteggi[oi]?|vot[oi]|valutazione|punt(?:uación|aje|aciones)|calificaci[oó]n|nota|pontuação|pontuacao"
    r"|classificação"
    r"|note|évaluation|bewertung|punktzahl|punkte|wertung|gesamtbewertung|gesamtpunktzahl|cijfer|betyg|poäng"
    r"|ocena|wynik"
    r"|puan|skor|điểm|оценка|балл|рейтинг|оцінка|התוצאה|ציון|الدرجة|درجة|التقييم|النتيجة)(?![^\W\d_])"
    r"|评分|評分|分数|分數|得分|打分|總分|总分|評価|スコア|点数|得点|採点|점수|평점|स्कोर|अंक|คะแนน)"
)
"""What a score is called, in some twenty languages."""

FINAL_WORDS = (
    r"(?:final|overall|total|ultimate|concluding|aggregate|finale|finala|definitivo|definitiva|globale"
    r"|complessivo|global|"
    r"gesamt|endgültige?|endg|itogovaya|итоговая|итоговый|общая|最终|最終|综合|総合|總|总|최종|النهائية)"
)
"""What marks a score as the final one."""


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that are separated by blanks."""
    return frozenset(words.split())


_PLAIN_QUALIFIERS = word_set(
    "my the a an your its this that our new revised updated adjusted recommended proposed suggested "
    "current numerical numeric corresponding resulting appropriate given assigned fair response summary "
    "and so therefore thus hence is here il mio la mia le ma mon el mi die der das meine o a"
)
_OTHERS = word_set(
    "initial previous earlier original scorer scorer's critic's critic maximum highest lowest minimum "
    "possible max min average mean human other old prior first baseline threshold passing lower higher "
    "individual"
)
_NO_SCORES = re.compile(
    r"\b(?:notes?|steps?|years?|words?|pages?|lines?|questions?|dates?|time|reasons?|errors?|issues?|mistakes?"
    r"|numbers?|counts?"
    r"|length|turns?|rounds?|versions?|facts?|examples?|points to|articles?|age|price|cost|ids?|index|criterion"
    r"|criteria|item"
    r"|section|part|scale|range|max(?:imum)?|min(?:imum)?|sentences?|paragraphs?|calculation|sum|subtotal|weight"
    r"|temperature)\b",
    re.IGNORECASE,
)


def qualifier_of(before: str) -> str:
    """Return the words that stand before a score word in its own line and clause, casefolded."""
    clause = re.split(r"[.,;:!?()\[\]\n\x00—]|\d|(?<!\w)- ", before[-60:])[-1]
    return clause.strip().casefold()


def is_final(qualifier: str) -> bool:
    """Whether the qualifier makes it the final score: ``"my final"``."""
    return re.search(rf"\b{FINAL_WORDS}\b", qualifier) is not None or qualifier.endswith(
        ("最终", "最終", "综合", "総合", "최종")
    )


def is_plain(qualifier: str) -> bool:
    """Whether the qualifier leaves the score the judge's own: ``"my revised"``."""
    return all(word in _PLAIN_QUALIFIERS for word in qualifier.split())


def is_of_others(qualifier: str) -> bool:
    """Whether the qualifier makes it another agent's score, or one only talked about: ``"the initial"``."""
    return any(word in _OTHERS for word in re.split(r"[\s'’]+", qualifier)[-3:])


def may_be_criterion(label: str) -> bool:
    """Whether a free label before a number can be a criterion (``Coherence: 3``, not ``Word count: 90``).

    >>> may_be_criterion("Coherence"), may_be_criterion("Number of errors")
    (True, False)
    """
    too_short = label.isascii() and len(label) < 3
    return not too_short and len(label.split()) <= 6 and _NO_SCORES.search(label) is None


FIRST, SECOND = "①", "②"
"""Stand for the names of the two texts in a marked reply."""


def one_of(phrases: str) -> str:
    """Return a pattern that matches one of several phrases.

    Phrases are separated by blanks; in a phrase ``_`` stands for a blank and ``*`` for a word's ending.

    >>> one_of("so in_short award*")
    '(?:in short|award\\\\w{0,5}|so)'
    """
    # An alternation takes the first branch that matches, so a phrase must stand before its own beginning.
    longest_first = sorted(phrases.split(), key=len, reverse=True)
    return f"(?:{'|'.join(map(_literal, longest_first))})"


def _literal(phrase: str) -> str:
    return re.escape(phrase).replace("_", " ").replace(r"\*", r"\w{0,5}")


_NOUN = one_of(
    "output outputs answer answers assistant assistants summary summaries response responses model models "
    "candidate candidates text texts "
    "option options choice choices system systems essay essays story stories version versions side sides "
    "advocate advocates reply replies "
    "translation translations passage passages completion completions dialogue dialogues team teams debater "
    "debaters chatbot chatbots agent "
    "agents student students number no. antwort réponse respuesta risposta resposta assistente asistente ответ "
    "ассистент"
)
_ASIAN = one_of("アシスタント 回答 応答 答案 回复 回覆 助手 助理 摘要 要約 답변 응답 어시스턴트 모델 요약")
_NAME = re.compile(
    rf"(?<![^\W_])(?:the |l'|la |der |die |el )?{_NOUN}[ _]?#?"
    r"(?P<open>[(\[\"'])?(?P<letter>a|b|1|2|one|two)(?(open)[)\]\"'])(?![\w]|\.\d)"
    rf"(?:'s(?!\w))?(?: {_NOUN}(?!\w))?"
    rf"|{_ASIAN} ?(?P<sign>[AB12ab一二])(?![A-Za-z0-9])"
    rf"|(?<!\w)the (?P<rank>first|second) {_NOUN}(?!\w)(?:'s(?!\w))?"
    r"|(?<!\w)the (?P<order>former|latter)(?!\w)",
    re.IGNORECASE,
)
_FIRST_NAMES = ("a", "1", "one", "first", "former", "一", FIRST)
_SECOND_NAMES = ("b", "2", "two", "second", "latter", "二", SECOND)


def marked(words: str) -> str:
    """Replace the names of the two texts by ``①`` and ``②``.

    >>> marked("Assistant A's answer beats the second response; Output (b) fails.")
    '① beats ②; ② fails.'
    """
    return _NAME.sub(_mark, words.replace(FIRST, " ").replace(SECOND, " ").replace("\u2019", "'"))


def side_of(name: str) -> str | None:
    """Return ``"1"`` or ``"2"`` for a letter, digit or mark that names one of the two texts; else None."""
    name = name.strip(" ()[]#\"'.").casefold()
    if name in _FIRST_NAMES:
        return "1"
    return "2" if name in _SECOND_NAMES else None


def _mark(match: re.Match[str]) -> str:
    named = match["letter"] or match["sign"] or match["rank"] or match["order"]
    return FIRST if named.casefold() in _FIRST_NAMES else SECOND
