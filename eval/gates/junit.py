"""Write a run as JUnit XML, which CI systems show as tests: a case for each judgement, and one for each gate."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement

from ..results.evaluation import Evaluation
from ..results.results import Result
from .gates import GateResult

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2000


def write_junit(
    path: Path, run: Evaluation, gates: Sequence[GateResult] = (), program: str = "jurygraph"
) -> None:
    """Write a file of test cases, each with its score, why, and how to read the debate.

    A judgement without a verdict is an error. It is a failure where a gate is not met and this item is itself below
    its limit; a gate that is met fails no case.

    Args:
        path: the file; its folder is made.
        run: what was judged.
        gates: as ``Gates.results`` has them.
        program: how this program is called.
    """
    root = Element("testsuites", name="jurygraph")
    unmet = [gate for gate in gates if not gate.passed]
    failing = {(gate.protocol, gate.aspect, item): gate for gate in unmet for item in gate.below}
    for result in run.results:
        name = f"{result.item} (repeat {result.repeat})" if result.repeat else result.item
        gate = failing.get((result.protocol, result.aspect, result.item))
        kind = "error" if result.status == "failed" else "failure" if gate else ""
        because = f", and the gate {gate.gate} is not met" if gate else ""
        problem = result.error or f"{_verdict(result)}{because}"
        turns = (turn["content"] for turn in result.transcript if turn.get("id") == result.explained_by)
        text = f"{problem}\n{next(turns, '')[:_LONGEST]}\n{_show(run, result, program)}"
        of = result.aspect or "preference"
        _case(root, result.protocol, of, name, kind, text).set("time", f"{result.seconds:.3f}")
    for applied in gates:
        kind, items = "" if applied.passed else "failure", ", ".join(applied.below[:20])
        _case(root, "gates", applied.protocol, applied.gate, kind, f"{applied}\n{items}")
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(root: Element, name: str, of: str, case_name: str, kind: str, text: str) -> Element:
    """Add a test case to the suite of this name; without a kind of problem it has passed."""
    suite = next((suite for suite in root if suite.get("name") == name), None)
    if suite is None:
        suite = SubElement(root, "testsuite", name=name, tests="0", errors="0", failures="0")
    for count in ("tests", *([f"{kind}s"] if kind else [])):
        suite.set(count, str(int(suite.attrib[count]) + 1))
    # Control characters, as in a model's words, may stand in no XML document.
    case_name, text = (_NOT_IN_XML.sub("\ufffd", written) for written in (case_name, text))
    case = SubElement(suite, "testcase", classname=f"{name}.{of}", name=case_name)
    message = {"message": text.partition("\n")[0]} if kind else {}
    SubElement(case, kind or "system-out", message).text = text
    return case


def _verdict(result: Result) -> str:
    if result.score is not None:
        return f"score {result.score:g}"
    scores = f" ({' to '.join(f'{score:g}' for score in result.scores)})" if result.scores else ""
    return f"winner {result.winner}{scores}"


def _show(run: Evaluation, result: Result, program: str) -> str:
    if run.folder is None:
        return ""
    aspect = ["--aspect", result.aspect] if result.aspect else []
    words = [program, "show", str(run.folder), result.item, "--protocol", result.protocol, *aspect]
    return f"to read the debate: {shlex.join(words)}"
