"""Run the readers of replies over recorded judges' replies, beside what the recording authors read.

    python benchmarks/readers.py [--data DIR] [--differences FORMAT] [--markdown]

The data folder is ``--data``, else the environment variable ``JURYGRAPH_DATA``, else ``../shared/data`` beside the
repository. Every reply where the two readings part was looked at; `RULES` names the mistakes of the authors'
parsers that explain such replies, so that what is left are this package's own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from jurygraph.nodes.replies import ReplyError, Shown, read_pair, read_score, read_vote
from jurygraph.nodes.replies.json_fields import Field
from jurygraph.nodes.replies.provenance import Grammar, Statement, Strength
from jurygraph.nodes.replies.statements import agreed, final_statements
from jurygraph.nodes.replies.vocabulary import any_of, word_set
from rich.console import Console
from rich.table import Table

Value = float | tuple[float, float] | str


@dataclass(frozen=True)
class Sample:
    """One recorded reply: where it stands, its text, how to read it, and what the authors read (None: nothing)."""

    key: str
    reply: str
    read: Callable[[str], Value]
    author: Value | None
    recorded: bool = True


@dataclass
class Tally:
    """What became of the replies of one format."""

    name: str
    replies: int = 0
    read: int = 0
    agree: int = 0
    missed: list[tuple[Sample, str]] = field(default_factory=list)
    differ: list[tuple[Sample, Value]] = field(default_factory=list)
    alone: list[tuple[Sample, Value]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    unread: list[tuple[Sample, str]] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def default_data() -> Path:
    """The folder of recorded replies."""
    named = os.environ.get("JURYGRAPH_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a JSON lines file, compressed or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


# --- the formats -------------------------------------------------------------------------------------------------


def topical_chat(data: Path, kind: str) -> Iterator[Sample]:
    """Ratings of one dialogue response, twenty samples an item; groundedness is 0 to 1, the rest 1 to 3."""
    for row in rows(data / "topical_chat" / f"chatgpt_replies_{kind}.jsonl.gz"):
        low, high = (0, 1) if row["dimension"] == "groundedness" else (1, 3)
        for at, (reply, author) in enumerate(zip(row["replies"], row["author_scores"], strict=True)):
            yield Sample(
                f"{row['item_id']}/{row['dimension']}/{at}",
                reply,
                _score(low, high, row["dimension"]),
                author,
            )


def summeval_rating(data: Path, kind: str, model: str) -> Iterator[Sample]:
    """Ratings of one summary with a reason, or as a letter."""
    for row in rows(data / "summeval" / "llm_rating_replies.jsonl.gz"):
        if (row["prompt_kind"], row["judge_model"]) == (kind, model):
            author, key = row["author_score"], f"{row['doc_id']}/{row['system_id']}/{row['dimension']}"
            read = read_choice if "mcq" in kind else _score(1, 5, row["dimension"])
            known = None if author == -1 else author
            yield Sample(key, row["reply"], read, known, author is not None)


def summeval_pairwise(data: Path) -> Iterator[Sample]:
    """Which of two summaries is better; A is the one shown first."""
    for row in rows(data / "summeval" / "llm_pairwise_replies.jsonl.gz"):
        choice = row["author_choice"]
        author = "tie" if choice == 0 else str(3 - choice if row["swapped"] else choice)
        yield Sample(
            f"{row['doc_id']}/{row['system_1']}/{row['system_2']}/{row['dimension']}",
            row["reply"],
            read_vote,
            author,
        )


def gpt4_geval(data: Path) -> Iterator[Sample]:
    """Relevance of one summary, twenty samples, English and Korean prompts; the authors' readings are not recorded."""
    for row in rows(data / "summeval" / "gpt4_geval_20.jsonl.gz"):
        for at, reply in enumerate(row["replies"]):
            yield Sample(
                f"{row['doc_id']}/{row['system_id']}/{row['setting']}/{at}",
                reply,
                _score(1, 5, "relevance"),
                None,
                False,
            )


