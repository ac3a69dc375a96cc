"""Read a provider's error: its status, which parameter it refuses, whether the same call may succeed later, and when.

A 429 is read here; ``retry.py`` waits for it, and ``rate_limiter.py`` lowers the number of calls in flight. Errors are
read off the attributes and class names of exceptions, so that no provider's client has to be imported.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from typing import Any

from ...state.checked import fields_in
from ...state.redaction import redact, redact_all
from .capabilities import BOUNDS, CACHE, LIMIT, LOGPROBS, SEVERAL, STRUCTURE, SYSTEM
from .provider_words import WORDS, any_of, by_word


class ResponseError(Exception):
    """Raised for a response without a reply: an error status, or a body that is not what was asked for.

    Attributes:
        status_code: HTTP status of the response.
        headers: headers of the response.
        body: its JSON, where it is JSON.
    """

    def __init__(
        self, message: str, status: int, headers: Mapping[str, str] | None = None, body: object = None
    ) -> None:
        # A proxy or a provider may echo the request's headers, the key among them.
        super().__init__(redact(message))
        self.status_code = status
        self.headers = headers or {}
        self.body = redact_all(body)


def retry_after(headers: Mapping[str, str], body: object) -> float | None:
    """Return the seconds that the provider asks to wait for; None where it does not say.

    The first of these counts: ``Retry-After-Ms``, ``Retry-After`` (seconds or an HTTP date), the ``RetryInfo`` in an
    error of Google's, OpenAI's ``x-ratelimit-reset-*`` of the limit that is used up.

    Args:
        headers: headers of the response, names in lower case.
        body: its JSON.

    >>> retry_after({"retry-after": "2"}, None)
    2.0
    >>> retry_after({}, {"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "7s"}]}})
    7.0
    >>> retry_after({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s"}, None)
    90.0
    """
    milliseconds, after = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    # By the server's own clock where it tells it: ours may be wrong.
    until, now = _date(after), _date(headers.get("date", "")) or datetime.now(UTC)
    delays = (value for name, value in fields_in(body) if name == "retryDelay" and isinstance(value, str))
    # The headers come with every response; a limit that is not used up says nothing about this refusal. Where both
    # are, the later reset counts.
    used_up = [kind for kind in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{kind}") == "0"]
    resets = [_duration(headers.get(f"x-ratelimit-reset-{kind}", "")) for kind in used_up]
    waits = (
        None if milliseconds is None else milliseconds / 1000,
        _number(after),
        None if until is None else (until - now).total_seconds(),
        _duration(next(delays, "")),
        max((reset for reset in resets if reset is not None), default=None),
    )
    # ``inf`` and ``nan`` are numbers to ``float()``, but no times to wait; a date may already be past.
    return next((max(0.0, wait) for wait in waits if wait is not None and math.isfinite(wait)), None)


class ProviderFault:
    """Describe an exception of a provider's client in terms that all providers share.

    Attributes:
        status: HTTP status; for an error inside a response with status 200, the status that it stands for.
        message: the error in its own words.
        parameter: the parameter that the provider names as the cause.
        retryable: whether the same call may succeed later.
        rate_limited: whether the provider asked for fewer calls.
        retry_after: the seconds that the provider asks to wait for, not cut to any longest wait.
        misformed: whether the provider failed to bring the model's words into the form that was asked for.
        spent: whether the account's quota or credit is used up, so that waiting does not help.
        may_be_billed: whether the request was sent, and the connection lost or given up before the reply had come.
        obstacle: what keeps every call from an answer until a person does something, and what to do; else empty.
        is_too_long: whether the prompt is longer than the model's context.
        counts_reply_into_context: whether it is so together with the longest reply that was asked for.
        may_be_about_form: whether the form of the reply may be what was refused, though nothing says so.
    """

    def __init__(self, error: BaseException) -> None:
        """Read an exception together with the exceptions that caused it."""
        causes = list(_causes(error))
        errors = [sent for cause in causes for sent in _errors_sent(cause)]
        codes = {str(sent[key]) for sent in errors for key in ("code", "type", "status") if sent.get(key)}
        status = self.status = _status(causes, errors, codes)
        # Cut with room to spare before keys are hidden (half a key is not known for one) and it is cut for good.
        self.message = redact(f"{type(error).__name__}: {error}".strip(": ")[:_MOST_READ])
        params = (sent["param"] for sent in errors if isinstance(sent.get("param"), str))
        self.parameter: str | None = next(params, None)
        # A spent quota has the status 429 like a rate limit: only the code tells them apart.
        self.spent = bool(codes & _SPENT)
        self.rate_limited = not self.spent and (status == 429 or bool(codes & _TOO_MANY))
        self.misformed = bool(codes & _MISFORMED) or any("has no choices" in str(cause) for cause in causes)
        lost = status is None and any(map(_lost, causes))
        too_long = status not in {None, 429} and any(_TOO_LONG.search(str(cause)) for cause in causes)
        # A response with status 200 is raised where it holds no reply; the next one may hold one.
        passes = status is not None and (status in {408, 409, 429} or status >= 500 or status < 300)
        self.retryable = (self.misformed or lost or (passes and not too_long)) and not self.spent
        # There was no connection to send the request over.
        unsent = any(_has_name(cause, _NO_CONNECTION) for cause in causes)
        self.may_be_billed = status in _GIVEN_UP or (lost and not unsent)
        shown = " ".join(f"{type(cause).__name__}: {cause}" for cause in causes)
        met = next((words for words, sign in _OBSTACLES.items() if sign.search(shown)), "")
        self.obstacle = met if status is None else _ADVICE["401"] if status == 401 else ""
        sent_headers = (known for known in _attributes(causes, "headers") if hasattr(known, "items"))
        headers = {str(name).lower(): str(value) for name, value in next(sent_headers, {}).items()}
        self.retry_after = retry_after(headers, errors)
        self.is_too_long = status not in {None, 429} and bool(_TOO_LONG.search(self.message))
        self.counts_reply_into_context = self.is_too_long and bool(_WITH_REPLY.search(self.message))
        self.may_be_about_form = status in {400, 422} and not _FINDS["no_form"].search(_snake(self.message))

    def rejected_parameter(self, sent: Mapping[str, object]) -> str | None:
        """Return the parameter that the provider does not take, or None where the call cannot be made without it.

        A parameter whose *value* is refused (too large, say) is the caller's to mend, and stays; but the number of
        replies to a request and that of log-probabilities are no caller's choice.

        Args:
            sent: the parameters of this call alone.
        """
        status, parameter = self.status, self.parameter
        for name, pattern in _SHAPING.items():
            # In quotes, without which the pattern does not take a bare ``n`` for the parameter.
            named = parameter is not None and pattern.fullmatch(f"'{parameter}'")
            # 403 as well: OpenAI says "You are not allowed to request logprobs from this model" with that status.
            if name in sent and status in {400, 403, 422} and (named or pattern.search(self.message)):
                return name
        words = _snake(self.message)
        about, refused = {what for what, signs in _FINDS.items() if signs.search(words)}, status in _REFUSALS
        if refused and "no_system" in about:
            return SYSTEM
        # Bedrock refuses marks with 403 as well.
        if (refused or status == 403) and "cache" in about:
            return CACHE
        known = _known(parameter) if parameter else None
        too_much = refused and "too_much" in about
        if known == STRUCTURE or (not known and (too_much or _is_about_form(status, about))):
            # The reply's form comes from this package, and a caller cannot mend it: it is eased for whatever reason.
            eased = BOUNDS if too_much or "bound" in about else STRUCTURE
            return eased if refused else None
        if status not in {400, 422}:
            return None
        # A call's own parameters have the default limit alone: where it is too high, the provider's own one holds.
        too_high = LIMIT in sent and (known == LIMIT or "limit" in about)
        named_here = {known} if parameter else {_known(word) for word in re.findall(r"[a-z_]+", words)}
        rejected = next((name for name in _DROPPABLE if name in named_here), None)
        return LIMIT if too_high else rejected if "unsupported" in about else None

    def summary(self) -> str:
        """Return the error in one line, with the remedy where there is one."""
        known = "too_long" if self.is_too_long else "spent" if self.spent else str(self.status)
        advice = _ADVICE.get(known, self.obstacle)
        line = " ".join(self.message.split())
        return f"{line[:500]}{f' ({advice})' if advice else ''}"


def shown_cause(error: BaseException) -> BaseException:
    """Return what an error of ours may name as its cause: the provider's exception, unless it shows a key.

    A traceback prints the causes of an exception too; one that shows a key is replaced by the same in our words.
    """
    shown = [str(part) for cause in _causes(error, printed=True) for part in (cause, *cause.args)]
    if all(redact(words) == words for words in shown):
        return error
    fault = ProviderFault(error)
    return ResponseError(fault.message, fault.status or 0)


def _causes(error: BaseException, printed: bool = False) -> Iterator[BaseException]:
    """Yield the exception and those that it was raised from; ``printed``: all that its traceback prints."""
    cause: BaseException | None = error
    for _ in range(8):  # a chain of causes may be a circle
        if cause is None:
            return
        yield cause
        context = cause.__context__ if printed and not cause.__suppress_context__ else None
        cause = cause.__cause__ or context


_ADVICE = {code: words for codes, words in WORDS["advice"].items() for code in codes.split()}
_OBSTACLES = {known["advice"]: any_of(known["signs"]) for known in WORDS["obstacles"]}
"""What to say of a connection that cannot be made, by the class names and words of its errors; the first counts."""


_MOST_READ = 20_000
_WORDS = WORDS["errors"]
_TOO_LONG = any_of(_WORDS["too_long"], re.IGNORECASE)
"""Finds the words of a refusal of a prompt that is too long."""
_WITH_REPLY = any_of(_WORDS["with_reply"], re.IGNORECASE)
_GIVEN_UP = {408, 499, 504, 524}
"""The statuses with which a gateway says that it has not waited for the reply."""
_SPENT, _TOO_MANY, _MISFORMED = ({*_WORDS[name].split()} for name in ("spent", "too_many", "misformed"))
STATUS_OF_CODE = {
    **{code: int(status) for status, codes in WORDS["status_of_code"].items() for code in codes.split()},
    **dict.fromkeys(_TOO_MANY | _SPENT, 429),
}
"""From the code of an error inside a response with status 200, or of a batch, to the status that it should have had."""


def _errors_sent(error: BaseException) -> Iterator[dict[str, Any]]:
    """Yield the error objects that the provider sent, wherever a client keeps them."""
    bodies = [getattr(error, name, None) for name in ("body", "details", "response_json")]
    first = error.args[0] if isinstance(error, ValueError) and error.args else None
    if isinstance(first, dict) and isinstance(first.get("message"), str):
        bodies.append(first)  # langchain-openai raises the error inside a response that is fine as such
    response = getattr(error, "response", None)
    aws = response.get("Error") if isinstance(response, dict) else None
    if aws and aws.get("Code"):
        bodies.append({"code": aws["Code"], "message": aws.get("Message")})
    for body in bodies:
        for part in body if isinstance(body, list) else [body]:
            inner = part.get("error", part) if isinstance(part, dict) else None
            if isinstance(inner, dict):
                yield inner


def _attributes(causes: list[BaseException], *names: str) -> Iterator[Any]:
    """Yield what exceptions and their responses have under these names; the response of AWS's client is a dict."""
    for cause in causes:
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            about = response.get("ResponseMetadata") or {}
            aws = {"status_code": about.get("HTTPStatusCode"), "headers": about.get("HTTPHeaders")}
            response = SimpleNamespace(**aws)
        yield from (getattr(place, name, None) for place in (cause, response) for name in names)


def _status(causes: list[BaseException], errors: list[dict[str, Any]], codes: set[str]) -> int | None:
    """Return the status of the response, or that of an error inside a response with status 200."""
    if any(map(_is_no_http, causes)):
        return None  # aiohttp makes it a status of 400
    statuses = map(_http_status, _attributes(causes, "status_code", "status", "code"))
    status = next((number for number in statuses if number is not None), None)
    if status is not None and status >= 300:
        return status
    inside = [number for code in codes if (number := _http_status(code)) is not None]
    known = [STATUS_OF_CODE[code] for code in codes if code in STATUS_OF_CODE]
    return next((number for number in inside + sorted(known) if number >= 400), 200 if errors else status)


def _http_status(code: object) -> int | None:
    number = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else 0
    return number if 100 <= number < 600 else None


def _lost(error: BaseException) -> bool:
    """Tell whether the connection failed or delivered no reply; a certificate that is refused is neither."""
    # First, since these are ``ssl.SSLError`` or connection errors too, and no further attempt mends a certificate.
    if re.search("CertVerification|Certificate", type(error).__name__):
        return False
    if getattr(error, "is_retryable", None) is True or _is_no_http(error):
        return True
    # A client found its connections dead, because the event loop that it was used on has ended. The attempt discards
    # them, so the next one succeeds.
    if isinstance(error, RuntimeError) and str(error) == "Event loop is closed":
        return True
    raised_in = {frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)}
    return _has_name(error, _CONNECTION) or not _READING.isdisjoint(raised_in)


def _is_no_http(error: BaseException) -> bool:
    # Errors of aiohttp's parser, which it raises as bad requests, though what came back was not HTTP.
    return type(error).__module__ == "aiohttp.http_exceptions"


def _has_name(error: BaseException, names: re.Pattern[str]) -> bool:
    """Tell whether the name of an exception's class, or of one that it derives from, is such a name."""
    return any(names.search(base.__name__) for base in type(error).__mro__)


_NO_CONNECTION, _CONNECTION = any_of(_WORDS["no_connection"]), any_of(_WORDS["connection"])

_READING = {"_create_chat_result", "_construct_lc_result_from_responses_api", "_response_to_result"}
"""Functions in which LangChain's clients read a response: whatever fails in them, the response held no reply."""


# Which parameter was refused

# Matches ``logprobs``, ``top_logprobs`` and Gemini's ``responseLogprobs``; a bare ``n`` is too common a letter, so it
# must be quoted or stand before a verb: ``'n' is not supported``, ``n must be 1``.
_SHAPING = {
    LOGPROBS: re.compile(r"['\"`]?(?:response_?)?(?:top_)?log_?probs['\"`]?", re.IGNORECASE),
    SEVERAL: re.compile(r"['\"`]n['\"`]|\bn (?:must|should|is|>|=)|multiple (?:choices|completions)"),
}
"""From each parameter that decides the shape of a reply to a pattern that finds it in a refusal."""


_REFUSALS = {400, 404, 405, 415, 422, 500, 501}
"""With 404 OpenRouter says that no endpoint has a feature; servers of open models say it with 500."""
_FINDS = {what: any_of(patterns) for what, patterns in WORDS["refusals"].items()}
"""Finds what a refusal is about in its words."""

_OTHER_NAMES = by_word(WORDS["parameters"])
_DROPPABLE = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty", "frequency_penalty")
"""Parameters that a call can be made without."""


def _known(name: str) -> str | None:
    """Return the parameter that a provider's word stands for, if it is one that can be left out."""
    # Providers also name a part, such as ``response_format.json_schema``: its first word is the parameter.
    first = _snake(name).partition(".")[0]
    first = _OTHER_NAMES.get(first, first)
    return first if first in (*_DROPPABLE, STRUCTURE) else None


def _is_about_form(status: int | None, about: set[str]) -> bool:
    """Tell whether a refusal in whose words these signs were is about the form that the reply was to have."""
    if status not in _REFUSALS or "no_form" in about:
        return False
    # The form is the likeliest cause where none is told: schemas are what models differ in most.
    if status in {400, 422} and "unexplained" in about:
        return True
    # An error of the server's own may pass, unless it says that it will not.
    if status < 500 and "form_parameter" in about:
        return True
    return bool({"unsupported", "not_built"} & about and {"form_parameter", "form"} & about)


def _snake(message: str) -> str:
    # Gemini writes ``responseSchema`` or ``maxOutputTokens`` for what its client calls ``response_schema``.
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", message).lower()


# When to try again


_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# ``ms`` stands first: otherwise the ``m`` of ``20ms`` would be taken for minutes.
_STRETCH = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def _duration(words: str) -> float | None:
    """Return the seconds of a duration such as ``7s``, ``1m30.5s``, ``20ms``; None if it is none."""
    stretches = _STRETCH.findall(words)
    # Anything left beside such parts means that the whole is no duration.
    if not stretches or _STRETCH.sub("", words):
        return None
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in stretches)


def _number(words: str) -> float | None:
    with suppress(ValueError):
        return float(words)
    return None


def _date(words: str) -> datetime | None:
    with suppress(ValueError):
        date = parsedate_to_datetime(words)
        # Of a date in the zone ``-0000``, the standard library makes one without a zone.
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None
