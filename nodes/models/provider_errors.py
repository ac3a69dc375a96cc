"""Read a provider's error: status, refused parameter, and whether and when to try again.

This module reads a 429; ``retry.py`` waits for it, and ``rate_limiter.py`` lowers the number of
calls in flight. Errors are recognized by attributes and class names of exceptions, so that no
provider's client has to be imported.
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
from .providers import CODE_STATUSES, CODES, PARAMETERS, Refusal, refusals_about


class ResponseError(Exception):
    """Raised for a response without a reply: an error status, or an unexpected body.

    Attributes:
        status_code: HTTP status of the response.
        headers: headers of the response.
        body: its JSON, if it is JSON.
    """

    def __init__(
        self,
        message: str,
        status: int,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> None:
        # A proxy or a provider may echo the request's headers, including the key.
        super().__init__(redact(message))
        self.status_code = status
        self.headers = headers or {}
        self.body = redact_all(body)


def retry_after(headers: Mapping[str, str], body: object) -> float | None:
    """Return the seconds that the provider asks to wait; None if it gives no time.

    The first of these counts: ``Retry-After-Ms``, ``Retry-After`` (seconds or an HTTP date), the
    ``RetryInfo`` in an error of Google's, OpenAI's ``x-ratelimit-reset-*`` of the exhausted limit.

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
    milliseconds = _number(headers.get("retry-after-ms", ""))
    after = headers.get("retry-after", "")
    # By the server's own clock if it sends it, because ours may be wrong.
    until = _date(after)
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    delays = (
        value for name, value in fields_in(body) if name == "retryDelay" and isinstance(value, str)
    )
    # The headers come with every response, so a limit that is not exhausted did not cause this
    # refusal. If both are exhausted, the later reset counts.
    used_up = [
        kind
        for kind in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{kind}") == "0"
    ]
    resets = [_duration(headers.get(f"x-ratelimit-reset-{kind}", "")) for kind in used_up]
    waits = (
        None if milliseconds is None else milliseconds / 1000,
        _number(after),
        None if until is None else (until - now).total_seconds(),
        _duration(next(delays, "")),
        max((reset for reset in resets if reset is not None), default=None),
    )
    # ``float()`` accepts ``inf`` and ``nan``, which are not times to wait; a date may be in the
    # past.
    return next(
        (max(0.0, wait) for wait in waits if wait is not None and math.isfinite(wait)), None
    )