def vicuna80(data: Path) -> Iterator[Sample]:
    """Two scores on the first line, or at the end of a review in mathematics."""
    for row in rows(data / "vicuna80_reviews" / "reviews.jsonl.gz"):
        first, second = row["author_score"]
        yield Sample(
            f"{row['review_file']}/{row['question_id']}",
            row["reply"],
            read_pair,
            (float(first), float(second)),
        )


def fork_single(data: Path) -> Iterator[Sample]:
    """``[[rating]]`` of one answer."""
    for row in rows(data / "mt_bench" / "fork_single_judgments.jsonl.gz"):
        author = row["author_score"]
        yield Sample(
            f"{row['source']}/{row['question_id']}/{row['turn']}/{row['model']}",
            row["reply"],
            _score(1, 10),
            None if author == -1 else author,
        )


def fork_pair(data: Path) -> Iterator[Sample]:
    """``[[A]]``, ``[[B]]`` or ``[[C]]``, both orders."""
    for row in rows(data / "mt_bench" / "fork_pair_judgments.jsonl.gz"):
        yield from _both_orders(row, "g1_reply", "g2_reply")


def ja_vicuna(data: Path) -> Iterator[Sample]:
    """The same in Japanese."""
    for row in rows(data / "ja_vicuna_qa" / "gpt4_pair_judgments.jsonl.gz"):
        yield from _both_orders(row, "g1_judgment", "g2_judgment")


def _both_orders(row: dict[str, Any], first: str, second: str) -> Iterator[Sample]:
    for order, name, winner in (("ab", first, "g1_winner"), ("ba", second, "g2_winner")):
        printed = {"model_1": "1", "model_2": "2"} if order == "ab" else {"model_1": "2", "model_2": "1"}
        author = printed.get(row[winner], row[winner])
        key = f"{row['question_id']}/{row['model_1']}/{row['model_2']}/{row.get('turn', 1)}/{order}"
        yield Sample(key, row[name], read_vote, None if author == "error" else author)


def repro(data: Path, judge: str, kind: str) -> Iterator[Sample]:
    """Four open and closed judges: ``[[rating]]`` of one answer, or a verdict in both orders."""
    for row in rows(data / "mt_bench_repro" / f"judgments_en_{judge}.jsonl.gz"):
        if row["protocol"] == "pairwise" and kind == "pairwise":
            for order in ("ab", "ba"):
                author = {"A": "1", "B": "2", "tie": "tie"}.get(row[f"winner_{order}"])
                key = f"{row['question_id']}/{row['model_a']}/{row['model_b']}/{row['turn']}/{order}"
                yield Sample(key, row[f"judgment_{order}"], read_vote, author)
        elif row["protocol"] != "pairwise" and kind == "single":
            for turn in (1, 2):
                if row["protocol"] == "single_grade_ref" and turn == 1:
                    continue
                score = row[f"score_turn{turn}"]
                key = f"{row['protocol']}/{row['question_id']}/{row['model_id']}/{turn}"
                yield Sample(key, row[f"judgment_turn{turn}"], _score(1, 10), None if score == -1 else score)


def judgebench(data: Path, model: str) -> Iterator[Sample]:
    """``[[A>>B]]`` and its like."""
    for row in rows(data / "judgebench" / "replies.jsonl.gz"):
        if row["judge_model"] == model:
            author = {"A>B": "1", "B>A": "2", "A=B": "tie"}.get(row["author_decision"] or "")
            yield Sample(f"{row['pair_id']}/{row['swapped']}", row["reply"], read_vote, author)


