"""Ready-made plans: the ablations of the papers, each as data.

A plan says what varies, on which kind of data, and how its table and figure are laid out. To write one's own, make an
``Ablation`` and hand it to ``plan_ablation``, or give its axes to ``sweep``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from typing import Any, Unpack

from ...graphs.registry import find_protocol
from ...state.call_counts import total
from ...state.errors import UsageError
from ...state.settings import make_settings
from ...state.tasks import TaskKind
from ..datasets.dataset import Data, Dataset
from ..datasets.items import CompareItem, Item
from .cell_metrics import Extra
from .cells import Axis
from .sweep_plan import SweepOptions, SweepPlan, dataset_of, plan_sweep

DEBATE = "DEBATE (Kim et al. 2024)"
CHATEVAL = "ChatEval (Chan et al. 2024)"
COURTROOM = "the courtroom paper"

STRATEGIES = ["one_by_one", "simultaneous", "summarizer"]
COMPARING = ("faireval", "mt-bench", "llmbar")
RATING = ("summeval", "topical-chat")


@dataclass(frozen=True)
class Ablation:
    """A plan of a sweep.

    Attributes:
        name: as after ``--plan``.
        question: what it answers.
        source: paper, and section, table or figure.
        protocol: of cells whose axes name none.
        axes: what varies.
        data: datasets that fit, the source's own first.
        kind: what data it is for; ``None``: any.
        across: the axis whose values stand beside each other in the source's table, if any.
        along: the axis that the figure runs along; default: the first.
        by_category: whether the items' categories are told apart.
        extras: further columns.
    """

    name: str
    question: str
    source: str
    protocol: str
    axes: tuple[Axis, ...]
    data: tuple[str, ...]
    kind: TaskKind | None = None
    across: str | None = None
    along: str | None = None
    by_category: bool = False
    extras: tuple[Extra, ...] = ()


ABLATIONS: Mapping[str, Ablation] = {
    plan.name: plan
    for plan in (
        Ablation(
            "rounds",
            "how many rounds a debate should have at most",
            f"{DEBATE}, Figure 2, left",
            "debate",
            (Axis.of("n", [1, 2, 3, 4, 5]),),
            data=RATING,
        ),
        Ablation(
            "personas",
            "how critical the Critic should be",
            f"{DEBATE}, Figure 2, middle",
            "debate",
            (Axis.of("persona", ["plain", "weak", "moderate", "strict"]),),
            data=RATING,
        ),
        Ablation(
            "sophisticated",
            "whether a more complex prompt makes a better Critic",
            f"{DEBATE}, appendix C, Table 3",
            "debate",
            (
                Axis.of(
                    "prompt",
                    {"original": {"persona": "strict"}, "sophisticated": {"persona": "sophisticated"}},
                ),
            ),
            data=RATING,
        ),
        Ablation(
            "tie-breaker",
            "who should decide a debate that stays open, with a neutral Critic and a devil's advocate",
            f"{DEBATE}, Figure 2, right",
            "debate",
            (
                Axis.of(
                    "style",
                    {
                        "MultiAgent": {"persona": "plain", "tie_breaker": False},
                        "tie-breaker": {"persona": "plain", "tie_breaker": True},
                        "DEBATE": {"persona": "strict", "tie_breaker": False},
                        "both": {"persona": "strict", "tie_breaker": True},
                    },
                ),
            ),
            data=RATING,
        ),
        Ablation(
            "referees",
            "how many referees should talk, and who hears whom",
            f"{CHATEVAL}, section 4.3, role numbers",
            "chateval",
            (Axis.of("strategy", STRATEGIES), Axis.of("referees", [1, 2, 3, 4, 5])),
            data=(*COMPARING, *RATING),
            across="referees",
            along="referees",
        ),
        Ablation(
            "turns",
            "how long referees should talk, and who hears whom",
            f"{CHATEVAL}, section 4.3, discussion turns",
            "chateval",
            (Axis.of("strategy", STRATEGIES), Axis.of("turns", [1, 2, 3, 4])),
            data=(*COMPARING, *RATING),
            across="turns",
            along="turns",
        ),
        Ablation(
            "strategies",
            "who should hear whom among three referees",
            f"{CHATEVAL}, section 4.2",
            "chateval",
            (
                Axis.of(
                    "strategy", {name: {"strategy": name, "referees": 3, "turns": 2} for name in STRATEGIES}
                ),
            ),
            data=(*COMPARING, *RATING),
        ),
        Ablation(
            "roles",
            "whether referees need different personas",
            f"{CHATEVAL}, section 4.1, Table 3",
            "chateval",
            (
                Axis.of(
                    "judge",
                    {
                        "single agent": {"protocol": "single"},
                        "same roles": {"protocol": "chateval", "roles": "same", "referees": 2, "turns": 2},
                        "diverse roles": {
                            "protocol": "chateval",
                            "roles": "diverse",
                            "referees": 2,
                            "turns": 2,
                        },
                    },
                ),
            ),
            data=(*COMPARING, *RATING),
        ),
        Ablation(
            "experts",
            "which group of experts suits which category of questions",
            f"{CHATEVAL}, section 4.1, figure on groups and categories",
            "chateval",
            (Axis.of("roles", ["generic", "knowledge", "writing", "coding"]),),
            data=COMPARING,
            kind="compare",
            by_category=True,
        ),
        Ablation(
            "jury",
            "what advocates and a jury add to a judge",
            f"{COURTROOM}, section 4.2, Table 1",
            "samre",
            (
                Axis.of(
                    "architecture",
                    {
                        "baseline": {"protocol": "baseline"},
                        "MORE": {"protocol": "more"},
                        "SAMRE": {"protocol": "samre"},
                        "SAMRE without juries": {"protocol": "samre", "jurors": 0},
                    },
                ),
            ),
            data=("mt-bench", "faireval", "llmbar"),
            kind="compare",
            across="architecture",
        ),
        Ablation(
            "ballot",
            "whether jurors should vote or score",
            f"{COURTROOM}, section 5",
            "samre",
            (Axis.of("ballot", ["vote", "score"]),),
            data=("mt-bench", "faireval", "llmbar"),
            kind="compare",
        ),
        Ablation(
            "advocates",
            "how many advocates an answer needs",
            f"{COURTROOM}, section 3.1",
            "more",
            (Axis.of("advocates", [1, 2, 3, 4, 5]),),
            data=("mt-bench", "faireval", "llmbar"),
            kind="compare",
        ),
        Ablation(
            "aggregation",
            "what of a team's defences should come before the judge",
            f"{COURTROOM}, sections 3.1 and 3.3",
            "more",
            (Axis.of("aggregate", ["llm", "concat", "best"]),),
            data=("mt-bench", "faireval", "llmbar"),
            kind="compare",
        ),
        Ablation(
            "tau",
            "how sharply the best defence is preferred, and that it decides nothing",
            f"{COURTROOM}, section 3.3",
            "more",
            (
                Axis.of(
                    "tau", {f"{tau:g}": {"tau": tau, "aggregate": "best"} for tau in (0.01, 0.1, 0.5, 1.0)}
                ),
            ),
            data=("mt-bench", "faireval", "llmbar"),
            kind="compare",
            extras=("weight",),
        ),
        Ablation(
            "advocates-agreement",
            "how far the defences of one answer are worth the same",
            f"{COURTROOM}, section 3.3",
            "more",
            (
                Axis.of(
                    "advocates",
                    {str(size): {"advocates": size, "aggregate": "best"} for size in (2, 3, 4, 5)},
                ),
            ),
            data=("mt-bench", "faireval", "llmbar"),
            kind="compare",
            extras=("alpha", "spread"),
        ),
        Ablation(
            "prompts",
            "how much hangs on the wording and the form of replies",
            f"{DEBATE}, appendix C; folders of one's own by --axis prompts=,DIR,...",
            "debate",
            (
                Axis.of(
                    "variant",
                    {
                        "ours": {},
                        "plain text": {"structured": "off"},
                        "sophisticated": {"persona": "sophisticated"},
                        "literal end": {"termination": "substring"},
                    },
                ),
            ),
            data=(*RATING, *COMPARING),
        ),
    )
}
"""By name. ``fair`` comes on top, and depends on the protocol that is to be compared."""

FAIR = "fair"


def fair(protocol: str, kind: TaskKind, settings: Mapping[str, Any] | None = None) -> Ablation:
    """A protocol beside a single judge, and beside as many judges who do not talk as its debates take calls at most.

    These have the same role, so that every smaller ensemble is inside this one: ``report`` finds the one of equal cost.

    Args:
        protocol: what is to be compared.
        kind: of the data, since a comparison may be held in both orders.
        settings: of the protocol.

    >>> [value.label for value in fair("debate", "score", {"n": 2}).axes[0].values]
    ['single', 'debate', 'ensemble of 5']
    """
    most, referees = _most_calls(protocol, kind, settings or {}), {"referees": 1}
    size = max(2, ceil(most / _most_calls("ensemble", kind, referees)))
    ensemble = {"protocol": "ensemble", "referees": size, "roles": "same"}
    judges = {
        "single": {"protocol": "single"},
        protocol: {"protocol": protocol, **(settings or {})},
        f"ensemble of {size}": ensemble,
    }
    return Ablation(
        FAIR,
        "whether a debate is worth its calls: beside one judge, and beside as many calls without debate",
        f"{CHATEVAL}, Tables 1 and 2, at equal calls",
        protocol,
        (Axis.of("judge", judges),),
        data=(*RATING, *COMPARING),
    )


def _most_calls(protocol: str, kind: TaskKind, settings: Mapping[str, Any]) -> int:
    found = find_protocol(protocol).protocol
    bound = make_settings(found.settings, settings, {})
    return total(found.calls(bound, kind, lambda _role, _what: False).values()).most


def find_ablation(name: str) -> Ablation:
    """A ready-made plan.

    Raises:
        UsageError: there is none of this name.
    """
    if name not in ABLATIONS:
        raise UsageError(f"no plan {name!r}; there are {', '.join(ABLATIONS)}, {FAIR}")
    return ABLATIONS[name]


def plan_ablation(
    ablation: str | Ablation,
    data: Data | None = None,
    axes: Sequence[Axis] = (),
    protocol: str | None = None,
    **options: Unpack[SweepOptions],
) -> tuple[Ablation, SweepPlan]:
    """Check every cell of a ready-made plan.

    Args:
        ablation: a plan, or the name of one; ``fair`` is made for the protocol.
        data: a dataset, its name, or a file; may be left out where there are ``replies``.
        axes: take the place of the plan's axes of the same name, or come before them.
        protocol: instead of the plan's own.
        **options: what all cells have in common.

    Raises:
        UsageError: bad input; data that the plan is not for.

    >>> ablation, planned = plan_ablation("personas", "demo", limit=2)
    >>> [one.cell.title for one in planned.cells][:2], ablation.source
    (['persona=plain', 'persona=weak'], 'DEBATE (Kim et al. 2024), Figure 2, middle')
    """
    dataset = dataset_of(data, options)
    if ablation == FAIR:
        ablation = fair(protocol or "debate", dataset.kind, options.pop("settings", None))
    chosen = find_ablation(ablation) if isinstance(ablation, str) else ablation
    check_data(chosen, dataset)
    own = {axis.name: axis for axis in axes}
    varied = (
        *(axis for axis in axes if axis.name not in {each.name for each in chosen.axes}),
        *(own.get(axis.name, axis) for axis in chosen.axes),
    )
    chosen = replace(chosen, axes=varied)
    planned = plan_sweep(protocol or chosen.protocol, varied, None if data is None else dataset, **options)
    return chosen, replace(planned, name=chosen.name)


def check_data(ablation: Ablation, dataset: Dataset) -> None:
    """See that a plan can be carried out on a dataset.

    Raises:
        UsageError: it is for data of another kind, or for items with categories; names data that fits.
    """
    fits = ", ".join(ablation.data)
    if ablation.kind is not None and dataset.kind != ablation.kind:
        wanted = {"compare": "pairs of answers", "score": "texts to be rated"}[ablation.kind]
        raise UsageError(
            f"the plan {ablation.name} is for {wanted}, which {dataset.name} does not hold; {fits} do"
        )
    if ablation.by_category and not any(_category(item) for item in islice(dataset, 1000)):
        raise UsageError(
            f"the plan {ablation.name} tells categories of items apart, and {dataset.name} has none; {fits} have"
        )


def _category(item: Item) -> str | None:
    return item.category if isinstance(item, CompareItem) else None