class ProviderFault:
    """Describe an exception of a provider's client in terms that all providers share.

    Attributes:
        status: HTTP status; for an error inside a response with status 200, the status of the
            error.
        message: the error in its own words.
        parameter: the parameter that the provider names as the cause.
        retryable: whether the same call may succeed later.
        rate_limited: whether the provider asked for fewer calls.
        retry_after: the seconds that the provider asks to wait, not limited.
        misformed: whether the provider failed to bring the model's output into the requested form.
        spent: whether the account's quota or credit is used up, so that waiting does not help.
        may_be_billed: whether the request was sent, and the connection was lost or abandoned before
            the reply came.
        obstacle: a problem that blocks every call until a person acts, and the remedy; else empty.
        is_too_long: whether the prompt is longer than the model's context.
        counts_reply_into_context: whether prompt and longest requested reply together exceed it.
        may_be_about_form: whether the refusal may concern the form of the reply without naming it.
    """

    def __init__(self, error: BaseException) -> None:
        """Read an exception together with the exceptions that caused it."""
        causes = list(_causes(error))
        errors = [sent for cause in causes for sent in _errors_sent(cause)]
        codes = {
            str(sent[key]) for sent in errors for key in ("code", "type", "status") if sent.get(key)
        }
        status = self.status = _status(causes, errors, codes)
        # Cut with room to spare before redacting, because half a key is not recognized; the final
        # cut follows.
        self.message = redact(f"{type(error).__name__}: {error}".strip(": ")[:_MOST_READ])
        params = (sent["param"] for sent in errors if isinstance(sent.get("param"), str))
        self.parameter: str | None = next(params, None)
        # A spent quota has the status 429 like a rate limit; only the code distinguishes them.
        kinds = {CODES.get(code) for code in codes}
        self.spent = "spent" in kinds
        self.rate_limited = not self.spent and (status == 429 or "too_many" in kinds)
        self.misformed = "misformed" in kinds or any(
            "has no choices" in str(cause) for cause in causes
        )
        lost = status is None and any(map(_lost, causes))
        too_long = status not in {None, 429} and any(
            _TOO_LONG.search(str(cause)) for cause in causes
        )
        # A response with status 200 is an error if it has no reply; the next one may have one.
        passes = status is not None and (status in {408, 409, 429} or status >= 500 or status < 300)
        self.retryable = (self.misformed or lost or (passes and not too_long)) and not self.spent
        # There was no connection to send the request over.
        unsent = any(_has_name(cause, _NO_CONNECTION) for cause in causes)
        self.may_be_billed = status in _GIVEN_UP or (lost and not unsent)
        shown = " ".join(f"{type(cause).__name__}: {cause}" for cause in causes)
        met = next((advice for sign, advice in _OBSTACLES.items() if sign.search(shown)), "")
        self.obstacle = met if status is None else _ADVICE[401] if status == 401 else ""
        sent_headers = (
            known for known in _attributes(causes, "headers") if hasattr(known, "items")
        )
        headers = {str(name).lower(): str(value) for name, value in next(sent_headers, {}).items()}
        self.retry_after = retry_after(headers, errors)
        self.is_too_long = status not in {None, 429} and bool(_TOO_LONG.search(self.message))
        self.counts_reply_into_context = self.is_too_long and bool(_WITH_REPLY.search(self.message))
        self.may_be_about_form = status in {400, 422} and not _FINDS["no_form"].search(
            _snake(self.message)
        )

    def rejected_parameter(self, sent: Mapping[str, object]) -> str | None:
        """Return the parameter that the provider rejects, or None if the call cannot omit it.

        A parameter whose *value* is refused (for example, too large) is the caller's to correct,
        and stays. The numbers of replies and of log-probabilities are not the caller's choice.

        Args:
            sent: the parameters of this call.
        """
        status = self.status
        parameter = self.parameter
        for name, pattern in _SHAPING.items():
            # In quotes, because the pattern does not accept a bare ``n`` as the parameter.
            named = parameter is not None and pattern.fullmatch(f"'{parameter}'")
            # Also 403: OpenAI sends "You are not allowed to request logprobs from this model" with
            # that status.
            if (
                name in sent
                and status in {400, 403, 422}
                and (named or pattern.search(self.message))
            ):
                return name
        words = _snake(self.message)
        about = {what for what, signs in _FINDS.items() if signs.search(words)}
        refused = status in _REFUSALS
        if refused and "no_system" in about:
            return SYSTEM
        # Bedrock refuses marks with 403 as well.
        if (refused or status == 403) and "cache" in about:
            return CACHE
        known = _known(parameter) if parameter else None
        too_much = refused and "too_much" in about
        if known == STRUCTURE or (not known and (too_much or _is_about_form(status, about))):
            # This package chooses the form of the reply and a caller cannot change it, so it is
            # relaxed for any reason.
            eased = BOUNDS if too_much or "bound" in about else STRUCTURE
            return eased if refused else None
        if status not in {400, 422}:
            return None
        # A call's own parameters contain only the default limit. If that is too high, the
        # provider's own limit applies.
        too_high = LIMIT in sent and (known == LIMIT or "limit" in about)
        named_here = (
            {known} if parameter else {_known(word) for word in re.findall(r"[a-z_]+", words)}
        )
        rejected = next((name for name in _DROPPABLE if name in named_here), None)
        return LIMIT if too_high else rejected if "unsupported" in about else None

    def summary(self) -> str:
        """Return the error in one line, with a remedy if one is known."""
        if self.is_too_long:
            advice = (
                "the texts and the debate so far do not fit into the model's context: "
                "use a model, or a setting of the server, with a larger one, or shorter texts"
            )
        elif self.spent:
            advice = "the quota is used up, and waiting does not help: check your plan and billing"
        else:
            advice = _ADVICE.get(self.status or 0, self.obstacle)
        line = " ".join(self.message.split())
        return f"{line[:500]}{f' ({advice})' if advice else ''}"


def shown_cause(error: BaseException) -> BaseException:
    """Return the cause for an error of ours: the provider's exception, or a redacted copy.

    A traceback also prints the causes of an exception, so a cause that contains a key is replaced.
    """
    shown = [str(part) for cause in _causes(error, printed=True) for part in (cause, *cause.args)]
    if all(redact(words) == words for words in shown):
        return error
    fault = ProviderFault(error)
    return ResponseError(fault.message, fault.status or 0)


