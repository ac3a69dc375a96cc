"""List the datasets that have a name, with their sources and what to cite for them.

The counts, scales and terms are those of the homes named here. A commit fixes what is fetched; ``fetch`` says what it
is checked against.
"""

from __future__ import annotations

from ....nodes.plugins import Group, load_plugin, plugins
from ....state.errors import UsageError
from ...statistics.tie_policy import TiePolicy
from . import pair_readers, score_readers
from .source import DownloadFormat, GitHub, HuggingFace, Paper, Source

_LLMBAR_FILES = (
    "Dataset/LLMBar/Natural/dataset.json",
    "Dataset/LLMBar/Adversarial/Neighbor/dataset.json",
    "Dataset/LLMBar/Adversarial/GPTInst/dataset.json",
    "Dataset/LLMBar/Adversarial/GPTOut/dataset.json",
    "Dataset/LLMBar/Adversarial/Manual/dataset.json",
    "Dataset/Processed/FairEval/dataset.json",
    "Dataset/Processed/LLMEval^2/dataset.json",
    "Dataset/Processed/MT-Bench/dataset.json",
)
_JUDGEBENCH_FILES = (
    "data/dataset=judgebench,response_model=gpt-4o-2024-05-13.jsonl",
    "data/dataset=judgebench,response_model=claude-3-5-sonnet-20240620.jsonl",
)
# In the order in which ``pair_readers.faireval_repository`` takes them.
_FAIREVAL_FILES = (
    "question.jsonl",
    "answer/answer_gpt35.jsonl",
    "answer/answer_vicuna-13b.jsonl",
    "review/review_gpt35_vicuna-13b_human.txt",
)

CNN_DM = Paper(
    "Hermann et al. 2015",
    "Teaching Machines to Read and Comprehend",
    """@inproceedings{hermann-etal-2015-teaching,
  title = {Teaching Machines to Read and Comprehend},
  author = {Hermann, Karl Moritz and Ko{\\v{c}}isk{\\'y}, Tom{\\'a}{\\v{s}} and Grefenstette, Edward
            and Espeholt, Lasse and Kay, Will and Suleyman, Mustafa and Blunsom, Phil},
  booktitle = {Advances in Neural Information Processing Systems},
  year = {2015}
}""",
)

FAIREVAL = Paper(
    "Wang et al. 2024",
    "Large Language Models are not Fair Evaluators",
    """@inproceedings{wang-etal-2024-large-language-models-fair,
  title = {Large Language Models are not Fair Evaluators},
  author = {Wang, Peiyi and Li, Lei and Chen, Liang and Cai, Zefan and Zhu, Dawei and Lin, Binghuai
            and Cao, Yunbo and Kong, Lingpeng and Liu, Qi and Liu, Tianyu and Sui, Zhifang},
  booktitle = {Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics},
  pages = {9440--9450},
  year = {2024}
}""",
)

HANNA = Paper(
    "Chhun et al. 2022",
    "Of Human Criteria and Automatic Metrics: A Benchmark of the Evaluation of Story Generation",
    """@inproceedings{chhun-etal-2022-human,
  title = {Of Human Criteria and Automatic Metrics: A Benchmark of the Evaluation of Story Generation},
  author = {Chhun, Cyril and Colombo, Pierre and Suchanek, Fabian M. and Clavel, Chlo{\\'e}},
  booktitle = {Proceedings of the 29th International Conference on Computational Linguistics},
  pages = {5794--5836},
  year = {2022}
}""",
)

JUDGEBENCH = Paper(
    "Tan et al. 2025",
    "JudgeBench: A Benchmark for Evaluating LLM-based Judges",
    """@inproceedings{tan-etal-2025-judgebench,
  title = {{JudgeBench}: A Benchmark for Evaluating {LLM}-based Judges},
  author = {Tan, Sijun and Zhuang, Siyuan and Montgomery, Kyle and Tang, William Y. and Cuadron, Alejandro
            and Wang, Chenguang and Popa, Raluca Ada and Stoica, Ion},
  booktitle = {International Conference on Learning Representations},
  year = {2025}
}""",
)

LLMBAR = Paper(
    "Zeng et al. 2024",
    "Evaluating Large Language Models at Evaluating Instruction Following",
    """@inproceedings{zeng-etal-2024-evaluating,
  title = {Evaluating Large Language Models at Evaluating Instruction Following},
  author = {Zeng, Zhiyuan and Yu, Jiatong and Gao, Tianyu and Meng, Yu and Goyal, Tanya and Chen, Danqi},
  booktitle = {International Conference on Learning Representations},
  year = {2024}
}""",
)

