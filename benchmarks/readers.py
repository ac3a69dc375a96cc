"""Run the readers of replies over recorded replies of judge models.

    python benchmarks/readers.py [--data DIR] [--differences FORMAT] [--markdown]

Each format is read twice. With the rule of its authors (``nodes/replies/rules.py``), every reading
is compared with the published one. The rule for this package's own prompts accepts statement lines
only; the table counts the replies that it would request again. The replies answer other prompts,
most of which asked for another form.

The data folder is ``--data``, else the environment variable ``JURYGRAPH_DATA``, else
``../shared/data`` next to the repository.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jurygraph.nodes.replies import ReplyError, Rule, read_pair, read_score, read_vote
from rich.console import Console
from rich.table import Table

Value = float | tuple[float, float] | str
Read = Callable[[str, Rule | None], Value]


@dataclass(frozen=True)
class Sample:
    """One recorded reply.

    Attributes:
        key: its place in the data.
        reply: its text.
        read: reads it by a rule, or as a reply to this package's own prompts.
        rule: the authors' rule; None if the prompt asked for one of this package's forms.
        author: the authors' reading; None for nothing.
        recorded: whether the authors' reading is known.
    """

    key: str
    reply: str
    read: Read
    rule: Rule | None
    author: Value | None
    recorded: bool = True


@dataclass
class Tally:
    """The counts of the replies of one format."""

    name: str
    replies: int = 0
    agree: int = 0
    off_scale: int = 0
    nothing: int = 0
    missed: list[tuple[Sample, str]] = field(default_factory=list)
    differ: list[tuple[Sample, Value]] = field(default_factory=list)
    alone: int = 0
    asked_again: Counter[str] = field(default_factory=Counter)
    other_value: list[tuple[Sample, Value]] = field(default_factory=list)
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


# The formats


def topical_chat(data: Path, kind: str) -> Iterator[Sample]:
    """Ratings of one response, twenty samples an item; groundedness is 0 to 1, the rest 1 to 3."""
    for row in rows(data / "topical_chat" / f"chatgpt_replies_{kind}.jsonl.gz"):
        low, high = (0, 1) if row["dimension"] == "groundedness" else (1, 3)
        for at, (reply, author) in enumerate(
            zip(row["replies"], row["author_scores"], strict=True)
        ):
            yield Sample(
                f"{row['item_id']}/{row['dimension']}/{at}",
                reply,
                _score(low, high, row["dimension"]),
                "rating_digit",
                author,
            )


def summeval_rating(data: Path, kind: str, model: str) -> Iterator[Sample]:
    """Ratings of one summary with a reason, or as a letter."""
    for row in rows(data / "summeval" / "llm_rating_replies.jsonl.gz"):
        if (row["prompt_kind"], row["judge_model"]) == (kind, model):
            author = row["author_score"]
            key = f"{row['doc_id']}/{row['system_id']}/{row['dimension']}"
            rule: Rule = "letter" if "mcq" in kind else "score_cascade"
            known = None if author == -1 else author
            yield Sample(
                key, row["reply"], _score(1, 5, row["dimension"]), rule, known, author is not None
            )


def summeval_pairwise(data: Path) -> Iterator[Sample]:
    """Which of two summaries is better; A is the one shown first."""
    for row in rows(data / "summeval" / "llm_pairwise_replies.jsonl.gz"):
        choice = row["author_choice"]
        author = "tie" if choice == 0 else str(3 - choice if row["swapped"] else choice)
        yield Sample(
            f"{row['doc_id']}/{row['system_1']}/{row['system_2']}/{row['dimension']}",
            row["reply"],
            _vote,
            "summary_letter",
            author,
        )


def gpt4_geval(data: Path) -> Iterator[Sample]:
    """Relevance of one summary, twenty samples, English and Korean; no recorded readings."""
    for row in rows(data / "summeval" / "gpt4_geval_20.jsonl.gz"):
        for at, reply in enumerate(row["replies"]):
            yield Sample(
                f"{row['doc_id']}/{row['system_id']}/{row['setting']}/{at}",
                reply,
                _score(1, 5, "relevance"),
                None,
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
            _pair,
            "first_line",
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
            "bracket",
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
        printed = (
            {"model_1": "1", "model_2": "2"} if order == "ab" else {"model_1": "2", "model_2": "1"}
        )
        author = printed.get(row[winner], row[winner])
        key = f"{row['question_id']}/{row['model_1']}/{row['model_2']}/{row.get('turn', 1)}/{order}"
        yield Sample(key, row[name], _vote, "bracket", None if author == "error" else author)


def repro(data: Path, judge: str, kind: str) -> Iterator[Sample]:
    """Four open and closed judges: ``[[rating]]`` of one answer, or a verdict in both orders."""
    for row in rows(data / "mt_bench_repro" / f"judgments_en_{judge}.jsonl.gz"):
        if row["protocol"] == "pairwise" and kind == "pairwise":
            for order in ("ab", "ba"):
                author = {"A": "1", "B": "2", "tie": "tie"}.get(row[f"winner_{order}"])
                key = (
                    f"{row['question_id']}/{row['model_a']}/{row['model_b']}/{row['turn']}/{order}"
                )
                yield Sample(key, row[f"judgment_{order}"], _vote, "bracket", author)
        elif row["protocol"] != "pairwise" and kind == "single":
            for turn in (1, 2):
                if row["protocol"] == "single_grade_ref" and turn == 1:
                    continue
                score = row[f"score_turn{turn}"]
                key = f"{row['protocol']}/{row['question_id']}/{row['model_id']}/{turn}"
                known = None if score == -1 else score
                yield Sample(key, row[f"judgment_turn{turn}"], _score(1, 10), "bracket", known)


def judgebench(data: Path, model: str) -> Iterator[Sample]:
    """``[[A>>B]]`` and its like."""
    for row in rows(data / "judgebench" / "replies.jsonl.gz"):
        if row["judge_model"] == model:
            author = {"A>B": "1", "B>A": "2", "A=B": "tie"}.get(row["author_decision"] or "")
            yield Sample(
                f"{row['pair_id']}/{row['swapped']}", row["reply"], _vote, "bracket", author
            )


def llmbar(data: Path, model: str) -> Iterator[Sample]:
    """``Output (a)`` or a sentence; ``author_winner`` is mapped back to the order shown."""
    for row in rows(data / "llmbar" / "replies.jsonl.gz"):
        if row["kind"] == "verdict" and row["judge_model"] == model:
            author = row["author_winner"]
            if author is not None and row["swapped"]:
                author = "2" if author == "1" else "1"
            yield Sample(
                f"{row['item_id']}/{row['strategy']}/{row['step']}/{row['swapped']}",
                row["reply"] or "",
                _vote,
                _llmbar_rule(row),
                author,
            )


def _llmbar_rule(row: dict[str, Any]) -> Rule:
    """Return the rule of a prompt: with reasons, the last sentence decides, else the first name."""
    strategy = row["strategy"]
    reasons = strategy == "CoT" and row["judge_model"] != "PaLM2"
    return (
        "output_better"
        if reasons or "Swap_CoT" in strategy or (strategy, row["step"]) == ("Swap", 0)
        else "output_line"
    )


def llmbar_scores(data: Path) -> Iterator[Sample]:
    """Ratings of one output, 0 to 9, number only; the authors' readings are not recorded."""
    for row in rows(data / "llmbar" / "replies.jsonl.gz"):
        if row["kind"] in ("score_1", "score_2"):
            key = f"{row['item_id']}/{row['judge_model']}/{row['strategy']}/{row['swapped']}/{row['kind']}"
            yield Sample(key, row["reply"] or "", _score(0, 9), None, None, False)