def _causes(error: BaseException, printed: bool = False) -> Iterator[BaseException]:
    """Yield an exception and its causes; with ``printed``, everything that its traceback prints."""
    cause: BaseException | None = error
    for _ in range(8):  # a chain of causes may be circular
        if cause is None:
            return
        yield cause
        context = cause.__context__ if printed and not cause.__suppress_context__ else None
        cause = cause.__cause__ or context


_NOT_FOLLOWED = "a redirect is not followed: set base_url to where it leads"
_ADVICE: Mapping[int, str] = {
    **dict.fromkeys((301, 302, 303, 307, 308), _NOT_FOLLOWED),
    401: "the key was refused: check it",
    402: "the account has no credit: look at your plan and billing",
    403: "the key has no access to this model",
    404: "no such model, or a wrong base URL",
    429: "rate limit or quota: lower --concurrency, or look at your plan",
}
"""The remedy for an error, by its status."""

_OBSTACLES: Mapping[re.Pattern[str], str] = {
    re.compile(
        r"""
          CERTIFICATE_VERIFY_FAILED  # OpenSSL
        | CertVerification           # ssl.SSLCertVerificationError
        | CertificateError           # aiohttp.ClientConnectorCertificateError
        """,
        re.VERBOSE,
    ): "the server's certificate was refused: correct base_url, or have this machine trust the certificate",
    re.compile(
        r"""
          gaierror                    # socket.gaierror
        | DNSError                    # aiohttp.ClientConnectorDNSError
        | Name\ or\ service\ not\ known  # Linux
        | nodename\ nor\ servname      # macOS
        | name\ resolution             # "Temporary failure in name resolution"
        | getaddrinfo                 # Windows
        """,
        re.VERBOSE,
    ): "there is no such host: correct base_url, or look at the network",
    re.compile(
        r"""
          ConnectionRefused              # ConnectionRefusedError
        | Connection\ refused             # Linux and macOS
        | Connect\ call\ failed           # asyncio
        | All\ connection\ attempts\ failed  # anyio, which httpx uses
        """,
        re.VERBOSE,
    ): "nothing answers at the address (connection refused): start the server, or correct base_url",
}
"""The remedy for a failed connection, by class names and words of errors; the first match
counts."""

_MOST_READ = 20_000
_TOO_LONG = re.compile(
    r"""
      context[ _-](?:length|window|size)     # OpenAI: "context_length_exceeded"; llama.cpp: "context size"
    | maximum\ context                       # OpenAI: "This model's maximum context length is ..."
    | max_model_len                          # vLLM
    | maximum\ number\ of\ tokens            # Gemini
    | tokens\ exceed                         # Gemini: "input tokens exceed the configured limit"
    | (?:prompt|input)\ is\ too\ long        # Anthropic, Bedrock
    | too\ many\ (?:input\ |total\ )?tokens  # Bedrock: "Too many input tokens"; Cohere: "too many tokens"
    | reduce\ the\ length                    # OpenAI, Groq
    | max_new_tokens`?\ must\ be\ <=         # text-generation-inference
    | exceeds?\ .{0,30}context               # LM Studio, Mistral
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Matches the refusal of a prompt that is too long."""
_WITH_REPLY = re.compile(
    r"""
      max_(?:completion_|output_|new_)?tokens  # the parameter
    | completion                             # OpenAI: "(652 in the messages, 2048 in the completion)"
    | output\ tokens                         # Anthropic, vLLM
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Matches the refusal of a prompt that is too long together with the longest reply."""
_GIVEN_UP = {408, 499, 504, 524}
"""The statuses of a gateway that did not wait for the reply."""


def _errors_sent(error: BaseException) -> Iterator[dict[str, Any]]:
    """Yield the provider's error objects, from every place where clients store them."""
    bodies = [getattr(error, name, None) for name in ("body", "details", "response_json")]
    first = error.args[0] if isinstance(error, ValueError) and error.args else None
    if isinstance(first, dict) and isinstance(first.get("message"), str):
        bodies.append(first)  # langchain-openai raises the error inside a response with status 200
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
    """Yield these attributes of exceptions and their responses; AWS's response is a dict."""
    for cause in causes:
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            about = response.get("ResponseMetadata") or {}
            aws = {"status_code": about.get("HTTPStatusCode"), "headers": about.get("HTTPHeaders")}
            response = SimpleNamespace(**aws)
        yield from (getattr(place, name, None) for place in (cause, response) for name in names)


def _status(
    causes: list[BaseException], errors: list[dict[str, Any]], codes: set[str]
) -> int | None:
    """Return the status of the response, or of an error inside a response with status 200."""
    if any(map(_is_no_http, causes)):
        return None  # aiohttp reports it as status 400
    statuses = map(_http_status, _attributes(causes, "status_code", "status", "code"))
    status = next((number for number in statuses if number is not None), None)
    if status is not None and status >= 300:
        return status
    inside = [number for code in codes if (number := _http_status(code)) is not None]
    known = [CODE_STATUSES[code] for code in codes if code in CODE_STATUSES]
    return next(
        (number for number in inside + sorted(known) if number >= 400), 200 if errors else status
    )


def _http_status(code: object) -> int | None:
    number = (
        int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdecimal()) else 0
    )
    return number if 100 <= number < 600 else None


def _lost(error: BaseException) -> bool:
    """Return whether the connection failed without a reply, except for a refused certificate."""
    # First, because these are also ``ssl.SSLError`` or connection errors, and retrying does not
    # help.
    if re.search("CertVerification|Certificate", type(error).__name__):
        return False
    if getattr(error, "is_retryable", None) is True or _is_no_http(error):
        return True
    # A client found its connections dead because their event loop has ended. This attempt discards
    # them, so the next one succeeds.
    if isinstance(error, RuntimeError) and str(error) == "Event loop is closed":
        return True
    raised_in = {frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)}
    return _has_name(error, _CONNECTION) or not _READING.isdisjoint(raised_in)