def llmbar(data: Path, model: str) -> Iterator[Sample]:
    """``Output (a)`` or a sentence about it; ``author_winner`` is turned back to the order shown."""
    for row in rows(data / "llmbar" / "replies.jsonl.gz"):
        if row["kind"] == "verdict" and row["judge_model"] == model:
            author = row["author_winner"]
            if author is not None and row["swapped"]:
                author = "2" if author == "1" else "1"
            yield Sample(
                f"{row['item_id']}/{row['strategy']}/{row['step']}/{row['swapped']}",
                row["reply"] or "",
                read_vote,
                author,
            )


def llmbar_scores(data: Path) -> Iterator[Sample]:
    """Ratings of one output, 0 to 9, number only; the authors' readings are not recorded."""
    for row in rows(data / "llmbar" / "replies.jsonl.gz"):
        if row["kind"] in ("score_1", "score_2"):
            key = f"{row['item_id']}/{row['judge_model']}/{row['strategy']}/{row['swapped']}/{row['kind']}"
            yield Sample(key, row["reply"] or "", _score(0, 9), None, False)


def chateval_it(data: Path) -> Iterator[Sample]:
    """Discussions in Italian that end in an English score line; the authors' readings are not recorded."""
    for row in rows(data / "chateval_it" / "transcripts.jsonl.gz"):
        for at, turn in enumerate(row["evaluations"]):
            key = f"{row['run']}/{row['conversation_id']}/{row['exchange_id']}/{at}"
            yield Sample(key, turn["evaluation"], _score(1, 10), None, False)


def _score(low: float, high: float, aspect: str | None = None) -> Callable[[str], Value]:
    return lambda reply: read_score(reply, low, high, aspect=aspect)


TOPICAL = ("geval", "geval_no_auto_cot", "llm_eval_no_cot", "rate_explain", "analyze_rate")
SUMMEVAL = (
    ("rts", "gpt-3.5-turbo-0301"), ("rts", "gpt-4-0314"), ("rts", "llama-2-13b-chat-hf"), ("rts", "llama-2-7b-chat-hf"),
    ("altrts", "gpt-3.5-turbo-0301"), ("mcq", "gpt-3.5-turbo-0301"), ("altmcq", "gpt-3.5-turbo-0301"),
    ("mcq_old", "gpt-4-0314"), ("old", "gpt-4-0314"),
)  # fmt: skip
REPRO = ("gpt-4o-mini", "qwen2.5-7b", "qwen2.5-14b", "gemma-4-12b")
LLMBAR = ("GPT-4", "ChatGPT", "ChatGPT-0301", "LLaMA2", "PaLM2")
JUDGEBENCH = ("claude-3-haiku-20240307", "o1-mini-2024-09-12")


def formats(data: Path) -> dict[str, Iterable[Sample]]:
    """Every format by name, read lazily."""
    table: dict[str, Iterable[Sample]] = {}
    table |= {f"topical_chat {kind}": topical_chat(data, kind) for kind in TOPICAL}
    table |= {f"summeval {kind} {model}": summeval_rating(data, kind, model) for kind, model in SUMMEVAL}
    table |= {"summeval pairwise": summeval_pairwise(data), "summeval gpt4 geval": gpt4_geval(data)}
    table |= {"vicuna80 reviews": vicuna80(data)}
    table |= {"mt_bench single": fork_single(data), "mt_bench pair": fork_pair(data)}
    table |= {
        f"mt_bench_repro {kind} {judge}": repro(data, judge, kind)
        for judge in REPRO
        for kind in ("single", "pairwise")
    }
    table |= {f"judgebench {model}": judgebench(data, model) for model in JUDGEBENCH}
    table |= {f"llmbar verdict {model}": llmbar(data, model) for model in LLMBAR}
    table |= {
        "llmbar score": llmbar_scores(data),
        "chateval_it": chateval_it(data),
        "ja_vicuna_qa": ja_vicuna(data),
    }
    return table


# --- the letter of a multiple-choice grade, which no protocol of this package asks for ---------------------------


