"""The plan of a run: its task is checked, described and signed before any call."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

import numpy as np

from ....graphs.engine.base import Graph
from ....graphs.engine.given_graphs import Protocols, compiled, judges_of, named
from ....graphs.engine.options import RunSettings
from ....graphs.engine.registry import built, find_protocol, protocol_names
from ....graphs.engine.wrapper import all_judges, kinds_of
from ....nodes.runtime.bound_judge import BoundJudge, Models
from ....nodes.runtime.recusal import recuses
from ....state.aspects import Aspect
from ....state.errors import DataError, InputError, UsageError
from ....state.protocols import any_task
from ....state.tasks import AUTHORS, TEXTS
from ...datasets.aspect_choice import check_texts, choose_aspects, warn_of_names
from ...datasets.dataset import Data, Dataset, load_dataset
from ...datasets.files import split_filter
from ...datasets.items import Item
from ...datasets.selection import Shard
from ...results.config import RunConfig
from ...results.folder import check_manifest, model_names, refuse_file, results_of
from ...results.results import FILE as RESULTS
from ...results.results import Digests, Key, digests_of, part_digest
from ..replay.recording import Recording
from ..replay.recording_sources import PastRun, RecordedFile
from .signatures import describe_run

Job = tuple[Key, Item, Aspect | None]
"""One verdict to make: the key of its result, the item, and the aspect of a score."""


Chosen = Container[tuple[str, str | None]]
"""The judged part of a dataset: ids of items, each with an aspect (``None`` for comparisons)."""


class JudgingOptions(TypedDict, total=False):
    """The options for judging a dataset, without models.

    Attributes:
        aspects: the aspects to score, by name or as user-defined aspects; default: all that have
            labels.
        settings: settings by name, for all protocols, such as ``{"n": 2}``; settings of a single
            protocol are under its name: ``{"ensemble": {"referees": 9}}``.
        limit: judge only this number of items, from the first.
        repeats: judge everything this number of times.
        shard: judge only this part of the items, such as ``2/4``; see ``merge``.
        out: a folder for results and manifest; if it contains this run already, the run is
            completed.
        replies: recorded replies, or the folder of a past run: they are scored again, and no model
            is called.
    """

    aspects: Sequence[str | Aspect]
    settings: RunSettings
    limit: int | None
    repeats: int
    shard: str | None
    out: str | Path | None
    replies: str | Path | Recording | None


class Options(JudgingOptions, total=False):
    """The options for judging a dataset.

    Attributes:
        models: role to chat model or model name, ``"*"`` for all.
    """

    models: Models | None


def divided(options: Mapping[str, Any], *others: str) -> tuple[RunConfig, Options, dict[str, Any]]:
    """Divide options by name: execution of runs, judging, and the names in ``others``.

    Raises:
        UsageError: a name that is none of these; a limit that is out of bounds.
    """
    config = RunConfig.from_options(options, (*Options.__annotations__, *others))
    wanted = {name: value for name, value in options.items() if name in Options.__annotations__}
    return (
        config,
        cast("Options", wanted),
        {name: options[name] for name in others if name in options},
    )


@dataclass(frozen=True)
class Plan:
    """A run that was checked and is not started yet.

    Attributes:
        graphs: the compiled protocols by name.
        dataset: the items to judge, cut to the limit.
        aspects: the aspects of the scores; empty for comparisons.
        repeats: the number of times that everything is judged.
        manifest: the description of the run, as in ``run.json``.
        folder: the folder of results; ``None`` stores them in memory.
        recording: the source of replies, if no model is called.
        only: the items and aspects that are judged; ``None`` for all of them.
        repeated: the items and aspects that are judged more than once; ``None`` for all of them.
    """

    graphs: Mapping[str, Graph]
    dataset: Dataset
    aspects: Sequence[Aspect]
    repeats: int
    manifest: Mapping[str, Any]
    folder: Path | None = None
    recording: Recording | None = None
    only: Chosen | None = None
    repeated: Chosen | None = None

    def __len__(self) -> int:
        """The number of verdicts to make."""
        if self.only is not None or self.repeated is not None:
            # Some aspects of some items may be missing, so a multiplication does not give the
            # number.
            return sum(1 for _ in self.jobs())
        return len(self.dataset) * max(len(self.aspects), 1) * len(self.graphs) * self.repeats

    @property
    def costs_money(self) -> bool:
        """Whether any model other than the offline judge is called."""
        return self.recording is None and any(
            name != "offline" for name in model_names(self.manifest)
        )

    def jobs(self) -> Iterator[Job]:
        """Yield everything that is to be judged, item by item."""
        for item in self.dataset:
            for aspect in self.aspects or (None,):
                key = item.id, aspect.name if aspect else None
                if self.only is not None and key not in self.only:
                    continue
                repeats = self.repeats if self.repeated is None or key in self.repeated else 1
                for name in self.graphs:
                    for repeat in range(repeats):
                        yield Key(*key, name, repeat), item, aspect

    def key_digests(self, protocols: Collection[str] = ()) -> Digests:
        """Return the digests of the keys of all jobs in their order; by default, of all protocols."""
        wanted = [name for name in self.graphs if name in protocols or not protocols]
        if self.only is not None or self.repeated is not None:
            return digests_of(key for key, *_ in self.jobs() if key.protocol in wanted)
        # The ids were read when the data were checked, so the items need not be read again.
        ids = np.frombuffer(self.dataset.survey.ids, dtype=np.uint64)[: len(self.dataset)]
        parts = [
            part_digest(aspect.name if aspect else None, name, repeat)
            for aspect in self.aspects or (None,)
            for name in wanted
            for repeat in range(self.repeats)
        ]
        return (ids[:, None] ^ np.array(parts, dtype=np.uint64)).ravel()


def plan(protocols: Protocols, data: Data | None = None, **options: Unpack[Options]) -> Plan:
    """Check everything that can be checked without calling a model.

    A judge is the name of a protocol, or a graph, which has the settings and models that it was
    built with. ``data`` may be left out if there are ``replies``: then the recorded items are
    judged.

    Raises:
        UsageError: bad input; names the problem and its place.
    """
    limit = options.get("limit")
    repeats = options.get("repeats", 1)
    for what, number in (("limit", limit), ("repeats", repeats)):
        if number is not None and (not isinstance(number, int) or number < 1):
            raise UsageError(f"{what} must be 1 or more, got {number}")
    dataset, recording = data_and_replies(data, options)
    names = options.get("aspects", ())
    aspects = recording.aspects(dataset, names) if recording else choose_aspects(dataset, names)
    if recording is None:
        check_texts(dataset, aspects)
        warn_of_names(dataset, names, aspects)
    graphs: dict[str, Graph] = {}
    chosen = named(protocols)
    for name, judge in chosen.items():
        if isinstance(judge, str):
            given = _settings_for(name, chosen, options.get("settings") or {})
            models = options.get("models")
            if recording is not None:
                # The recorded settings, overridden by those that are set now.
                recorded = recording.settings(judge, find_protocol(judge).protocol.settings, given)
                given = {**recorded, **given}
                models = {"*": recording.model}
            try:
                graphs[name] = built(judge, given, models).compile(name=name)
            except InputError as error:
                raise UsageError(f"{name}: {error}") from error
        elif recording is not None:
            raise UsageError(
                f"{name}: recorded replies are judged again by a named protocol, not by a graph"
            )
        else:
            graphs[name] = compiled(name, judge)
        _check_judge(name, graphs[name], dataset)
    any_named = any(isinstance(judge, str) for judge in chosen.values())
    if (options.get("settings") or options.get("models")) and not any_named:
        raise UsageError(
            "settings and models only apply to protocols given by name: a graph has its build()"
        )
    shown = dataset.first(limit)
    check_tasks(graphs, shown, aspects)
    manifest = describe_run(graphs, shown, aspects, limit, repeats, recording)
    out = options.get("out")
    folder = None if out is None else Path(out)
    # The replay would rename or overwrite the results that it reads.
    if folder and recording and folder.resolve() == Path(recording.location).resolve():
        raise UsageError(f"{folder} is the run to replay: choose another --out")
    if (part := options.get("shard")) is not None:
        shard = Shard.parse(part)
        # The manifest is that of the whole run, so that the shards can be merged.
        shown = shown.shard(shard)
        manifest = {**manifest, "shard": str(shard)}
        folder = folder / shard.folder if folder else None
    # Without the user's own data, the recorded items are judged.
    only = recording if data is None else None
    return Plan(graphs, shown, aspects, repeats, manifest, folder, recording, only)


def check_tasks(graphs: Mapping[str, Graph], dataset: Dataset, aspects: Sequence[Aspect]) -> None:
    """Check every item with the protocols that do not judge every task of its kind.

    Raises:
        UsageError: names the first item that a protocol refuses.
    """
    judges = [
        (name, judge)
        for name, graph in graphs.items()
        for bound_judge in judges_of(graph).values()
        for judge in all_judges(bound_judge)
    ]
    _check_authors(judges, dataset)
    checks = [(name, judge) for name, judge in judges if judge.record.check_task is not any_task]
    if not checks:
        return
    for line, item in dataset.numbered():
        for aspect in aspects or (None,):
            where = f"{dataset.location}, {dataset.line_name} {line}"
            try:
                task = item.task(aspect)
            except InputError:
                # An item with a blank text fails in its own turn.
                continue
            except UsageError as error:
                raise UsageError(f"{where}: {error}") from error
            for name, judge in checks:
                try:
                    judge.record.check_task(judge.bound, task)
                except UsageError as error:
                    raise UsageError(f"{where}: {name}: {error}") from error


def _check_authors(judges: Sequence[tuple[str, BoundJudge[Any]]], dataset: Dataset) -> None:
    """Refuse to recuse members if no item names an author; items without one get a warning."""
    recusing = next((name for name, judge in judges if recuses(judge.bound)), None)
    if recusing is None:
        return
    if not any(getattr(item, name, None) for _, item in dataset.numbered() for name in AUTHORS):
        raise UsageError(
            f"{recusing}: recuse=family needs the authors of the texts, but no item of "
            f"{dataset.location} has system, or model_1 and model_2: name the columns "
            "(--columns system=NAME), or leave out recuse"
        )


def data_and_replies(data: Data | None, options: Options) -> tuple[Dataset, Recording | None]:
    """Load the data, else the recorded items; with recorded replies, if the options name some.

    Raises:
        UsageError: neither; models for recorded replies; replies that do not belong to these data.
    """
    recording = None
    replies = options.get("replies")
    if replies is not None:
        if options.get("models"):
            raise UsageError(
                "recorded replies have the models that wrote them: give no model with --replies"
            )
        recording = replies if isinstance(replies, Recording) else read_recording(replies)
    if data is not None:
        dataset = load_dataset(data)
        if recording is not None:
            recording.match(dataset)
        return dataset, recording
    if recording is None:
        raise UsageError(
            "nothing to judge: give a dataset (--data), or recorded replies (--replies)"
        )
    return recording.dataset, recording


def _settings_for(
    name: str, chosen: Collection[str], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the settings for all protocols, overridden by those under this protocol's name."""
    if not isinstance(given, Mapping):
        raise UsageError(
            f'settings must be given by name, such as {{"temperature": 0.5}}, not as {given!r}'
        )
    known = {*protocol_names(), *chosen}
    if strange := [key for key in given if key in known and key not in chosen]:
        raise UsageError(
            f"settings are given for {strange[0]}, but only {', '.join(chosen)} judges"
        )
    common = {key: value for key, value in given.items() if key not in known}
    return {**common, **settings_under(name, given)}


