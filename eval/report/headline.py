"""Write the answer of some runs in sentences: which judge agrees best, by how much, how sure that is, and what else.

The same sentences end ``run`` and head ``report`` and its page. What they may claim is shown, with judges of a known
kind, in docs/promises.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..analysis import Study
from ..analysis.judges import Judge, Subject
from ..analysis.leaderboard import NOT_BY_ALL, LeaderboardEntry
from ..analysis.leanings import Leaning
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS
from ..tables import Column
from ..tables.grid import in_words, money, printable, written
from .labels import MEASURES, TEXTS, labels_of
from .ranked_dataset import MANY, LeadOverRunnerUp, RankedDataset, capital, named, ranked_datasets, value

_MISSING = 0.01
"""From this share of rows on that a judge has no verdict on, a sentence says so."""
_OFTEN = 0.1
"""From this share of judgements on that carry a warning of one kind, a sentence says so."""
_SHIFT = 0.1
"""From this part of the scale on a shift of level is spoken of."""
_FEW = 2
"""So many judges, or aspects, a sentence names of many; it counts the others."""


def headline(study: Study) -> str:
    """Write the answer: a line with a claim for each dataset, no stronger than the tests of the comparison allow."""
    claims = [(dataset, claim(dataset)) for dataset in ranked_datasets(study)]
    if len(claims) == 1:
        # With a capital, unless it begins with a judge's name.
        text, names = claims[0][1], tuple(judge.label for judge in study.judges)
        return printable(text if text.startswith(names) else capital(text))
    return "\n".join(printable(f"{dataset.name}: {text}") for dataset, text in claims)


def answers(study: Study, full: bool = False) -> Iterator[str]:
    """Write for each dataset the figures behind its claim, and what the claim does not say of its judges.

    Args:
        study: whose answer it is.
        full: whether to write all of it of every judge and aspect; else what there is much of is counted.
    """
    datasets = ranked_datasets(study)
    for dataset in datasets:
        where = f"On {dataset.name}: " if len(datasets) > 1 else ""
        if sentences := " ".join(f"{sentence}." for sentence in remarks(dataset, full)):
            yield printable(where + sentences)


def subtitle(study: Study) -> str:
    """Write what the report covers: datasets, judges, verdicts."""
    judges = len({judge.label for judge in study.judges})
    data = ", ".join(dict.fromkeys(subject.data for subject in study.subjects)) or "nothing judged"
    verdicts = sum(judge.judged for judge in study.judges)
    failed = sum(judge.failed for judge in study.judges)
    missing = f", {failed:,} failed" if failed else ""
    return f"{data} · {judges} {'judge' if judges == 1 else 'judges'} · {verdicts:,} verdicts{missing}"


def claim(dataset: RankedDataset) -> str:
    """Write what can be said of the judge that ranks first, or why nothing can."""
    if not dataset.ranked:
        constant = [judge for judge in dataset.judges if dataset.constant(judge)]
        # Where labels are all alike, too, that a judge says the same of every item speaks neither for nor against it.
        if not constant or not dataset.labels_differ:
            reasons = dataset.unmeasured or ["no judge has a figure on every aspect"]
            more = len(reasons) - _FEW
            and_others = f"; nor have {more} more aspects" if more > 0 else ""
            labels = "synthetic" if dataset.subjects[0].labels == "construction" else "human"
            why = "; ".join(reasons[:_FEW])
            return f"no judge can be compared with {labels} labels here: {why}{and_others}"
        says = "says" if len(constant) == 1 else "say"
        return f"no judge agrees with {dataset.whom}: {named(constant)} always {says} the same"
    best, *others = dataset.ranked
    figure, measure = dataset.figure(best), MEASURES[dataset.measure]
    leads = [dataset.lead(best, other) for other in others]
    # Judges that give whole groups one score may have few groups in common, and another order in these.
    unsure = any(lead and lead.difference.low is None for lead in leads[:1])
    if figure.low is None or unsure or any(lead and lead.few for lead in leads):
        return _without_claim(dataset)
    sure = [judge for judge in dataset.ranked if dataset.beats_chance(judge)]
    if best not in sure:
        return _chancy(dataset, sure)
    if not others:
        figures = f"{measure} {_figure(dataset, best)}"
        return f"{best.label} {_agrees(dataset)} significantly better than chance: {figures}"
    return _contradiction(dataset) or _lead(dataset)


def _chancy(dataset: RankedDataset, sure: Sequence[Judge]) -> str:
    """Write that the judge that ranks first cannot be told from chance, and which one can."""
    best, measure = dataset.ranked[0], MEASURES[dataset.measure]
    figures = _figure(dataset, best)
    if not sure:
        why = f"the highest {measure} is {figures}, of {best.label}"
        if not dataset.compares and (dataset.figure(best).high or 0.0) < 0:
            why += ", significantly below 0, as where a low label means good"
        return f"no judge agrees with {dataset.whom} significantly better than chance: {why}"
    highest = f"the highest {measure}, {figures} of {best.label}, cannot be told from chance"
    can = f"that of {sure[0].label}, {_figure(dataset, sure[0])}, can"
    return f"no judge can be said to agree best with {dataset.whom}: {highest}; {can}"


def _agrees(dataset: RankedDataset, most: bool = False) -> str:
    """Write that a judge agrees: a correlation tells of order alone, an accuracy of each verdict."""
    if dataset.compares:
        return f"agrees {'best ' if most else ''}with {dataset.whom}"
    return f"ranks {'most ' if most else ''}like {dataset.whom}"


def _figure(dataset: RankedDataset, judge: Judge) -> str:
    """Write what a judge is ranked by, of preferences with kappa beside it."""
    beside = dataset.companion(judge, "kappa") if dataset.compares else None
    return f"{in_words(dataset.figure(judge))}{f' (kappa {in_words(beside)})' if beside else ''}"


def _without_claim(dataset: RankedDataset) -> str:
    """Write the figures of too few clusters, without a claim, and how many would settle which judge is better."""
    best, *others = dataset.ranked
    clusters, measure = dataset.clusters(best), MEASURES[dataset.measure]
    if clusters is not None and clusters < FEWEST_CLUSTERS:
        noun = dataset.cluster_name
        of = f"1 {noun[:-1]} is" if clusters == 1 else f"{clusters} {noun} are"
        why = f"{of} too few to claim anything"
    elif dataset.figure(best).low is not None:
        scarce = "groups in which all rank the items" if METRICS[dataset.measure].within else "rows in common"
        why = f"the judges have too few {scarce} to claim anything"
    elif len(dataset.subjects) > 1:
        why = "aspects with labels on different items have no interval of their average"
    else:
        why = "nothing can be claimed without an interval"
    figures = [f"{of.label}'s {measure} is {value(dataset.figure(of))}" for of in dataset.ranked[:MANY]]
    needed = dataset.lead(best, others[0]) if others else None
    # Of groups in common nobody can say how many more groups would bring.
    would = _would_tell(dataset, needed, ", at this difference") if (clusters or 0) < FEWEST_CLUSTERS else ""
    return f"{why}: {'; '.join(figures)}{would}"


def _would_tell(dataset: RankedDataset, lead: LeadOverRunnerUp | None, more: str = "") -> str:
    # So many may be there already, and not tell: those in which a judge gives all items one score do not count.
    if lead is None or lead.needed is None or lead.needed <= (dataset.clusters(dataset.ranked[0]) or 0):
        return ""
    # It is known roughly: two digits of it.
    return f"; about {float(f'{lead.needed:.2g}'):,.0f} {dataset.cluster_name} would tell the two apart{more}"


def _contradiction(dataset: RankedDataset) -> str:
    """Write what the companion of the metric says against its order; empty where it says nothing.

    It does where another judge agrees significantly better than the first by the companion: kappa beside accuracy,
    groups beside rows.
    """
    best, companion = dataset.ranked[0], METRICS[dataset.measure].companion
    if companion is None:
        return ""
    leads = [(other, dataset.lead(other, best, companion)) for other in dataset.ranked[1:]]
    against = [(other, lead) for other, lead in leads if lead and lead.holds]
    if not against:
        return ""
    # The one whose lead by the companion is the largest.
    rival, lead = max(against, key=lambda pair: pair[1].difference.value or 0.0)
    own = dataset.lead(best, rival)
    figures = f"by {MEASURES[dataset.measure]} {best.label} is ahead{_by(own)}"
    figures += f", by {MEASURES[companion]} {rival.label}{_by(lead)}"
    if dataset.compares or own is None or not own.holds:
        return f"{best.label} ranks first by {MEASURES[dataset.measure]}, but not by {MEASURES[companion]}: {figures}"
    # Both orders are significant: they measure two abilities.
    within, over = (best, rival) if METRICS[dataset.measure].within else (rival, best)
    return f"{over.label} ranks sources, {within.label} ranks the candidates of a source: {figures}"


def _lead(dataset: RankedDataset) -> str:
    """Write what the lead of the first of several judges comes to."""
    best = dataset.ranked[0]
    same = dataset.same_as(best)
    who = " and ".join([best.label, *(judge.label for judge in same)])
    others = [judge for judge in dataset.ranked[1:] if judge not in same]
    measure, figure = MEASURES[dataset.measure], _figure(dataset, best)
    if not others:
        agree = f"each {_agrees(dataset)} significantly better than chance, {measure} {figure}"
        return f"{who} give the same verdict on every row, so there is no difference: {agree}"
    alike = ", which give the same verdict on every row," if same else ""
    leads = [(other, dataset.lead(best, other)) for other in others]
    open_to = [other for other, lead in leads if lead is None or not lead.holds]
    (second, lead), *_ = leads
    over = _by(lead, second.label)
    if not open_to:
        agree = _agrees(dataset, most=True)
        if same:
            agree = agree.replace("ranks", "rank", 1).replace("agrees", "agree", 1)
        return f"{who}{alike} {agree}: {measure} {figure},{over}"
    ranks = f"{who}{alike} {'rank' if same else 'ranks'} first by {measure}, {figure}"
    if second in open_to:
        return f"{ranks}, and that may be chance:{over}{_would_tell(dataset, lead)}"
    return f"{ranks},{over}; but {named(open_to)} may be as good"


def _by(lead: LeadOverRunnerUp | None, above: str = "") -> str:
    """Write a lead with its interval and how sure it is, after a space."""
    if lead is None:
        return f" without a row in common{above and f' with {above}'}"
    by = f" {in_words(lead.difference)}{above and f' above {above}'}"
    if above and (lead.difference.value or 0.0) < 0:
        # Each judge's own figure is of all groups that it ranks; a difference is of those that both rank.
        by = f" {in_words(lead.difference.times(-1))} below {above} in the groups that both rank"
    if lead.p is None:
        return f"{by} (no p-value)"
    p = written(lead.p, Column("p", form="p")).text
    return f"{by} (Holm-adjusted p {p if p.startswith('<') else f'= {p}'})"


def remarks(dataset: RankedDataset, full: bool = False) -> Iterator[str]:
    """Yield sentences on the figures, on rows and judges left out, on how judges lean, and on the cost.

    Args:
        dataset: whose judges they are.
        full: whether to name every judge and aspect that a remark holds for.
    """
    if dataset.ranked:
        yield _sure(dataset)
        yield from _folded(dataset.unmeasured, "aspects have no figure", full)
    else:
        yield "`report --table agreement` says how many rows were used, and why others were left out"
    yield from _folded(_lacking(dataset), "judges have no verdict on some rows, as the notes say", full)
    yield from _folded(_unranked(dataset), "judges are not ranked: they have too few labelled rows", full)
    yield from _folded(_constant(dataset, full), "judges give the same verdict on every item", full)
    yield from _folded(_unhealthy(dataset), "judges did not work as intended", full)
    yield from _alike(dataset)
    for way, texts in TEXTS["leanings"].items():
        yield from _folded(_leaning(dataset, way, full), texts["others"].format(whom=dataset.whom), full)
    if dataset.ranked and (usage := dataset.ranked[0].usage).calls_each is not None:
        cost = "at unknown cost" if usage.cost_each is None else f"and costs {money(usage.cost_each)}"
        yield f"A judgement of {dataset.ranked[0].label} takes {usage.calls_each:.1f} calls {cost}"


def _sure(dataset: RankedDataset) -> str:
    best, measure = dataset.ranked[0], MEASURES[dataset.measure]
    of = f"{capital(measure)} of {best.label} with {labels_of(dataset.subjects[0])}: {in_words(dataset.figure(best))}"
    if len(dataset.subjects) > 1:
        return f"{of}, the mean over {len(dataset.subjects)} aspects"
    rows, clusters = dataset.rows(best), dataset.clusters(best)
    where = f" over {rows:,} rows" if rows else ""
    grouped = clusters is not None and dataset.cluster_name == "groups"
    plural = "group" if clusters == 1 else "groups"
    name = METRICS[dataset.measure].companion
    beside = dataset.companion(best, name)
    also = f"; {MEASURES[name]} {in_words(beside)}" if name and beside else ""
    return f"{of}{where}{f' in {clusters:,} {plural}' if grouped else ''}{also}"


def _folded(of_judges: Iterable[str], what: str, full: bool) -> Iterator[str]:
    """Yield sentences, each on a judge; of many the first, and how many more there are that it holds for."""
    sentences = list(of_judges)
    shown = len(sentences) if full or len(sentences) <= _FEW + 1 else _FEW
    yield from sentences[:shown]
    if more := len(sentences) - shown:
        yield f"{more} more {what} (report --all)"


def _lacking(dataset: RankedDataset) -> Iterator[str]:
    """Yield which judges have no verdict on some rows, and whether these count for others."""
    for judge in dataset.judges:
        lacking = judge.failed + judge.missing
        if judge.wanted and lacking > _MISSING * judge.wanted:
            what = "failed on" if not judge.missing else "has no verdict on"
            rows = f"{lacking:,} of {judge.wanted:,} rows ({lacking / judge.wanted:.0%})"
            # Not those of a judge that is not compared, or of one that failed where all others did.
            others = (other for other in dataset.judges if other is not judge)
            left_out = (agreement.left_out for agreement in dataset.agreements(*others))
            shared = judge in dataset.ranked and any(reasons.get(NOT_BY_ALL) for reasons in left_out)
            yield f"{judge.label} {what} {rows}{', which are left out for all judges' if shared else ''}"


def _unranked(dataset: RankedDataset) -> Iterator[str]:
    most = dataset.rows(dataset.ranked[0]) if dataset.ranked else 0
    for judge in dataset.judges:
        rows = dataset.rows(judge)
        if judge not in dataset.ranked and 0 < rows < FEWEST_CLUSTERS <= most:
            yield f"{judge.label} is not ranked: it has only {rows:,} labelled rows"


def _constant(dataset: RankedDataset, full: bool) -> Iterator[str]:
    """Yield which judges say the same of all items."""
    for judge in dataset.judges:
        verdicts = []
        for entry in dataset.entries(judge):
            if entry.always is not None:
                verdict_text = f"{entry.always:g}" if isinstance(entry.always, float) else entry.always
                figure = entry.measures.get("accuracy")
                met = f", which {value(figure)} of the labels are" if figure else ""
                verdicts.append(f"{verdict_text}{_on(entry, dataset.subjects)}{met}")
        if verdicts:
            nobody = ": it agrees with nobody" if dataset.labels_differ else ""
            yield f"{judge.label} always says {_few(verdicts, full)}{nobody}"


def _unhealthy(dataset: RankedDataset) -> Iterator[str]:
    """Yield which judges' verdicts often carry warnings that the agents behind them did not work."""
    subjects = {subject.label for subject in dataset.subjects}
    for judge in dataset.judges:
        health: Counter[str] = Counter()
        for diagnosis in dataset.study.diagnoses:
            if diagnosis.judge == judge.label and diagnosis.subject in subjects:
                health.update(diagnosis.replies.health)
        made = judge.usage.judgements
        often = [f"{kind} in {count:,}" for kind, count in health.most_common() if count > _OFTEN * made]
        if often:
            yield f"{judge.label} did not work as intended: {', '.join(often)} of {made:,} judgements"


