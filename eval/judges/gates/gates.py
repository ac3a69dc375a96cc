"""Gates on a run: limits for its scores, and a comparison with an earlier run of the same judges.

A limit is compared with the mean, like a coverage threshold. A drop is compared with its interval:
differences are paired item by item and whole groups are resampled, so a build fails only if chance
cannot explain the drop.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, ElementTree, SubElement

import numpy as np

from ....state.errors import UsageError
from ....state.redaction import shell_line
from ...results.evaluation import Evaluation, Mean
from ...results.folder import differences, read_manifest, results_of
from ...statistics.alignment import code_count, number_clusters
from ...statistics.resampling import FEWEST_CLUSTERS, Resampling, Statistic, is_few
from ...tables.grid import in_words

_WINS = {"1": 1.0, "tie": 0.5, "2": 0.0}
_ANSWERS = ("answer_1", "answer_2")
# These parts of a signature describe the data or the program. The others identify the judge.
_NOT_THE_JUDGE = {
    "data",
    "aspects",
    "rule",
    "columns",
    "labels",
    "sample",
    "replies",
    "version",
    "jurygraph",
}
# Rounding can put a mean of floats slightly below a limit that it equals in exact arithmetic.
_SLACK = 1e-9
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2000
"""The maximum number of characters of an explanation that a CI system shows."""

ItemKey = tuple[str | None, str]
"""The group and the id of an item. Items in different groups may have the same id."""
Status = Literal["met", "not met", "undecided"]
Figures = Mapping[ItemKey, float]
"""The score of each item, averaged over repeats.

For comparisons: the share that the first answer won.
"""


@dataclass(frozen=True)
class GateResult:
    """The result of one gate for one judge's scores on one aspect.

    Attributes:
        gate: the requirement, such as ``coherence >= 3.5``.
        protocol, aspect: the judge and the aspect; the aspect is ``None`` for comparisons.
        status: ``met``, ``not met``, or ``undecided`` if a drop's interval is too wide to decide.
        figure: the mean score, the share of wins, or the drop, with its interval.
        reason: a sentence with the figure.
        below: the items that are below the limit, or that dropped by more than is allowed; the
            worst first.
    """

    gate: str
    protocol: str
    aspect: str | None
    status: Status
    figure: Statistic
    reason: str
    below: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether a build passes. An undecided gate passes, so that noise does not fail a build."""
        return self.status != "not met"

    def __str__(self) -> str:
        status = "undecided, passes" if self.status == "undecided" else self.status
        return f"gate {self.gate} ({self.protocol}): {status}: {self.reason}"


@dataclass(frozen=True)
class Gates:
    """The requirements that a run must meet.

    Attributes:
        fail_under: the lowest mean score by aspect. For comparisons, the lowest share of wins of
            ``answer_1`` or ``answer_2``; a tie is half a win.
        baseline: the folder of an earlier run of the same judges, on the same items with other
            candidates.
        max_drop: the largest allowed difference of a mean to the baseline's.

    Raises:
        UsageError: a limit is not a number, or a drop is negative.
    """

    fail_under: Mapping[str, float] = field(default_factory=dict)
    baseline: Path | None = None
    max_drop: float = 0.0

    def __post_init__(self) -> None:
        for name, limit in {**self.fail_under, "max_drop": self.max_drop}.items():
            if not math.isfinite(limit) or (name == "max_drop" and limit < 0):
                raise UsageError(
                    f"{name} must be a number{', 0 or more' * (limit < 0)}, got {limit}"
                )

    def __bool__(self) -> bool:
        return bool(self.fail_under) or self.baseline is not None

    def check(
        self, manifest: Mapping[str, Any], items: Collection[ItemKey]
    ) -> dict[tuple[str, str | None], Figures]:
        """Check that these gates apply to a run with this manifest and these items.

        You can call this before or after the run. Return the baseline's figures.

        Raises:
            UsageError: an unknown aspect, a limit outside its scale, or a baseline with other data,
                aspects or judges.
        """
        scales = {aspect["name"]: (aspect["low"], aspect["high"]) for aspect in manifest["aspects"]}
        if manifest["data"]["kind"] == "compare":
            scales = dict.fromkeys(_ANSWERS, (0.0, 1.0))
        for name, limit in self.fail_under.items():
            if name not in scales:
                raise UsageError(f"cannot set a gate on {name!r}: this run has {', '.join(scales)}")
            low, high = scales[name]
            if not low <= limit <= high:
                raise UsageError(f"{name}={limit:g}: scores lie between {low:g} and {high:g}")
        if self.baseline is None:
            return {}
        problem = next(_mismatches(read_manifest(self.baseline), manifest), None)
        before = {} if problem else _figures(results_of(self.baseline).read().heads())
        if not problem and not any(key in items for figures in before.values() for key in figures):
            problem = "none of the items that it judged is in this run"
        if problem:
            raise UsageError(
                f"{self.baseline} cannot be the baseline: "
                f"{problem}. It has to be a run of the same judge on the same items: "
                "judge the earlier texts that way first"
            )
        return before

    def results(self, run: Evaluation) -> list[GateResult]:
        """Apply the gates to a finished run.

        Raises:
            UsageError: as ``check``.
        """
        if not self:
            return []
        figures = _figures(run.heads())
        before = self.check(
            run.manifest, {key for of_aspect in figures.values() for key in of_aspect}
        )
        applied = []
        for (protocol, aspect), now in figures.items():
            for name, limit in self.fail_under.items():
                if aspect in (None, name):
                    applied.append(_limit(protocol, aspect, name, limit, now))
            if self.baseline:
                was = before.get((protocol, aspect), {})
                applied.append(_drop(protocol, aspect, self.max_drop, was, now))
        return applied