MT_BENCH = Paper(
    "Zheng et al. 2023",
    "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena",
    """@inproceedings{zheng-etal-2023-judging,
  title = {Judging {LLM}-as-a-Judge with {MT-Bench} and {Chatbot Arena}},
  author = {Zheng, Lianmin and Chiang, Wei-Lin and Sheng, Ying and Zhuang, Siyuan and Wu, Zhanghao
            and Zhuang, Yonghao and Lin, Zi and Li, Zhuohan and Li, Dacheng and Xing, Eric P.
            and Zhang, Hao and Gonzalez, Joseph E. and Stoica, Ion},
  booktitle = {Advances in Neural Information Processing Systems: Datasets and Benchmarks Track},
  year = {2023}
}""",
)

PANDALM = Paper(
    "Wang et al. 2024",
    "PandaLM: An Automatic Evaluation Benchmark for LLM Instruction Tuning Optimization",
    """@inproceedings{wang-etal-2024-pandalm,
  title = {{PandaLM}: An Automatic Evaluation Benchmark for {LLM} Instruction Tuning Optimization},
  author = {Wang, Yidong and Yu, Zhuohao and Yao, Wenjin and Zeng, Zhengran and Yang, Linyi
            and Wang, Cunxiang and Chen, Hao and Jiang, Chaoya and Xie, Rui and Wang, Jindong
            and Xie, Xing and Ye, Wei and Zhang, Shikun and Zhang, Yue},
  booktitle = {International Conference on Learning Representations},
  year = {2024}
}""",
)

SUMMEVAL = Paper(
    "Fabbri et al. 2021",
    "SummEval: Re-evaluating Summarization Evaluation",
    """@article{fabbri-etal-2021-summeval,
  title = {{SummEval}: Re-evaluating Summarization Evaluation},
  author = {Fabbri, Alexander R. and Kry{\\'s}ci{\\'n}ski, Wojciech and McCann, Bryan and Xiong, Caiming
            and Socher, Richard and Radev, Dragomir},
  journal = {Transactions of the Association for Computational Linguistics},
  volume = {9},
  pages = {391--409},
  year = {2021}
}""",
)

TOPICAL_CHAT = Paper(
    "Gopalakrishnan et al. 2019",
    "Topical-Chat: Towards Knowledge-Grounded Open-Domain Conversations",
    """@inproceedings{gopalakrishnan-etal-2019-topical,
  title = {{Topical-Chat}: Towards Knowledge-Grounded Open-Domain Conversations},
  author = {Gopalakrishnan, Karthik and Hedayatnia, Behnam and Chen, Qinlang and Gottardi, Anna
            and Kwatra, Sanjeev and Venkatesh, Anu and Gabriel, Raefer and Hakkani-T{\\"u}r, Dilek},
  booktitle = {Proceedings of Interspeech 2019},
  pages = {1891--1895},
  year = {2019}
}""",
)

UNIEVAL = Paper(
    "Zhong et al. 2022",
    "Towards a Unified Multi-Dimensional Evaluator for Text Generation",
    """@inproceedings{zhong-etal-2022-towards,
  title = {Towards a Unified Multi-Dimensional Evaluator for Text Generation},
  author = {Zhong, Ming and Liu, Yang and Yin, Da and Mao, Yuning and Jiao, Yizhu and Liu, Pengfei
            and Zhu, Chenguang and Ji, Heng and Han, Jiawei},
  booktitle = {Proceedings of the 2022 Conference on Empirical Methods in Natural Language Processing},
  pages = {2023--2038},
  year = {2022}
}""",
)