def _is_no_http(error: BaseException) -> bool:
    # aiohttp's parser raises these as bad requests, although the response was not HTTP.
    return type(error).__module__ == "aiohttp.http_exceptions"


def _has_name(error: BaseException, names: re.Pattern[str]) -> bool:
    """Return whether the name of an exception's class, or of a base class, matches."""
    return any(names.search(base.__name__) for base in type(error).__mro__)


_NO_CONNECTION = re.compile(
    r"""
      ConnectionRefusedError
    | gaierror        # socket
    | ConnectError    # httpx
    | ConnectTimeout  # httpx, requests
    | ConnectorError  # aiohttp
    | PoolTimeout     # httpx
    | SSL             # ssl, requests
    | Certificate     # aiohttp
    """,
    re.VERBOSE,
)
"""Matches the class names of errors that occur before anything was sent."""

_CONNECTION = re.compile(
    r"""
      EOFError           # Python
    | gaierror           # socket
    | SSLError           # ssl
    | ^HTTPException     # http.client
    | JSONDecodeError    # json
    | Timeout            # Python, httpx, requests, openai's APITimeoutError
    | Connection         # Python, openai's APIConnectionError
    | Connector          # aiohttp
    | ConnectError       # httpx
    | Disconnected       # aiohttp's ServerDisconnectedError
    | Network            # httpx
    | ReadError          # httpx
    | WriteError         # httpx
    | ProtocolError      # httpx's RemoteProtocolError and LocalProtocolError, urllib3
    | ClientOSError      # aiohttp
    | Payload            # aiohttp
    | IncompleteRead     # http.client
    | Chunked            # requests' ChunkedEncodingError
    | DecodingError      # httpx, requests
    | ContentTypeError   # aiohttp
    | ResponseValidation # openai's APIResponseValidationError
    | RateLimit          # openai, anthropic
    | Overloaded         # anthropic
    | InternalServer     # openai, anthropic, Google
    | ServiceUnavailable # Google
    | DeadlineExceeded   # Google
    """,
    re.VERBOSE,
)
"""Matches the class names of errors after which the same call may succeed."""

_READING = {"_create_chat_result", "_construct_lc_result_from_responses_api", "_response_to_result"}
"""Functions in which LangChain's clients read a response; an error in them means no reply."""


# Which parameter was refused