def read_choice(reply: str, letters: str = "ABCDE") -> float:
    """The grade whose letter a reply states, from 1 upwards."""
    choices = final_statements(reply, Shown(), _Letters(letters))
    return float(1 + letters.index(agreed(reply, choices[-1].value, "choice")))


_CHOICE_KEYS = word_set("choice answer option grade rating score letter final_answer")


@dataclass(frozen=True)
class _Letters(Grammar[str]):
    """A choice is a letter, or two where alternatives are given."""

    what: ClassVar[str] = "choice"
    letters: str

    def from_fields(self, entries: Sequence[Field]) -> list[str]:
        values = (str(entry.value)[:20] for entry in entries if entry.name in _CHOICE_KEYS)
        return [statement.value for statement in self.find("\n".join(values))]

    def find(self, words: str) -> list[Statement[str]]:
        grade = f"[{re.escape(self.letters)}]"
        other = rf"(?: ?(?:or|/) ?[(\[]?(?P<other>{grade})\b)?"
        letter = rf"[(\[]{{0,2}}(?P<letter>{grade})[)\]]{{0,2}}(?![\w'\u2019-]){other}"
        ends = r"(?= ?(?:\Z|[.:,;)\n(—-]|as|because|since|for|out|in|indicating|which))"
        forms = {
            Strength.BRACKETS: rf"\[\[(?P<letter>{grade})(?P<other>)\]\]",
            Strength.LABEL: rf"(?i:\b{any_of('letter_label')}) ?[:=]? ?\n{{0,2}}{letter}{ends}",
            Strength.OWN_LINE: rf"(?m:^)(?:[-•*] )?{letter}(?= ?(?:\Z|[.:,)\n(—-]))",
            Strength.BARE: rf"(?m:^|[.!?:,] |\bis ){letter}(?=[.]?\Z)",
        }
        for strength, form in forms.items():
            matches = [*re.finditer(form, words)]
            choices = [match["letter"] + (match["other"] or "") for match in matches]
            # Lines that begin with several letters explain all grades.
            if matches and not (strength == Strength.OWN_LINE and len(set(choices)) > 1):
                return [Statement(strength, *matches[-1].span(), choices[-1])]
        return []


# --- what explains a difference ----------------------------------------------------------------------------------


Rule = Callable[[Sample, Value | str], bool]

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def _cut_decimal(sample: Sample, ours: Value | str) -> bool:
    return (
        isinstance(ours, float)
        and ours != sample.author
        and sample.author == int(ours)
        and f"{ours:g}" in sample.reply
    )


def _list_index(sample: Sample, ours: Value | str) -> bool:
    index = re.match(r"\s*(\d+)\. ", sample.reply)
    return (
        index is not None
        and float(index[1]) == sample.author
        and (isinstance(ours, float) or sample.reply.count("\n") > 0)
    )


def _echo(sample: Sample, ours: Value | str) -> bool:
    """The authors' number is the first of the reply and belongs to a text that it repeats, ours is its last."""
    numbers, digit = _NUMBER.findall(sample.reply), re.search(r"\d", sample.reply)
    echoed = (
        re.match(r"(?:Fact:|Response|Now, I|Conversation|Possible|No\. The response)", sample.reply)
        is not None
    )
    said_last = isinstance(ours, float) and bool(numbers) and float(numbers[-1]) == ours
    longer = re.search(r"[^\W\d]\d|\d\d", sample.reply) is not None and not isinstance(ours, float)
    return digit is not None and float(digit[0]) == sample.author and (echoed or said_last or longer)


def _off_scale(_: Sample, ours: Value | str) -> bool:
    return ours == "off_scale"


def _number_in_words(sample: Sample, ours: Value | str) -> bool:
    return re.search(r"\b(?:one|two|three|four|five) out of five\b", sample.reply) is not None and isinstance(
        ours, float
    )


