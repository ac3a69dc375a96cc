"""Run a debate and a single judge over a dataset, and measure how well each agrees with the human
labels.

Run it with ``python examples/protocol_over_a_dataset.py``. It prints one line for each judge:
Spearman's rho within groups with its 95 % confidence interval, the number of judged items, and the
mean number of model calls per item. It needs no key: without a model, scores come from word counts.
The labels of the bundled ``demo`` data are synthetic. Pass ``model="openai:gpt-4o-mini"`` to
``evaluate`` to use a language model, and ``out="runs/mine"`` to keep results.
"""

from jurygraph.eval import evaluate
from jurygraph.eval.results.agreement import ScoreAgreement

run = evaluate(["debate", "single"], "demo", aspects=["consistency"])
for name in ("debate", "single"):
    agreement = run.agreement(name)["consistency"]
    assert isinstance(agreement, ScoreAgreement)  # the data have scores, not preferences
    rho = agreement.per_group["spearman"]
    results = [result for result in run.results if result.protocol == name]
    calls = sum(result.calls for result in results) / len(results)
    print(
        f"{name}: rho {rho.value:.2f} [{rho.low:.2f}, {rho.high:.2f}], {agreement.n} items, {calls:.1f} calls per item"
    )
