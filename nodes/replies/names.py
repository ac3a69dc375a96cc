"""The two texts under comparison, under all the names that judges give them."""

from __future__ import annotations

import re

from .patterns import one_of

FIRST, SECOND = "①", "②"
"""Stand for the two texts in a marked reply."""

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
    """``words`` with the names of the two texts replaced by ``①`` and ``②``.

    >>> marked("Assistant A's answer beats the second response; Output (b) fails.")
    '① beats ②; ② fails.'
    """
    return _NAME.sub(_mark, words.replace(FIRST, " ").replace(SECOND, " ").replace("\u2019", "'"))


def side_of(name: str) -> str | None:
    """``"1"`` or ``"2"`` for a letter, digit or mark that names a side, else None."""
    name = name.strip(" ()[]#\"'.").casefold()
    if name in _FIRST_NAMES:
        return "1"
    return "2" if name in _SECOND_NAMES else None


def _mark(match: re.Match[str]) -> str:
    named = match["letter"] or match["sign"] or match["rank"] or match["order"]
    return FIRST if named.casefold() in _FIRST_NAMES else SECOND