def check(
    run: Evaluation | str | Path,
    *,
    fail_under: Mapping[str, float] | None = None,
    baseline: str | Path | None = None,
    max_drop: float = 0.0,
) -> list[GateResult]:
    """Check a finished run, or its folder, against limits and an earlier run.

    Args are the attributes of ``Gates``.

    Raises:
        UsageError: a gate does not apply to this run.

    >>> from jurygraph.eval import evaluate
    >>> done = evaluate("single", "demo", aspects=["fluency"], limit=4)
    >>> print(*check(done, fail_under={"fluency": 5}))
    gate fluency >= 5 (single): not met: mean 4.875 of 4 items
    """
    gates = Gates(fail_under or {}, Path(baseline) if baseline else None, max_drop)
    return gates.results(run if isinstance(run, Evaluation) else read_run(Path(run)))


def read_run(folder: Path) -> Evaluation:
    """Read a finished run; a folder without one raises a ``DataError``."""
    return Evaluation(results_of(folder).read(), read_manifest(folder), folder)


def _figures(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str | None], Figures]:
    """Return the figures of each protocol and aspect."""
    means: dict[tuple[str, str | None], dict[ItemKey, Mean]] = {}
    for row in rows:
        items = means.setdefault((row["protocol"], row["aspect"]), {})
        value = _WINS.get(row["winner"]) if row["score"] is None else row["score"]
        if row["status"] == "ok" and value is not None:
            # Average by item first. Otherwise an item with more verdicts would count more.
            items.setdefault((row["group"], row["item"]), Mean()).add(value)
    return {
        of: {key: mean.total / mean.count for key, mean in items.items()}
        for of, items in means.items()
    }


def _mean(figures: Figures) -> tuple[Statistic, int]:
    """Return the mean with its interval, and the number of groups or single items resampled for it.

    With fewer than ten there is no interval, because it would be too narrow (see
    ``FEWEST_CLUSTERS``).
    """
    clusters = number_clusters([group for group, _ in figures])
    return Resampling().mean_interval(np.array([*figures.values()], float), clusters)[
        0
    ], code_count(clusters)


def _limit(protocol: str, aspect: str | None, name: str, limit: float, now: Figures) -> GateResult:
    own = (
        {key: 1 - value for key, value in now.items()}
        if aspect is None and name == _ANSWERS[1]
        else now
    )
    mean, _ = _mean(own)
    below = sorted((value, key[1]) for key, value in own.items() if value < limit - _SLACK)
    status: Status = "met" if mean.value is not None and mean.value >= limit - _SLACK else "not met"
    figure = f"{'mean' if aspect else 'share of wins'} {in_words(mean)} of {len(own):,} items"
    gate = f"{name} >= {limit:g}"
    reason = figure if own else "there is no verdict"
    return GateResult(
        gate, protocol, aspect, status, mean, reason, tuple(item for _, item in below)
    )


