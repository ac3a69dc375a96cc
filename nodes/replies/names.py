"""The two texts under comparison, under all the names that judges give them."""

from __future__ import annotations

import re

FIRST, SECOND = "①", "②"
"""Stand for the two texts in a marked reply."""

_NOUN = (
    r"(?:outputs?|answers?|assistants?|(?<!ai )summar(?:y|ies)|responses?|models?|candidates?|texts?|options?|choices?|systems?|essays?|stor(?:y|ies)"
    r"|versions?|sides?|advocates?|repl(?:y|ies)|translations?|passages?|completions?|dialogues?|teams?|debaters?|ai|chatbots?|agents?|students?|number|no\.|"
    r"antwort(?:en)?|réponses?|respuestas?|risposta|risposte|respostas?|resposta|assistente|asistente|ответ|ассистент)"
)
_ASIAN = r"(?:アシスタント|回答|応答|答案|回复|回覆|助手|助理|摘要|要約|답변|응답|어시스턴트|모델|요약)"
_SIDE = r"(?:[#(\[\"']{0,2}(?P<side>a|b|1|2|one|two)[)\]\"']{0,2}(?![\w.]\w|\w|'s?\w))"
_NAME = re.compile(
    rf"(?<![^\W_])(?:the |l'|la |der |die |el )?{_NOUN}[ _]?{_SIDE}(?:'s)?(?: {_NOUN}(?!\w))?"
    rf"|{_ASIAN}[ ]?(?P<side_>[AB12ab一二])(?![A-Za-z0-9])"
    rf"|(?<!\w)(?:the )(?P<rank>first|second)(?: {_NOUN}(?!\w))(?:'s)?"
    rf"|(?<!\w)(?:the )(?P<rank_>former|latter)(?!\w)",
    re.IGNORECASE,
)
_FIRST_WORDS = frozenset(("a", "1", "one", "first", "former", "一"))


def marked(words: str) -> str:
    """``words`` with the names of the two texts replaced by ``①`` and ``②``.

    >>> marked("Assistant A's answer beats the second response; Output (b) fails.")
    '① beats ②; ② fails.'
    """
    cleared = words.replace(FIRST, " ").replace(SECOND, " ")
    return _NAME.sub(_mark, cleared)


def side_of(name: str) -> str | None:
    """``"1"`` or ``"2"`` for a letter, digit or mark that names a side, else None."""
    name = name.strip(" ()[]#\"'.").casefold()
    if name in (*_FIRST_WORDS, FIRST):
        return "1"
    return "2" if name in ("b", "2", "two", "second", "latter", "二", SECOND) else None


def _mark(match: re.Match[str]) -> str:
    named = match["side"] or match["side_"] or match["rank"] or match["rank_"]
    return FIRST if named.casefold() in _FIRST_WORDS else SECOND
