"""The families of language models, by the names that models and data sets use.

Two models are of one family if they share an origin: the maker, or the model that one of them was
trained from. A judge tends to favour texts of its own family, so ``recuse=family`` asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        name: the maker of its first model.
        names: regular expressions for the beginning of a word in a model's name, in lower case.
    """

    name: str
    names: tuple[str, ...]


FAMILIES = (
    Family("openai", (r"gpt-?[2-9](?!all)", r"gpt-?oss", r"chatgpt", r"o[1-9](?![a-z0-9])",
                      r"(?:text|code)-(?:davinci|curie|babbage|ada)", r"davinci", r"instructgpt",
                      r"codex(?![a-z])")),
    Family("anthropic", (r"claude",)),
    Family("google", (r"gemini", r"palm(?![a-z])", r"bard(?![a-z])", r"gemma", r"bison",
                      r"flan", r"t5(?![a-z])", r"fastchat-t5", r"lamda(?![a-z])",
                      r"learnlm", r"pegasus")),
    Family("meta", (r"llama", r"codellama", r"alpaca", r"vicuna", r"koala", r"guanaco",
                    r"wizard-?lm", r"tulu", r"oasst-sft-\d+-llama", r"opt-\d", r"bart(?![a-z])",
                    r"longchat", r"openllama")),
    Family("mistral", (r"mistral", r"mixtral", r"ministral", r"codestral", r"magistral",
                       r"pixtral", r"devstral", r"zephyr", r"openhermes", r"starling")),
    Family("qwen", (r"qwen", r"qwq", r"qvq")),
    Family("deepseek", (r"deepseek",)),
    Family("cohere", (r"command(?:-|$)(?:r|a|light|nightly|xlarge|\d)?", r"c4ai", r"aya(?![a-z])")),
    Family("xai", (r"grok",)),
    Family("microsoft", (r"phi-?[1-9]", r"mai-", r"orca(?![a-z])")),
    Family("amazon", (r"nova-(?:micro|lite|pro|premier)", r"titan-")),
    Family("ai21", (r"jamba", r"jurassic", r"j2-")),
    Family("zhipu", (r"glm", r"chatglm")),
    Family("moonshot", (r"kimi", r"moonshot")),
    Family("01-ai", (r"yi-",)),
    Family("tii", (r"falcon",)),
    Family("mosaicml", (r"mpt-\d", r"dbrx")),
    Family("eleutherai", (r"gpt-?j", r"gpt-?neo", r"gptj", r"pythia", r"dolly", r"gpt4all",
                          r"oasst-sft-\d+-pythia", r"stablelm-tuned")),
    Family("baichuan", (r"baichuan",)),
    Family("internlm", (r"internlm",)),
    Family("minimax", (r"minimax", r"abab\d")),
    Family("nvidia", (r"nemotron",)),
    Family("ibm", (r"granite",)),
    Family("huggingface", (r"smollm", r"bloom(?![a-z]{2})")),
    Family("allenai", (r"olmo", r"molmo")),
    Family("baidu", (r"ernie",)),
    Family("tencent", (r"hunyuan",)),
    Family("bytedance", (r"doubao", r"seed-")),
    Family("human", (r"(?:human|person|reference|gold|expert|writer)s?(?:[ _-]?\d+)?$",
                     r"(?:original )?ground[ _-]truth$")),
)  # fmt: skip
"""All families with models that judge or wrote answers of published data sets.

A model that was trained from another family's is of both, if its name contains both. ``human``
marks texts of people.
"""

# A dot is part of a version, but separates a maker from a model (`anthropic.claude-3`).
_FIRST = r"(?:^|[^a-z0-9.]|(?<=[a-z])\.)"
_PATTERNS = {
    family.name: re.compile("|".join(f"{_FIRST}(?:{name})" for name in family.names))
    for family in FAMILIES
}


@lru_cache(maxsize=1024)
def families_of(name: str) -> frozenset[str]:
    """Return the families of a model, by its name; empty if no family is known.

    A name of several models, such as one with fallbacks, has the families of all of them. A
    provider that serves other makers' models is no family.

    >>> sorted(families_of("groq:deepseek-r1-distill-llama-70b")), sorted(families_of("GPT-4"))
    (['deepseek', 'meta'], ['openai'])
    >>> families_of("openai:my-own-model"), families_of("offline")
    (frozenset(), frozenset())
    """
    names = name.partition("?")[0].strip().lower()
    return frozenset(family for family, known in _PATTERNS.items() if known.search(names))


@dataclass(frozen=True)
class Kinship:
    """Whether a model may judge the texts of some authors.

    Attributes:
        shared: a family, or the name, that the model shares with an author; empty without one.
        author: that author; empty without one.
        unknown: the names whose family is unknown, so that nothing can be said about them.
    """

    shared: str = ""
    author: str = ""
    unknown: tuple[str, ...] = ()


def kinship(model: str, authors: Iterable[str]) -> Kinship:
    """Compare a model with the authors of a candidate or of two answers.

    >>> kinship("openai:gpt-4o", ["claude-2", "gpt-3.5-turbo"])
    Kinship(shared='openai', author='gpt-3.5-turbo', unknown=())
    >>> kinship("openai:gpt-4o", ["M11"]).unknown
    ('M11',)
    """
    known = families_of(model)
    unknown = () if known else (model,)
    for author in authors:
        families = families_of(author)
        # The same model is of one family, also if its family is unknown.
        if _bare(author) == _bare(model):
            return Kinship(min(known, default=author), author)
        if shared := known & families:
            return Kinship(min(shared), author)
        if not families:
            unknown = (*unknown, author)
    return Kinship(unknown=unknown)


def _bare(name: str) -> str:
    """Return a name in lower case without its parameters and the provider before the colon."""
    without_parameters = name.partition("?")[0].strip().lower()
    provider, _, model = without_parameters.partition(":")
    return model if model and provider.replace("_", "").isalnum() else without_parameters