def _drop(
    protocol: str, aspect: str | None, allowed: float, before: Figures, now: Figures
) -> GateResult:
    drops = {key: before[key] - value for key, value in now.items() if key in before}
    drop, clusters = _mean(drops)
    status: Status = "undecided"
    reason = "no item has a verdict in both runs"
    if drops:
        was, becomes = (sum(run[key] for key in drops) / len(drops) for run in (before, now))
        reason = f"drop {in_words(drop)}, from {was:.3f} to {becomes:.3f}, on {len(drops):,} shared items"
    if drop.low is not None and drop.low > allowed + _SLACK:
        status = "not met"
    elif drop.high is not None and drop.high <= allowed + _SLACK:
        status = "met"
    elif is_few(clusters):
        reason += f": too few groups or items to tell ({clusters}, of at least {FEWEST_CLUSTERS})"
    elif drops:
        reason += ": the interval is too wide to tell; more items are needed"
    worst = sorted((key for key in drops if drops[key] > allowed), key=lambda key: -drops[key])
    name = f"drop of {aspect or _ANSWERS[0]} <= {allowed:g}"
    return GateResult(
        name, protocol, aspect, status, drop, reason, tuple(item for _, item in worst)
    )


def _mismatches(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between two runs, except new candidates and a new version."""
    for name in ("name", "kind"):
        if (was := before["data"].get(name)) != (becomes := now["data"].get(name)):
            yield f"its data's {name} is {was}, but this run's is {becomes}"
    aspects = {aspect["name"]: aspect for aspect in before.get("aspects", ())}
    for aspect in now["aspects"]:
        if aspect["name"] not in aspects:
            yield f"it did not judge {aspect['name']}, but {', '.join(aspects)}"
        elif changed := [
            part for part in aspect if aspect[part] != aspects[aspect["name"]].get(part)
        ]:
            yield f"{aspect['name']} had a different {changed[0]} there"
    old = before["signatures"]
    new = now["signatures"]
    # The earlier run may have had more judges.
    same = {protocol: old[protocol] for protocol in new if protocol in old} or old
    yield from differences(same, new, without=_NOT_THE_JUDGE)


def write_junit(
    path: Path, run: Evaluation, gates: Sequence[GateResult] = (), program: str = "jurygraph"
) -> None:
    """Write a JUnit file of test cases for CI systems.

    There is a case for each gate and for each judgement, with its score and explanation. A
    judgement without a verdict is an error. A judgement is a failure if a gate is not met and its
    item is below the limit. A gate that is met fails no case.

    Args:
        path: the file; its folder is created.
        run: the run to report.
        gates: the results of ``Gates.results``.
        program: the name of this program, for the command that shows a debate.
    """
    root = Element("testsuites", name="jurygraph")
    unmet = [gate for gate in gates if not gate.passed]
    failing = {(gate.protocol, gate.aspect, item): gate for gate in unmet for item in gate.below}
    for result in run.results:
        name = f"{result.item} (repeat {result.repeat})" if result.repeat else result.item
        gate = failing.get((result.protocol, result.aspect, result.item))
        kind = "error" if result.status == "failed" else "failure" if gate else ""
        scores = (
            f" ({' to '.join(f'{score:g}' for score in result.scores)})" if result.scores else ""
        )
        verdict = (
            f"winner {result.winner}{scores}" if result.score is None else f"score {result.score:g}"
        )
        because = f", and the gate {gate.gate} is not met" if gate else ""
        turns = (
            turn["content"] for turn in result.transcript if turn.get("id") == result.explained_by
        )
        text = f"{result.error or f'{verdict}{because}'}\n{next(turns, '')[:_LONGEST]}\n"
        if run.folder is not None:
            aspect = ["--aspect", result.aspect] if result.aspect else []
            words = [
                program,
                "show",
                str(run.folder),
                result.item,
                "--protocol",
                result.protocol,
                *aspect,
            ]
            text += f"to read the debate: {shell_line(*words)}"
        of = result.aspect or "preference"
        _case(root, result.protocol, of, name, kind, text).set("time", f"{result.seconds:.3f}")
    for applied in gates:
        items = ", ".join(applied.below[:20])
        kind = "" if applied.passed else "failure"
        _case(root, "gates", applied.protocol, applied.gate, kind, f"{applied}\n{items}")
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(root: Element, name: str, of: str, case_name: str, kind: str, text: str) -> Element:
    """Add a test case to the suite with this name; without a kind of problem it passes."""
    suite = next((suite for suite in root if suite.get("name") == name), None)
    if suite is None:
        suite = SubElement(root, "testsuite", name=name, tests="0", errors="0", failures="0")
    # XML attributes are texts, so the counts are read and written each time.
    for count in ("tests", *([f"{kind}s"] if kind else [])):
        suite.set(count, str(int(suite.attrib[count]) + 1))
    # XML does not allow control characters, which a model's reply can contain.
    case_name, text = (_NOT_IN_XML.sub("\ufffd", written) for written in (case_name, text))
    case = SubElement(suite, "testcase", classname=f"{name}.{of}", name=case_name)
    message = {"message": text.partition("\n")[0]} if kind else {}
    SubElement(case, kind or "system-out", message).text = text
    return case
