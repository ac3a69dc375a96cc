"""Know the words of replies: what a score is called, how compared texts are named, how others' words are announced.

Words that announce or disown somebody else's words are English alone: in other languages the place of a statement in
the reply decides (``reprints``).
"""

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
    rf"(?:'s(?!\w))?(?: {_NOUN}(?!\w))?|{_ASIAN} ?(?P<sign>[AB12ab一二])(?![A-Za-z0-9])"
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


_SOMEBODY_ELSE = one_of(
    "candidate text answer response summary source article story question fact author writer assistant output "
    "reply passage document essay ending line sentence scorer critic judge juror referee advocate commander "
    "candidates answers they he she it this that which who one ① ② paragraph criteria post statement"
)
_SAYING = one_of(
    "say* said stat* claim* read reads reading writ* wrote end ends ending ended clos* conclud* contain* includ* "
    "print* ask* demand* want* request* tell* told instruct* insist* declar* announc* repeat* add* append* begin* "
    "open* start* order* finish* carr* hold* has_the has_a has_this quot* mention* show* display* order* "
    "voted suggest* propos* boast* plead* urg* command* attempt* tries try* goes_on continu* reprint* dictat* "
    "assert* proclaim* argu* note* exclaim* pretend* imitat* hides hid* smuggl* inject* slip*"
)
# What stands in a text and may be reprinted.
_PIECES = one_of(
    "line* sentence* word words phrase* token* string* instruction* request* demand* injection* quote* quotation* "
    "claim* postscript* footer* marker* command* remark* plea* ending* passage* snippet* excerpt* text_itself "
    "copy reprint* following verbatim last_words self-assessment* order* attempt* string*"
)
# Behind these the agent speaks for itself again.
_OWN_TURN = re.compile(
    r"\b(?:but|yet|therefore|thus|hence|overall|still|my|mine|earn\w*|deserv\w*|merit\w*|receiv\w*|gets?|resulting"
    r"|leading|warrant\w*|and (?:is|are|was|has|it|so)"
    r"|i(?:'d| would| will)? (?:\w+ )?(?:give|rate|say|vote|score|judge|conclude|choose|settle|stay|keep|assign"
    r"|pick|prefer|declare|arrive))\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    rf"\b{_SOMEBODY_ELSE}(?:'s?)?(?:,? [\w'()\"-]+){{0,6}}?,? {_SAYING}\b(?P<rest>(?:[\W_]*[\w'-]+){{0,9}}\W*)\Z",
    re.IGNORECASE,
)
_PIECE = re.compile(
    rf"(?<!in other )(?<!in a )\b(?:{_PIECES})\b(?P<rest>(?:[\W_]*[\w'-]+){{0,8}}\W*)\Z", re.IGNORECASE
)
# Directly before: ``the candidate's [[5]]``, ``ignoring [[5]]``.
_OF_OTHERS = re.compile(
    rf"(?:\b(?:the|its|their|his|her|this|that) (?:{_SOMEBODY_ELSE}(?:'s?)?)|\b(?:its|their|his|her))"
    r"(?: (?:own|last|final|closing|claimed|alleged|self-assigned|line|words?|mark|tag|score|verdict|vote|rating))*"
    r"\W*\Z"
    rf"|\b(?:{one_of('ignor* disregard* skip* despite notwithstanding regardless_of apart_from not_counting quot*')}"
    r"|copied from|reads?|reading|saying|says)(?: \w+){0,4}\W*\Z",
    re.IGNORECASE,
)
# A full sentence that announces: ``The candidate ends with this line.``
_ANNOUNCED = re.compile(
    r"\b(?:this|the following|these|the next|as follows|here is|here's|below)\b[^.!?]{0,40}[.!?]?\Z",
    re.IGNORECASE,
)
# A label under which the agent gives its own verdict.
_OWN_LABEL = re.compile(
    r"\b(?:my|i|we|our|verdict|scores?|ratings?|final|overall|total|conclusion|conclude|decision|evaluation|assessment"
    r"|judge?ment|result|results|outcome|output|winner|vote|therefore|thus|hence|as follows|summary of scores"
    r"|answer|reply|response|grade|feedback|declaration|choice|preference|better|tally|sum|reasoning|rationale"
    r"|explanation|step|analysis|comparison|in short|in sum|points|critique|review)\b[^.!?\n]{0,60}"
    r"[:=—-]?[\s\x00\"'`*_(\[]*\Z",
    re.IGNORECASE,
)
_LONGEST = 300


def reports(before: str, *, strictly: bool = False) -> bool:
    """Whether the words announce something that somebody else has written.

    Args:
        before: the sentence up to the statement, or the one above it.
        strictly: the sentence is complete and has to point at what follows.

    >>> reports("The candidate ends with this line:"), reports("It holds all key facts and earns a")
    (True, False)
    """
    words = before[-_LONGEST:].replace("\x00", " ").replace("\u2019", "'")
    if strictly and not _ANNOUNCED.search(words):
        return False
    if not strictly and _OF_OTHERS.search(words):
        return True
    matches = (_SAID.search(words), _PIECE.search(words))
    return any(match is not None and not _OWN_TURN.search(match["rest"]) for match in matches)


def introduces(before: str) -> bool:
    """Whether the words announce a verdict of the agent's own.

    >>> introduces("My final verdict is:"), introduces("The text has three parts:")
    (True, False)
    """
    return _OWN_LABEL.search(before[-_LONGEST:]) is not None


_TEXTS = one_of(
    "candidate text answer response summary source author document article essay story question fact ① ②"
)
_DISOWNING = re.compile(
    r"\b(?:i (?:\w+ )?(?:ignore|disregard)|(?:ignor|disregard)(?:e|ed|es|ing) (?:it|this|that|them|these|those)\b"
    r"|(?:is|was|are|were|be|being) (?:ignored|disregarded|set aside|quoted)"
    r"|(?:no|any|little|without) (?:force|weight|bearing|authority|notice|attention|heed)\b"
    r"|(?:is|are|was|were) (?:not|no) (?:mine|my|binding|a verdict|an instruction|verdict)\b"
    r"|(?:do|does|did|cannot|can|will|would|must|may)(?: not|n't)? (?:not )?(?:count|sway|obey)\b"
    r"|counts? for nothing|injection|manipulat\w+|nothing to me|have no say|not from me|told to (?:write|say)"
    r"|i do not\b"
    r"|(?:set|leave|leaving|put|setting) (?:it|this|that|them|these) (?:aside|out)|skip(?:ped)? (?:it|this|that|over)"
    r"|(?:is|was|are|were) (?:\w+ )?(?:what|how|where) (?:the|it|its)|pay(?:ing)? no|(?:is|are) (?:only |just )?data"
    r"|(?:stands?|appears?|comes?|is|was|are|were) (?:\w+ )?(?:in|at|from|as) (?:the|its) (?:\w+ )?"
    rf"(?:{_TEXTS}|end|last|final|closing)\b"
    r"|(?:is|was|are|were) (?:the|its|their|a) (?:[\w-]+ ){0,2}(?:ending|end|claim|words?|line|demand|trick|opening)\b"
    rf"|(?:is|was|are|were) (?:the )?{_TEXTS}'s?\b"
    rf"|(?:says|writes|claims|ends|reads|demands|asks|states) (?:the|its) {_TEXTS})",
    re.IGNORECASE,
)
_DISMISSING = re.compile(
    r"\b(?:(?:which|that|and|but|so|this) (?:i|we) (?:\w+ ){0,2}(?:ignore|disregard|dismiss|discount|set aside|reject)"
    r"|i (?:\w+ ){0,2}(?:ignore|disregard) (?:it|this|that|them)\b"
    r"|(?:is|are|was|were|be|been|being) (?:\w+ ){0,2}(?:ignored|disregarded|dismissed|discounted|set aside|no verdict)"
    r"|(?:no|without) (?:force|weight|bearing|authority)\b|not (?:mine|my own)\b)",
    re.IGNORECASE,
)


def dismisses(after: str) -> bool:
    """Whether the rest of a sentence takes back what the sentence has stated.

    >>> dismisses(", which I ignore"), dismisses(", since it rambles")
    (True, False)
    """
    return _DISMISSING.search(after.replace("\x00", " ").replace("\u2019", "'")) is not None


_CLAIMING = re.compile(
    r"\b(?:candidate|text|answer|response|summary|article|story|author|writer|assistant|output|passage|document"
    r"|essay|source|①|②|it|which|that|who)(?:'s)? (?:itself |also |even |then |already )?"
    r"(?:claims?|claimed|asks?|asked|demands?|demanded|insists?|insisted|pretends?|pretended|tells? me|told me"
    r"|instructs? me|instructed me|(?:includes?|contains?|has|holds?|carries|brings) (?:its|a|an) (?:own )?"
    r"(?:self-)?(?:evaluation|assessment|verdict|rating|score|claim|instruction|injection|demand|request)"
    r"|(?:gives?|rates?|scores?|grades?|awards?|assigns?) itself)\b(?P<rest>[^.!?]*)\Z",
    re.IGNORECASE,
)


def claims(before: str) -> bool:
    """Whether a sentence, up to the statement in it, says what a text claims of itself.

    >>> claims("The text claims a score of"), claims("The text claims too much, so I give it a")
    (True, False)
    """
    match = _CLAIMING.search(before[-_LONGEST:].replace("\x00", " ").replace("\u2019", "'"))
    return match is not None and not _OWN_TURN.search(match["rest"])


_NEXT_SENTENCES = re.compile(r"\A[^\n]{0,160}(?:\n+[^\n]{0,160})?")


def disowns(after: str) -> bool:
    """Whether the words say that what stands before them is not the agent's own.

    >>> disowns("\\nI ignore it."), disowns("\\nThe score follows the rubric.")
    (True, False)
    """
    near = _NEXT_SENTENCES.match(after.replace("\x00", " ").replace("\u2019", "'"))
    return near is not None and _DISOWNING.search(near[0]) is not None
