"""What to cite for the datasets that have a name."""

from __future__ import annotations

from .source import Paper

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