# Matches ``logprobs``, ``top_logprobs`` and Gemini's ``responseLogprobs``. A bare ``n`` is too
# common, so it must be quoted or come before a verb: ``'n' is not supported``, ``n must be 1``.
_SHAPING = {
    LOGPROBS: re.compile(r"['\"`]?(?:response_?)?(?:top_)?log_?probs['\"`]?", re.IGNORECASE),
    SEVERAL: re.compile(
        r"['\"`]n['\"`]|\bn (?:must|should|is|>|=)|multiple (?:choices|completions)"
    ),
}
"""For each parameter that shapes a reply, a pattern that matches it in a refusal."""


_REFUSALS = {400, 404, 405, 415, 422, 500, 501}
"""OpenRouter reports with 404 that no endpoint has a feature; servers of open models with 500."""


def _found_by(about: Refusal, common: str = "") -> re.Pattern[str]:
    """Compile the common patterns of a refusal (one per line) and the providers' own patterns."""
    verbose = [f"(?x:{common})"] if common else []
    return re.compile("|".join([*verbose, *refusals_about(about)]))


# Messages are searched in lower case, with ``response_schema`` for ``responseSchema`` (`_snake`).
_FINDS: Mapping[Refusal, re.Pattern[str]] = {
    "unsupported": _found_by(
        "unsupported",
        r"""
          unsupported                                      # "Unsupported parameter: 'max_tokens' ..."
        | not\ (?:\w+\ )?supported                         # "is not currently supported"
        | (?:not|n't)\ support                             # "does not support", "doesn't support"
        | unknown\ (?:name|parameter|field|argument)       # "Unknown parameter: 'seed'."
        | unrecognized                                     # "Unrecognized request argument supplied: seed"
        | unexpected\ keyword                              # "got an unexpected keyword argument 'seed'"
        | only\ the\ default                               # "Only the default (1) value is supported."
        | not\ (?:permitted|allowed|enabled|available)     # "'minimum' is not permitted"
        | deprecated                                       # "`temperature` is deprecated for this model."
        | unavailable                                      # "response_format.type is unavailable now"
        | (?:may|can)\ only\ be\ set\ to                   # "`temperature` may only be set to 1"
        | or\ unset                                        # "must be greater than or equal to 0.95 or unset"
        | cannot\ both                                     # "`temperature` and `top_p` cannot both be specified"
        | extra\ inputs                                    # pydantic: "Extra inputs are not permitted"
        | does\ not\ accept                                # "this model does not accept temperature"
        | only\ 1\ is\ allowed                             # "invalid temperature: only 1 is allowed"
        | must\ not\ be\ set                               # "seed must not be set"
        """,
    ),
    "limit": _found_by(
        "limit",
        r"""
          max_(?:completion_|output_|new_)?tokens          # "max_tokens is too large: 9000."
        | in\ the\ completion                              # "2048 in the completion"
        | messages\ or\ completion                         # "reduce the length of the messages or completion"
        """,
    ),
    "not_built": _found_by(
        "not_built",
        r"""
          requires?[ ]                                     # "tools param requires --jinja flag"
        | failed\ to\ parse                                # llama.cpp: "failed to parse grammar"
        | conversion\ failed                               # llama.cpp: "JSON schema conversion failed"
        | not\ implemented                                 # "response_format is not implemented"
        | invalid\ (?:json\ )?(?:grammar|schema)           # "Invalid schema for response_format 'vote'"
        """,
    ),
    "unexplained": _found_by("unexplained"),
    "form_parameter": _found_by(
        "form_parameter",
        r"""
          response[_ ]?format
        | json_schema
        | json_object
        | tool_?choice
        | tool_?config                                     # Bedrock's toolConfig
        | output[_ ](?:config|format)                      # Anthropic
        | text_?format                                     # Bedrock's textFormat
        | response_(?:mime_type|schema|json_schema)        # Gemini
        | guided_                                          # vLLM's guided_json
        """,
    ),
    "form": _found_by(
        "form",
        r"""
          json[ _]?(?:schema|mode|object|output)           # "JSON mode is not supported for this model."
        | structured[ _]?outputs?                          # "Structured outputs are not available"
        | formatted\ output                                # "Model does not support formatted output."
        | \btools?\b                                       # "does not support tools"
        | function[ _-]call                                # "function calling is not supported"
        | tool[ _-](?:use|call|param)                      # "tool_use is not supported"
        | guided                                           # vLLM: "guided decoding is not supported"
        | grammar                                          # llama.cpp
        | constrained\ decod                               # "constrained decoding is not supported"
        | \bschema\b                                       # "invalid schema"
        """,
    ),
    "no_form": _found_by(
        "no_form",
        # Messages list the parts of a context, including tools.
        r"""
          context[ _](?:length|window|size)
        | too\ (?:long|large|many)                         # "tools are too many"
        | maximum\ (?:context|number)
        | quota
        | credit
        | billing
        | moderation
        | content[ _](?:policy|management|filter)
        | api[ _]key
        """,
    ),
    "bound": _found_by(
        "bound",
        r"""
          \b(?:exclusive_)?(?:minimum|maximum)\b
        | \b(?:min|max)_(?:length|items)\b
        | \bmultiple_of\b
        | \bpattern\b
        | \benum\b
        | features\ not\ supported                         # vLLM: "contains features not supported by xgrammar"
        | parse\ grammar                                   # llama.cpp: "failed to parse grammar"
        """,
    ),
    "too_much": _found_by("too_much"),
    "no_system": _found_by(
        "no_system",
        # Providers use it, and so do the chat templates of open models.
        r"""
          # "System role not supported", "developer messages are not allowed"
          ['"`]?(?:system|developer)['"`]?\ (?:role|messages?|prompts?|instructions?)
          [^.\n]{0,30} (?:not|n't|un) (?:\ \w+)? \ ?(?:support|enabl|allow|accept)
          # "This model doesn't support system messages", "message role not supported yet: system"
        | (?:not|n't|un) [ -]? (?:\w+\ )? (?:support|accept|allow)\w* (?:\ the|\ yet:?)?
          \ ['"`]?(?:system|developer)['"`]?
          # "Conversation roles must alternate user/assistant/..."
        | roles\ must\ alternate
          # 'role only allows "user" / "assistant"'
        | role\ only\ allows
          # "Unexpected role 'system' after role 'user'"; "unsupported message role: system" in Chinese
        | (?:unexpected|invalid|unknown|unsupported|不支持的) [^.\n]{0,20} \ role[:=\ ]{0,3}
          ['"`]?(?:system|developer)['"`]?
          # "role is not supported: system"
        | \brole [^.\n]{0,30} (?:not\ supported|unsupported) [^.\n]{0,20} ['"`]?(?:system|developer)['"`]?
          # "Only user and assistant roles are supported!"
        | only\ (?:supports?\ )? ['"`]?user['"`]?,?\ (?:and|or|/)\ ?['"`]?assistant
        """,
    ),
    "cache": _found_by("cache"),
}
"""Patterns that match the subject of a refusal."""

