"""The ablations of the papers, each as data: what a sweep varies, and how the source lays its table and figure out.

They stand in one file because several of them compare protocols; each is listed by the protocol that it is about.
"""

from __future__ import annotations

from .protocol_record import Ablation

DEBATE_PAPER = "DEBATE (Kim et al. 2024)"
CHATEVAL_PAPER = "ChatEval (Chan et al. 2024)"
COURTROOM_PAPER = "the courtroom paper"

STRATEGIES = ("one_by_one", "simultaneous", "summarizer")

# The papers' own data comes first: a command that names no data suggests the first that fits.
COMPARING = ("faireval", "mt-bench", "llmbar")
RATING = ("summeval", "topical-chat")
COURTROOM_DATA = ("mt-bench", "faireval", "llmbar")

EQUAL_CALLS_SOURCE = f"{CHATEVAL_PAPER}, Tables 1 and 2, at equal calls"
"""Of the comparison of any protocol with one judge, and with as many calls without debate."""

DEBATE = (
    Ablation(
        "rounds",
        "how many rounds a debate should have at most",
        f"{DEBATE_PAPER}, Figure 2, left",
        {"n": [1, 2, 3, 4, 5]},
        data=RATING,
    ),
    Ablation(
        "personas",
        "how critical the Critic should be",
        f"{DEBATE_PAPER}, Figure 2, middle",
        {"persona": ["plain", "weak", "moderate", "strict"]},
        data=RATING,
    ),
    Ablation(
        "sophisticated",
        "whether a more complex prompt makes a better Critic",
        f"{DEBATE_PAPER}, appendix C, Table 3",
        {"prompt": {"original": {"persona": "strict"}, "sophisticated": {"persona": "sophisticated"}}},
        data=RATING,
    ),
    Ablation(
        "tie-breaker",
        "who should decide a debate that stays open, with a neutral Critic and a devil's advocate",
        f"{DEBATE_PAPER}, Figure 2, right",
        {
            "style": {
                "MultiAgent": {"persona": "plain", "tie_breaker": False},
                "tie-breaker": {"persona": "plain", "tie_breaker": True},
                "DEBATE": {"persona": "strict", "tie_breaker": False},
                "both": {"persona": "strict", "tie_breaker": True},
            }
        },
        data=RATING,
    ),
    Ablation(
        "prompts",
        "how much hangs on the wording and the form of replies",
        f"{DEBATE_PAPER}, appendix C; folders of one's own by --axis prompts=,DIR,...",
        {
            "variant": {
                "ours": {},
                "plain text": {"structured": "off"},
                "sophisticated": {"persona": "sophisticated"},
                "literal end": {"termination": "substring"},
            }
        },
        data=(*RATING, *COMPARING),
    ),
)

CHATEVAL = (
    Ablation(
        "referees",
        "how many referees should talk, and who hears whom",
        f"{CHATEVAL_PAPER}, section 4.3, role numbers",
        {"strategy": STRATEGIES, "referees": [1, 2, 3, 4, 5]},
        data=(*COMPARING, *RATING),
        across="referees",
        along="referees",
    ),
    Ablation(
        "turns",
        "how long referees should talk, and who hears whom",
        f"{CHATEVAL_PAPER}, section 4.3, discussion turns",
        {"strategy": STRATEGIES, "turns": [1, 2, 3, 4]},
        data=(*COMPARING, *RATING),
        across="turns",
        along="turns",
    ),
    Ablation(
        "strategies",
        "who should hear whom among three referees",
        f"{CHATEVAL_PAPER}, section 4.2",
        {"strategy": {name: {"strategy": name, "referees": 3, "turns": 2} for name in STRATEGIES}},
        data=(*COMPARING, *RATING),
    ),
    Ablation(
        "roles",
        "whether referees need different personas",
        f"{CHATEVAL_PAPER}, section 4.1, Table 3",
        {
            "judge": {
                "single agent": {"protocol": "single"},
                "same roles": {"protocol": "chateval", "roles": "same", "referees": 2, "turns": 2},
                "diverse roles": {"protocol": "chateval", "roles": "diverse", "referees": 2, "turns": 2},
            }
        },
        data=(*COMPARING, *RATING),
    ),
    Ablation(
        "experts",
        "which group of experts suits which category of questions",
        f"{CHATEVAL_PAPER}, section 4.1, figure on groups and categories",
        {"roles": ["generic", "knowledge", "writing", "coding"]},
        data=COMPARING,
        kind="compare",
        by_category=True,
    ),
)

SAMRE = (
    Ablation(
        "jury",
        "what advocates and a jury add to a judge",
        f"{COURTROOM_PAPER}, section 4.2, Table 1",
        {
            "architecture": {
                "baseline": {"protocol": "baseline"},
                "MORE": {"protocol": "more"},
                "SAMRE": {"protocol": "samre"},
                "SAMRE without juries": {"protocol": "samre", "jurors": 0},
            }
        },
        data=COURTROOM_DATA,
        kind="compare",
        across="architecture",
    ),
    Ablation(
        "ballot",
        "whether jurors should vote or score",
        f"{COURTROOM_PAPER}, section 5",
        {"ballot": ["vote", "score"]},
        data=COURTROOM_DATA,
        kind="compare",
    ),
)

MORE = (
    Ablation(
        "advocates",
        "how many advocates an answer needs",
        f"{COURTROOM_PAPER}, section 3.1",
        {"advocates": [1, 2, 3, 4, 5]},
        data=COURTROOM_DATA,
        kind="compare",
    ),
    Ablation(
        "aggregation",
        "what of a team's defences should come before the judge",
        f"{COURTROOM_PAPER}, sections 3.1 and 3.3",
        {"aggregate": ["llm", "concat", "best"]},
        data=COURTROOM_DATA,
        kind="compare",
    ),
    Ablation(
        "tau",
        "how sharply the best defence is preferred, and that it decides nothing",
        f"{COURTROOM_PAPER}, section 3.3",
        {"tau": {f"{tau:g}": {"tau": tau, "aggregate": "best"} for tau in (0.01, 0.1, 0.5, 1.0)}},
        data=COURTROOM_DATA,
        kind="compare",
        extras=("weight",),
    ),
    Ablation(
        "advocates-agreement",
        "how far the defences of one answer are worth the same",
        f"{COURTROOM_PAPER}, section 3.3",
        {"advocates": {str(size): {"advocates": size, "aggregate": "best"} for size in (2, 3, 4, 5)}},
        data=COURTROOM_DATA,
        kind="compare",
        extras=("alpha", "spread"),
    ),
)