def _maximum(sample: Sample, ours: Value | str) -> bool:
    """The authors' reading is the 5 of "n out of 5" or "n/5", or their default, and not the n."""
    written = f"{ours:g}" if isinstance(ours, float) else "?"
    stated = re.search(
        rf"(?<![\d.]){re.escape(written)}(?: out of |/)5|\b{re.escape(written)}\W*\Z", sample.reply
    )
    return sample.author == 5 and ours != 5 and stated is not None


def _better_b(sample: Sample, ours: Value | str) -> bool:
    """The closing sentence says that Output (b) is better, the authors have the first output."""
    parts = re.findall(r"Output \(([ab])\)(?: is| as) (?:the )?better", sample.reply)
    return bool(parts) and parts[-1] == "b" and ours == "2" and sample.author == "1"


def _keys(*keys: str) -> Rule:
    return lambda sample, _: sample.key in keys


def _part(sample: Sample, ours: Value | str) -> bool:
    """A breakdown accompanies the score of the whole, and the authors' number is one of its parts."""
    breakdown = re.search(r"(?m)^\s*(?:[*-]|\d\.) ", sample.reply) is not None
    written = f"{ours:g}" if isinstance(ours, float) else "none"
    whole = re.search(rf"(?i:score|overall)[^\n]{{0,80}}\b{written}(?: out of |/)5", sample.reply)
    return breakdown and whole is not None and ours != sample.author


BY_HAND = {
    "result": ("dm-test-eeef09d26cf30c2124c0399b08eedc6321fe5d20/M11/consistency",),
    "quoted": (
        "dm-test-4e0de0ec6d5b9df174f54d03158de8f30aac861f/M10/fluency",
        "dm-test-4e0de0ec6d5b9df174f54d03158de8f30aac861f/M12/consistency",
        "dm-test-03e271b4305517e02c9ead82d57327d32b99102e/M12/consistency",
        "dm-test-2cfc33d01364162579f46b2764914a03a29453ce/M20/consistency",
        "dm-test-4001b252a072ac149c70840b22299cc6cfab3bae/M22/consistency",
        "dm-test-9b1af0f993d78353ebd56a1b180e882e751527b3/M8/fluency",
    ),
    "verdict": (
        "Adversarial-Neighbor-098/Vanilla_1shot/0/False",
        "Adversarial-Neighbor-098/Vanilla_2shot/0/False",
        "Adversarial-GPTInst-003/CoT/0/False",
    ),
}
"""Replies that were looked at one by one, by the key that ``--differences`` shows."""

RULES: dict[str, tuple[tuple[str, Rule], ...]] = {
    "topical_chat": (
        ("authors keep the whole part of a decimal", _cut_decimal),
        ("authors read the index of a list", _list_index),
        ("authors read a number of an echoed text", _echo),
        ("off the scale, authors keep it", _off_scale),
    ),
    "summeval": (
        ("authors read the maximum, or their default 5", _maximum),
        ("number in words", _number_in_words),
        ("authors read the score of one criterion or sentence", _part),
        ("no score in the reply, authors take a number of the article", _keys(*BY_HAND["result"])),
        ("authors read a number of the text under judgement, or an earlier score", _keys(*BY_HAND["quoted"])),
    ),
    "vicuna80": (
        ("off the scale, authors keep it", _off_scale),
        ("set by hand, not as the reply says", _keys("bard_vicuna-13b/70", "llama-13b_vicuna-13b/70")),
    ),
    "llmbar verdict": (
        ("authors take the first output where the reply says that (b) is better", _better_b),
        ("authors do not take the verdict that opens or closes the reply", _keys(*BY_HAND["verdict"])),
    ),
}


def explanation(name: str, sample: Sample, ours: Value | str) -> str | None:
    """Why the authors' reading of this reply is not the right one, None where it may be."""
    for prefix, rules in RULES.items():
        if name.startswith(prefix):
            for reason, rule in rules:
                if rule(sample, ours):
                    return reason
    return None


# --- the run -----------------------------------------------------------------------------------------------------