USR = Paper(
    "Mehri and Eskenazi 2020",
    "USR: An Unsupervised and Reference Free Evaluation Metric for Dialog Generation",
    """@inproceedings{mehri-eskenazi-2020-usr,
  title = {{USR}: An Unsupervised and Reference Free Evaluation Metric for Dialog Generation},
  author = {Mehri, Shikib and Eskenazi, Maxine},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
  pages = {681--707},
  year = {2020}
}""",
)
_KNOWN = (
    Source(
        name="demo",
        kind="score",
        summary="texts with candidates spoilt in known ways, written for this package",
        labels="construction",
        items=108,
        size="108 candidates of 24 sources",
        licence="Apache-2.0",
        scale="1 to 5",
        aspects=score_readers.SUMMEVAL,
    ),
    Source(
        name="demo-pairs",
        kind="compare",
        summary="answers spoilt in known ways, written for this package",
        labels="construction",
        items=44,
        size="44 pairs of answers to 22 questions",
        licence="Apache-2.0",
        scale="1, 2",
    ),
    Source(
        name="summeval",
        kind="score",
        summary="summaries of news articles by 16 systems, rated by experts",
        labels="people",
        items=1600,
        size="1,600 summaries: 100 articles x 16 systems",
        licence="MIT; not the articles",
        terms="MIT for the annotations (Yale-LILY/SummEval); the articles belong to CNN and the Daily Mail; the copy "
        "that is fetched states no licence",
        scale="1 to 5, mean of 3 experts",
        forms=(
            DownloadFormat(
                ("data/test-00000-of-00001-35901af5f6649399.parquet",), score_readers.summeval_of_mteb
            ),
            DownloadFormat(("model_annotations.aligned.paired.jsonl",), score_readers.summeval_paired),
            DownloadFormat(("summeval.jsonl",), score_readers.summeval, extra=("references.jsonl",)),
        ),
        home=HuggingFace(
            "mteb/summeval",
            "cda12ad7615edc362dbf25a00fdd61d3b1eaf93c",
            ("7ff6f3f4d044223bd6922c5434d27bf28473950346fcfc2a3b7352c19163690e",),
        ),
        papers=(SUMMEVAL, CNN_DM),
        aspects=score_readers.SUMMEVAL,
        quirks=(
            "The fetched copy names neither systems nor single raters: figures by system need the authors' "
            "model_annotations.aligned.paired.jsonl with --data-dir.",
            "Consistency and fluency are 5 for most summaries: within some articles they are constant.",
            "Each article has 11 references: the highlights of CNN/DailyMail and ten written for SummEval.",
        ),
    ),
    Source(
        name="topical-chat",
        kind="score",
        summary="responses in dialogues about a fact, with USR's annotations",
        labels="people",
        items=360,
        size="360 responses: 60 dialogue contexts x 6 responses",
        licence="MIT",
        terms="MIT for the repository that it is fetched from",
        scale="1 to 3, the first and the last 0 to 1; mean of 3 annotators",
        forms=(
            DownloadFormat(
                ("reproduce/data/dialogue/topical_chat.json",), score_readers.topical_chat_of_unieval
            ),
            DownloadFormat(("topical_chat.jsonl",), score_readers.topical_chat),
        ),
        home=GitHub("maszhongming/UniEval", "d33e7b6cfebe97b2bafe435adbd818230d5a416a"),
        papers=(USR, TOPICAL_CHAT, UNIEVAL),
        family="topical-chat",
        aspects=("understandability", "naturalness", "coherence", "engagingness", "groundedness"),
        quirks=(
            "Two of the six systems of a context are people. What was really said next (Original Ground Truth) "
            "is the reference of the other five and has none itself.",
            "Texts are tokenised and in lower case.",
            "Within some contexts groundedness is the same for all six responses.",
            "The overall rating (1 to 5) is left out: it is of no single aspect.",
        ),
    ),
    Source(
        name="faireval",
        kind="compare",
        summary="ChatGPT and Vicuna-13B on the 80 Vicuna questions, majority of annotators",
        labels="people",
        items=80,
        size="80 questions, one pair of answers each",
        licence="no licence file",
        terms="no licence file in the repository; questions and answers come from FastChat (Apache-2.0)",
        scale="1, 2, tie; majority of 3 annotators",
        forms=(
            DownloadFormat(_FAIREVAL_FILES, pair_readers.faireval_repository),
            DownloadFormat(("faireval.jsonl",), pair_readers.faireval),
        ),
        home=GitHub("i-Eval/FairEval", "453c117a69159fd7b7de2f4e0519bac57bee21f4"),
        papers=(FAIREVAL,),
        quirks=("The verdicts stand one a line in the order of the questions; they carry no ids.",),
    ),
    Source(
        name="mt-bench",
        kind="compare",
        summary="pairs of six models' two-turn answers, with the votes of experts",
        labels="people",
        items=None,
        size="3,355 votes on answers to 80 questions",
        licence="CC-BY-4.0",
        scale="1, 2, tie; every expert's vote",
        forms=(
            DownloadFormat(("data/human-00000-of-00001-25f4910818759289.parquet",), pair_readers.human_votes),
            DownloadFormat(("mt_bench.jsonl",), pair_readers.all_pairs),
        ),
        home=HuggingFace(
            "lmsys/mt_bench_human_judgments",
            "8abf6044d02df0dd21be98003f1694f90a0dc01b",
            ("4877bc46a40929f4082c3c79593700fb897b1d6c7f4c473032694a01322f5769",),
        ),
        papers=(MT_BENCH,),
        quirks=(
            "An item is a pair of answers, with both turns; its label is the list of all experts' votes on it, "
            "on the first turn or the second. Votes of the benchmark's authors are left out.",
            "mt_bench.jsonl holds answers without votes: every two models are a pair there, without a label.",
        ),
        # MT-Bench, section 4.1: agreement is that of the judge with each single vote, ties of people left out.
        rule=TiePolicy(ties="left_out", votes="each"),
    ),
    Source(
        name="llmbar",
        kind="compare",
        summary="pairs of outputs of which one follows the instruction, and three companion sets",
        labels="people",
        items=885,
        size="419 pairs, and 466 of FairEval, LLMEval^2 and MT-Bench",
        licence="MIT",
        scale="1, 2",
        forms=(
            DownloadFormat(_LLMBAR_FILES, pair_readers.llmbar_repository),
            DownloadFormat(("instances.jsonl",), pair_readers.llmbar),
        ),
        home=GitHub("princeton-nlp/LLMBar", "900616bff90b6c6c8e1681f7d079250637c55992"),
        papers=(LLMBAR,),
        quirks=(
            "The subset is the category: Natural, four Adversarial ones, and the companions FairEval, LLMEval^2 "
            "and MT-Bench (human majority, ties removed), which LLMBar's own figures do not include.",
        ),
    ),
    Source(
        name="judgebench",
        kind="compare",
        summary="pairs of responses of one model, of which one is objectively correct",
        labels="construction",
        items=620,
        size="620 pairs: 350 of GPT-4o, 270 of Claude 3.5 Sonnet",
        licence="no licence file",
        terms="no licence file in the repository; the authors' copy on the Hugging Face Hub says MIT",
        scale="1, 2",
        forms=(
            DownloadFormat(_JUDGEBENCH_FILES, pair_readers.judgebench),
            DownloadFormat(("pairs.jsonl",), pair_readers.judgebench),
        ),
        home=GitHub("ScalerLab/JudgeBench", "e2c52c284e735e139b3daa61c206ee208f36c461"),
        papers=(JUDGEBENCH,),
        quirks=(
            "Both responses of a pair are by the same model: there is nothing to rank models by.",
            "The benchmark's own figures come from judging every pair in both orders.",
        ),
    ),
    Source(
        name="pandalm",
        kind="compare",
        summary="pairs of responses of five 7B models, three annotators each",
        labels="people",
        items=999,
        size="999 pairs of responses",
        licence="Apache-2.0",
        scale="1, 2, tie; three annotators' votes",
        forms=(
            DownloadFormat(("data/testset-v1.json",), pair_readers.pandalm),
            DownloadFormat(("pandalm.jsonl",), pair_readers.pandalm),
        ),
        home=GitHub("WeOpenML/PandaLM", "3871806e72b4832f815ecafd24d3503c73403f48"),
        papers=(PANDALM,),
        quirks=("The annotators agree with each other to a kappa of about .85 to .88.",),
    ),
    Source(
        name="hanna",
        kind="score",
        summary="stories written to a prompt by people and ten systems, six criteria",
        labels="people",
        items=1056,
        size="1,056 stories: 96 prompts x 11 authors",
        licence="MIT",
        scale="1 to 5, three raters",
        forms=(
            DownloadFormat(("hanna_stories_annotations.csv",), score_readers.hanna_annotations),
            DownloadFormat(("hanna.jsonl",), score_readers.hanna),
        ),
        home=GitHub("dig-team/hanna-benchmark-asg", "41a8056161f39918dad0efff8eb1a037d2cba66b"),
        papers=(HANNA,),
        family="hanna",
        aspects=score_readers.HANNA,
        quirks=("hanna.jsonl has means without systems: its stories are in alphabetical order.",),
    ),
)