_DROPPABLE = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty", "frequency_penalty")
"""Parameters that a call can be made without."""


def _known(name: str) -> str | None:
    """Return our name for a provider's parameter, if the parameter can be left out."""
    # Providers also name a part, such as ``response_format.json_schema``; the parameter comes
    # first.
    first = _snake(name).partition(".")[0]
    first = PARAMETERS.get(first, first)
    return first if first in (*_DROPPABLE, STRUCTURE) else None


def _is_about_form(status: int | None, about: set[Refusal]) -> bool:
    """Return whether a refusal with these subjects is about the form of the reply."""
    if status not in _REFUSALS or "no_form" in about:
        return False
    # Without a stated cause the form is the most likely one: models differ most in schemas.
    if status in {400, 422} and "unexplained" in about:
        return True
    # A server error may be temporary, unless the message names the form.
    if status < 500 and "form_parameter" in about:
        return True
    is_refused = "unsupported" in about or "not_built" in about
    return is_refused and ("form_parameter" in about or "form" in about)


def _snake(message: str) -> str:
    # Gemini writes ``responseSchema`` or ``maxOutputTokens`` for its client's ``response_schema``.
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", message).lower()


# When to try again


_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# ``ms`` comes first; otherwise the ``m`` of ``20ms`` would be read as minutes.
_STRETCH = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def _duration(words: str) -> float | None:
    """Return the seconds of a duration such as ``7s``, ``1m30.5s``, ``20ms``; else None."""
    stretches = _STRETCH.findall(words)
    # Any other text means that this is not a duration.
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
        # For a date in the zone ``-0000``, the standard library returns one without a zone.
        return date if date.tzinfo else date.replace(tzinfo=UTC)
    return None
