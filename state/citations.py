"""The papers to cite for protocols and datasets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Citation:
    """A paper to cite.

    Attributes:
        cite: authors and year.
        title: the title of the paper.
        bibtex: the BibTeX entry.
        url: the address of the paper, on arXiv if it is there; empty if unknown.
    """

    cite: str
    title: str
    bibtex: str
    url: str = ""


DEBATE = Citation(
    cite="Kim, Kim and Yoon 2024",
    title="DEBATE: Devil's Advocate-Based Assessment and Text Evaluation",
    url="https://arxiv.org/abs/2405.09935",
    bibtex="""\
@inproceedings{kim-etal-2024-debate,
  title = {{DEBATE}: Devil's Advocate-Based Assessment and Text Evaluation},
  author = {Kim, Alex and Kim, Keonwoo and Yoon, Sangwon},
  booktitle = {Findings of the Association for Computational Linguistics: ACL 2024},
  pages = {1885--1897},
  year = {2024},
  url = {https://arxiv.org/abs/2405.09935}
}""",
)
CHATEVAL = Citation(
    cite="Chan et al. 2024",
    title="ChatEval: Towards Better LLM-based Evaluators through Multi-Agent Debate",
    url="https://arxiv.org/abs/2308.07201",
    bibtex="""\
@inproceedings{chan-etal-2024-chateval,
  title = {{ChatEval}: Towards Better {LLM}-based Evaluators through Multi-Agent Debate},
  author = {Chan, Chi-Min and Chen, Weize and Su, Yusheng and Yu, Jianxuan and Xue, Wei
            and Zhang, Shanghang and Fu, Jie and Liu, Zhiyuan},
  booktitle = {International Conference on Learning Representations},
  year = {2024},
  url = {https://arxiv.org/abs/2308.07201}
}""",
)
COURTROOM = Citation(
    cite="Bandi, Bandi and Harrasse 2024",
    title=("Adversarial Multi-Agent Evaluation of Large Language Models through Iterative Debates"),
    url="https://arxiv.org/abs/2410.04663v1",
    bibtex="""\
@misc{bandi-etal-2024-adversarial,
  title = {Adversarial Multi-Agent Evaluation of Large Language Models through Iterative Debates},
  author = {Bandi, Chaithanya and Bandi, Hari and Harrasse, Abir},
  eprint = {2410.04663v1},
  archiveprefix = {arXiv},
  year = {2024},
  url = {https://arxiv.org/abs/2410.04663v1},
  note = {The anonymous version is titled Optimal Architectures for Judging LLM Outputs Using LLMs}
}""",
)
"""The arXiv version of *Optimal Architectures for Judging LLM Outputs Using LLMs* (anonymous)."""
GEVAL = Citation(
    cite="Liu et al. 2023",
    title="G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment",
    url="https://arxiv.org/abs/2303.16634",
    bibtex="""\
@inproceedings{liu-etal-2023-g,
  title = {{G}-Eval: {NLG} Evaluation using {GPT}-4 with Better Human Alignment},
  author = {Liu, Yang and Iter, Dan and Xu, Yichong and Wang, Shuohang and Xu, Ruochen
            and Zhu, Chenguang},
  booktitle = {Proceedings of the 2023 Conference on Empirical Methods in Natural Language Processing},
  pages = {2511--2522},
  year = {2023},
  url = {https://arxiv.org/abs/2303.16634}
}""",
)
HEALTHBENCH = Citation(
    cite="Arora et al. 2025",
    title="HealthBench: Evaluating Large Language Models Towards Improved Human Health",
    url="https://arxiv.org/abs/2505.08775",
    bibtex="""\
@misc{arora-etal-2025-healthbench,
  title = {{HealthBench}: Evaluating Large Language Models Towards Improved Human Health},
  author = {Arora, Rahul K. and Wei, Jason and Soskin Hicks, Rebecca and Bowman, Preston
            and Quiñonero-Candela, Joaquin and Tsimpourlas, Foivos and Sharman, Michael
            and Shah, Meghan and Vallone, Andrea and Beutel, Alex and Heidecke, Johannes
            and Singhal, Karan},
  eprint = {2505.08775},
  archiveprefix = {arXiv},
  year = {2025},
  url = {https://arxiv.org/abs/2505.08775}
}""",
)
FAIREVAL = Citation(
    cite="Wang et al. 2024",
    title="Large Language Models are not Fair Evaluators",
    url="https://arxiv.org/abs/2305.17926",
    bibtex="""\
@inproceedings{wang-etal-2024-large-language-models-fair,
  title = {Large Language Models are not Fair Evaluators},
  author = {Wang, Peiyi and Li, Lei and Chen, Liang and Cai, Zefan and Zhu, Dawei and Lin, Binghuai
            and Cao, Yunbo and Kong, Lingpeng and Liu, Qi and Liu, Tianyu and Sui, Zhifang},
  booktitle = {Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics},
  pages = {9440--9450},
  year = {2024},
  url = {https://arxiv.org/abs/2305.17926}
}""",
)
