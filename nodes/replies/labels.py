"""The words under which scores are stated, in English and a dozen other languages."""

from __future__ import annotations

import re

from .patterns import word_set

SCORE_WORDS = (
    r"(?:(?<![^\W\d_])(?:scores?|scoring|ratings?|grades?|marks?"
    r"|punteggi[oi]?|vot[oi]|valutazione|punt(?:uación|aje|aciones)|calificaci[oó]n|nota|pontuação|pontuacao"
    r"|classificação"
    r"|note|évaluation|bewertung|punktzahl|punkte|wertung|gesamtbewertung|gesamtpunktzahl|cijfer|betyg|poäng"
    r"|ocena|wynik"
    r"|puan|skor|điểm|оценка|балл|рейтинг|оцінка|התוצאה|ציון|الدرجة|درجة|التقييم|النتيجة)(?![^\W\d_])"
    r"|评分|評分|分数|分數|得分|打分|總分|总分|評価|スコア|点数|得点|採点|점수|평점|स्कोर|अंक|คะแนน)"
)
"""What a score is called."""

FINAL_WORDS = (
    r"(?:final|overall|total|ultimate|concluding|aggregate|finale|finala|definitivo|definitiva|globale"
    r"|complessivo|global|"
    r"gesamt|endgültige?|endg|itogovaya|итоговая|итоговый|общая|最终|最終|综合|総合|總|总|최종|النهائية)"
)
"""What marks a score as the last word on the matter."""

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
    """The words that stand before a score word in its own line and clause, casefolded."""
    clause = re.split(r"[.,;:!?()\[\]\n\x00—]|\d|(?<!\w)- ", before[-60:])[-1]
    return clause.strip().casefold()


def is_final(qualifier: str) -> bool:
    """Whether the qualifier makes it the final score: ``"my final"``."""
    return re.search(rf"\b{FINAL_WORDS}\b", qualifier) is not None or qualifier.endswith(
        ("最终", "最終", "综合", "総合", "최종")
    )


def is_plain(qualifier: str) -> bool:
    """Whether the qualifier adds nothing: ``"my revised"``."""
    return all(word in _PLAIN_QUALIFIERS for word in qualifier.split())


def is_of_others(qualifier: str) -> bool:
    """Whether the score is somebody else's, or one that is only talked about: ``"the initial"``."""
    return any(word in _OTHERS for word in re.split(r"[\s'’]+", qualifier)[-3:])


def may_be_criterion(label: str) -> bool:
    """Whether a free label before a number can be a criterion (``Coherence: 3``, not ``Word count: 90``).

    >>> may_be_criterion("Coherence"), may_be_criterion("Number of errors")
    (True, False)
    """
    too_short = label.isascii() and len(label) < 3
    return not too_short and len(label.split()) <= 6 and _NO_SCORES.search(label) is None
