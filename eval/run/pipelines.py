"""Choose what answers the model calls of a run: the provider at once, its batch API, or a recording."""

from __future__ import annotations

from ..calls.call_pipeline import CallPipeline, LivePipeline, RunContext
from ..plan.plan import Plan
from ..replay.replay_pipeline import ReplayPipeline, check_replay
from ..results.config import RunConfig
from ..results.folder import RunFolder


def check_run(plan: Plan, config: RunConfig) -> None:
    """Check that a plan can be carried out with this config; nothing is called or written.

    Raises:
        UsageError: a limit on cost with a model of unknown price; batches with models that take none; or options for
            calls where a recording answers them.
    """
    if plan.recording is not None:
        check_replay(config)
        return
    config.check_prices(plan.models().values())
    if config.batch:
        from ..batch_api.batch_pipeline import check_batch

        check_batch(plan)


def make_pipeline(plan: Plan, folder: RunFolder, context: RunContext) -> CallPipeline:
    """Make the pipeline that answers the calls of a run which ``check_run`` has passed."""
    if plan.recording is not None:
        return ReplayPipeline(plan.recording, context)
    if context.config.batch:
        # Imported here since it needs the OpenAI client, which other runs may do without.
        from ..batch_api.batch_pipeline import BatchPipeline

        return BatchPipeline(plan, folder, context)
    return LivePipeline(folder.journal, context)