def tally(name: str, samples: Iterable[Sample]) -> Tally:
    """Read every reply of a format and compare."""
    result = Tally(name)
    for sample in samples:
        result.replies += 1
        started = time.perf_counter()
        try:
            ours: Value | None = sample.read(sample.reply)
            fault = ""
        except ReplyError as error:
            ours, fault = None, error.fault
        result.seconds += time.perf_counter() - started
        _count(result, sample, ours, fault)
    return result


def _count(result: Tally, sample: Sample, ours: Value | None, fault: str) -> None:
    result.read += ours is not None
    if not sample.recorded:
        if ours is None:
            result.unread.append((sample, fault))
            result.refused[fault] += 1
    elif ours is None and sample.author is None:
        result.refused[fault] += 1
    elif ours is None:
        _explain_or_keep(result, sample, fault, result.missed)
    elif sample.author is None:
        result.alone.append((sample, ours))
    elif ours == sample.author:
        result.agree += 1
    else:
        _explain_or_keep(result, sample, ours, result.differ)


def _explain_or_keep(result: Tally, sample: Sample, ours: Any, kept: list[tuple[Sample, Any]]) -> None:
    reason = explanation(result.name, sample, ours)
    if reason is None:
        kept.append((sample, ours))
    else:
        result.explained[reason] += 1


# --- the report --------------------------------------------------------------------------------------------------


HEADINGS = (
    *("format", "replies", "read", "agree", "refused by both", "read by us only"),
    *("missed", "differ", "authors' slips", "missed %", "differ %", "us per reply"),
)


def figures(result: Tally) -> tuple[str, ...]:
    """One line of the report."""
    missed, differ = len(result.missed) + len(result.unread), len(result.differ)
    total = max(1, result.replies)
    return (
        *(result.name, f"{result.replies:,}", f"{result.read:,}", f"{result.agree:,}"),
        *(f"{result.refused.total():,}", f"{len(result.alone):,}", f"{missed:,}", f"{differ:,}"),
        f"{result.explained.total():,}",
        *(
            f"{100 * missed / total:.2f}",
            f"{100 * differ / total:.2f}",
            f"{1e6 * result.seconds / total:.0f}",
        ),
    )


def report(results: list[Tally], *, markdown: bool) -> None:
    """Print the table, and under it what explains the authors' slips."""
    if markdown:
        print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
        for result in results:
            print(f"| {' | '.join(figures(result))} |")
    else:
        table = Table(*HEADINGS, title="Readers beside the recording authors")
        for result in results:
            table.add_row(*figures(result))
        Console(width=200).print(table)
    slips: Counter[str] = sum((result.explained for result in results), Counter())
    for reason, count in slips.most_common():
        print(f"- {count:,}: {reason}")
    print(f"- {sum(result.replies for result in results):,} replies in all")


def differences(result: Tally) -> None:
    """Print every reply of a format that is not read as the authors read it."""
    for title, kept in (("missed", result.missed), ("differs", result.differ), ("only ours", result.alone)):
        for sample, ours in kept:
            print(f"--- {title} | {sample.key} | ours: {ours} | authors: {sample.author}\n{sample.reply}\n")
    for sample, fault in result.unread:
        print(f"--- unread | {sample.key} | {fault}\n{sample.reply}\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=default_data(), help="folder of recorded replies")
    parser.add_argument(
        "--differences", metavar="FORMAT", help="print the replies of this format that are read differently"
    )
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        raise SystemExit(f"no recorded replies: {arguments.data} is no folder (set JURYGRAPH_DATA)")
    table = formats(arguments.data)
    if arguments.differences is None:
        report([tally(name, samples) for name, samples in table.items()], markdown=arguments.markdown)
    elif arguments.differences in table:
        differences(tally(arguments.differences, table[arguments.differences]))
    else:
        raise SystemExit(f"no format {arguments.differences!r}; there are: {', '.join(table)}")


if __name__ == "__main__":
    main()