def _alike(dataset: RankedDataset) -> Iterator[str]:
    """Yield which judges say the same as another judge; the first one's are in the claim."""
    already: set[str] = set()
    for judge in dataset.ranked:
        same = [] if judge.label in already else dataset.same_as(judge)
        already |= {other.label for other in same}
        if same and judge is not dataset.ranked[0]:
            yield f"{named([judge, *same])} give the same verdict on every row"


def _leaning(dataset: RankedDataset, way: str, full: bool) -> Iterator[str]:
    """Yield how the judges lean in one way where the labels do not, significantly."""
    subjects = {subject.label: subject for subject in dataset.subjects}
    leanings = [of for of in dataset.study.leanings if of.way == way and of.subject in subjects and of.holds]
    if way == "level":
        leanings = [leaning for leaning in leanings if _is_large(leaning, subjects[leaning.subject])]
    for judge in dataset.judges:
        holding = [leaning for leaning in leanings if leaning.judge == judge.label]
        if holding:
            place = "first" if (holding[0].excess.value or 0) > 0 else "second"
            phrases = _few([_leant(leaning, dataset) for leaning in holding], full)
            texts = {"judge": judge.label, "phrases": phrases, "whom": dataset.whom, "place": place}
            yield TEXTS["leanings"][way]["judge"].format(**texts)


def _few(of_aspects: Sequence[str], full: bool) -> str:
    """Join what is said of several aspects; of many, count the others."""
    if full or len(of_aspects) <= _FEW + 1:
        return ", ".join(of_aspects)
    return f"{', '.join(of_aspects[:_FEW])}, and otherwise on {len(of_aspects) - _FEW} more aspects"


def _is_large(shift: Leaning, subject: Subject) -> bool:
    if subject.low is None or subject.high is None:
        return False
    return abs(shift.excess.value or 0.0) > _SHIFT * (subject.high - subject.low)


def _on(about: Leaning | LeaderboardEntry, subjects: Sequence[Subject]) -> str:
    return f" on {about.subject}" if len(subjects) > 1 else ""


def _leant(leaning: Leaning, dataset: RankedDataset) -> str:
    """Write how far a judge leans, beside the labels."""
    shift, on = leaning.excess.value or 0, _on(leaning, dataset.subjects)
    of_scores = leaning.way == "length" and not dataset.compares
    text = TEXTS["leanings"][leaning.way]["phrase_of_scores" if of_scores else "phrase"]
    direction = "higher" if shift > 0 else "lower"
    return str(text.format(**leaning._asdict(), points=abs(shift), direction=direction, on=on))
