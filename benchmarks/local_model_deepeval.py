"""Judge texts with deepeval's GEval, for ``local_model.py``, in a separate environment.

Reads JSON on standard input, and prints the number of judged texts and the reasons of failures as
JSON.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"

from deepeval.metrics import GEval
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase, SingleTurnParams

about = json.load(sys.stdin)
model = LocalModel(
    model="local",
    base_url=about["url"],
    api_key=about["key"],
    temperature=0,
    generation_kwargs={"max_tokens": about["max_tokens"]},
)
judged = 0
reasons = []
for asked, said in about["texts"]:
    metric = GEval(
        name="quality",
        criteria=about["criteria"],
        evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
        model=model,
        async_mode=False,
    )
    try:
        metric.measure(LLMTestCase(input=asked, actual_output=said), _show_indicator=False)
    except Exception as error:  # whatever it raises is the reason
        reasons.append(f"{type(error).__name__}: {' '.join(str(error).split())}")
    else:
        judged += 1
print(json.dumps({"judged": judged, "reasons": reasons}))