def chateval_it(data: Path) -> Iterator[Sample]:
    """Italian discussions that end in an English score line; no recorded readings."""
    for row in rows(data / "chateval_it" / "transcripts.jsonl.gz"):
        for at, turn in enumerate(row["evaluations"]):
            key = f"{row['run']}/{row['conversation_id']}/{row['exchange_id']}/{at}"
            yield Sample(key, turn["evaluation"], _score(1, 10), "label", None, False)


def _score(low: float, high: float, aspect: str | None = None) -> Read:
    return lambda reply, rule: read_score(reply, low, high, aspect=aspect, rule=rule)


def _pair(reply: str, rule: Rule | None) -> Value:
    return read_pair(reply, rule=rule)


def _vote(reply: str, rule: Rule | None) -> Value:
    return read_vote(reply, rule=rule)


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
    table |= {
        f"summeval {kind} {model}": summeval_rating(data, kind, model) for kind, model in SUMMEVAL
    }
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


# The run


def tally(name: str, samples: Iterable[Sample]) -> Tally:
    """Read every reply of a format by its authors' rule and as a reply to our own prompts."""
    result = Tally(name)
    for sample in samples:
        result.replies += 1
        own, fault = _read(sample, None)
        started = time.perf_counter()
        theirs, theirs_fault = (own, fault) if sample.rule is None else _read(sample, sample.rule)
        result.seconds += time.perf_counter() - started
        if own is None:
            result.asked_again[fault] += 1
        elif sample.recorded and own != sample.author:
            result.other_value.append((sample, own))
        if sample.recorded:
            _compare(result, sample, theirs, theirs_fault)
    return result