SOURCES = {source.name: source for source in _KNOWN}
"""The datasets of this package, by name."""

_GROUP: Group = "jurygraph.datasets"


def dataset_names() -> tuple[str, ...]:
    """Return the names of the package's datasets, then of those that other packages register.

    >>> dataset_names()[:2]
    ('demo', 'demo-pairs')
    """
    return tuple(dict.fromkeys([*SOURCES, *plugins(_GROUP)]))


def find_source(name: str) -> Source | None:
    """Find the description of a dataset by its name; ``None`` if no dataset has it.

    Raises:
        UsageError: what a package registers under ``jurygraph.datasets`` cannot be loaded, or is no ``Source`` of
            that name with a file.
    """
    # A name of the catalog stays what it is, whatever another package registers under it.
    if name in SOURCES or name not in plugins(_GROUP):
        return SOURCES.get(name)
    found = load_plugin(_GROUP, name)
    if not isinstance(found, Source) or found.name != name or found.file is None:
        wrong = (
            f"it is a {type(found).__name__}"
            if not isinstance(found, Source)
            else f"its name is {found.name!r}"
            if found.name != name
            else "it has no file"
        )
        raise UsageError(
            f"{name!r}, registered under {_GROUP}, is no dataset: {wrong}; register a Source with a file"
        )
    return found