def settings_under(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings for one protocol only, under its name.

    Raises:
        UsageError: the value is no mapping of settings by name.
    """
    own = given.get(name, {})
    if not isinstance(own, Mapping):
        raise UsageError(
            f"{name}={own}: name one of its settings, such as {name}.temperature={own}"
        )
    return own


def _check_judge(name: str, graph: Graph, dataset: Dataset) -> None:
    if dataset.kind not in kinds_of(graph):
        raise UsageError(f"{name} takes no {dataset.kind} tasks, and {dataset.name} has no others")
    for bound_judge in judges_of(graph).values():
        # The settings by which its judges wait for a human; empty if they never wait.
        pauses = (judge.record.pauses_for_person(judge.bound) for judge in all_judges(bound_judge))
        if pause := next(filter(None, pauses), ""):
            raise UsageError(
                f"{name}: {pause} pauses for a person, but a run cannot pause; "
                "invoke the graph from Python or Studio, or choose another "
                f"{pause.partition('=')[0]}; `jurygraph run PROTOCOL --review RULES` asks people "
                "after the run"
            )
        rewords = any(judge.bound.prompts for judge in all_judges(bound_judge))
        bound_judge.check(_texts_in(dataset) if rewords else ())


def _texts_in(dataset: Dataset) -> list[str]:
    """Return the fields of tasks that have a text in the data, in reading order."""
    return [name for name in TEXTS if any(getattr(item, name, None) for item in dataset)]


def read_recording(where: str | Path) -> Recording:
    """Open recorded replies.

    Args:
        where: the folder of a run, or a file; ``FILE?field=value&field=value`` takes the lines with
            these values.

    Raises:
        UsageError: nothing exists there, or nothing of this kind; a ``DataError`` names file and
            line.
    """
    path, only = split_filter(where)
    if not path.exists():
        raise UsageError(f"no recorded replies: there is no file or folder {str(path)!r}")
    if path.is_dir() or path.name == RESULTS:
        if only:
            raise UsageError(f"{path} is a run: ?{'&'.join(only)} only chooses lines of a file")
        return PastRun(path if path.is_dir() else path.parent)
    return RecordedFile(path, only)


def count_judged(prepared: Plan, config: RunConfig) -> dict[str, int]:
    """Count each protocol's verdicts in the folder; this also works while a run uses the folder.

    Raises:
        UsageError: the folder contains another run, or is no folder.
    """
    folder = prepared.folder
    refuse_file(folder)
    if folder is None or config.fresh or config.overwrite:
        return {}
    check_manifest(folder, prepared.manifest)
    if not (folder / RESULTS).exists():
        return {}
    try:
        judged = results_of(folder).ok_keys()
    except DataError as error:
        raise DataError(
            f"{error}. Delete that line: its calls are kept, so judging again is free"
        ) from error
    return {name: judged.count(prepared.key_digests([name])) for name in prepared.graphs}