def _read(sample: Sample, rule: Rule | None) -> tuple[Value | None, str]:
    try:
        return sample.read(sample.reply, rule), ""
    except ReplyError as error:
        return None, error.fault


def _compare(result: Tally, sample: Sample, theirs: Value | None, fault: str) -> None:
    if theirs == sample.author:
        result.agree += theirs is not None
        result.nothing += theirs is None
    elif theirs is None and fault == "off_scale":
        # The authors keep a number off the scale.
        result.off_scale += 1
    elif theirs is None:
        result.missed.append((sample, fault))
    elif sample.author is None:
        result.alone += 1
    else:
        result.differ.append((sample, theirs))


# The report


HEADINGS = (
    *("format", "rule", "replies", "as the authors", "nothing, as they", "off the scale", "other"),
    *("read in our forms", "asked again", "another value", "us per reply"),
)


def figures(result: Tally, rule: str) -> tuple[str, ...]:
    """One line of the report."""
    other = len(result.missed) + len(result.differ) + result.alone
    again = result.asked_again.total()
    total = max(1, result.replies)
    return (
        *(result.name, rule, f"{result.replies:,}", f"{result.agree:,}", f"{result.nothing:,}"),
        *(f"{result.off_scale:,}", f"{other:,}", f"{result.replies - again:,}"),
        *(f"{again:,} ({100 * again / total:.1f} %)", f"{len(result.other_value):,}"),
        f"{1e6 * result.seconds / total:.0f}",
    )


def report(table: dict[str, list[Sample]], *, markdown: bool) -> None:
    """Print the table."""
    rows = []
    for name, samples in table.items():
        rules = sorted({sample.rule or "-" for sample in samples})
        rows.append(figures(tally(name, samples), ", ".join(rules)))
    if markdown:
        print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
        for row in rows:
            print(f"| {' | '.join(row)} |")
    else:
        shown = Table(
            *HEADINGS,
            title="Recorded replies, by their authors' rules and in the forms of our own prompts",
        )
        for row in rows:
            shown.add_row(*row)
        Console(width=200).print(shown)
    print(f"- {sum(map(len, table.values())):,} replies in all")


def differences(result: Tally) -> None:
    """Print every reply of a format that is not read as the authors read it, by either rule."""
    for sample, fault in result.missed:
        print(f"--- missed | {sample.key} | {fault} | authors: {sample.author}\n{sample.reply}\n")
    for title, kept in (
        ("differs", result.differ),
        ("another value in our forms", result.other_value),
    ):
        for sample, ours in kept:
            print(
                f"--- {title} | {sample.key} | ours: {ours} | authors: {sample.author}\n{sample.reply}\n"
            )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, default=default_data(), help="folder of recorded replies"
    )
    parser.add_argument(
        "--differences",
        metavar="FORMAT",
        help="print the replies of this format that are read differently",
    )
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        raise SystemExit(f"no recorded replies: {arguments.data} is no folder (set JURYGRAPH_DATA)")
    table = formats(arguments.data)
    if arguments.differences is None:
        report(
            {name: list(samples) for name, samples in table.items()}, markdown=arguments.markdown
        )
    elif arguments.differences in table:
        differences(tally(arguments.differences, table[arguments.differences]))
    else:
        raise SystemExit(f"no format {arguments.differences!r}; there are: {', '.join(table)}")


if __name__ == "__main__":
    main()
