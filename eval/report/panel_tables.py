"""Write what a panel of judges is worth: its first screen, its sentences and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..analysis.panel_value import Member, Panel, SubPanel
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic, is_few
from ..statistics.tie_policy import WINNERS
from ..tables.grid import CellValue, Column, Grid, figure, money, printable, text_column, written
from ..tables.screen import FirstScreen
from .headline import p_in_words
from .labels import listed
from .ranked_dataset import ALL_ALIKE

MOST_WARNINGS = 2
MOST_ROWS = 8
"""The most members in the table of the first screen."""
_NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_PRICES = {"cost": "cost", "calls": "calls", "judges": "judges"}


def panel_screen(panel: Panel, name: str = "", notes: Sequence[str] = ()) -> FirstScreen:
    """Compose the first screen of a panel: whether it is worth more than its best member.

    Args:
        panel: the measured panel.
        name: the dataset or aspect, if there are several.
        notes: warnings about the whole command, which come first.
    """
    warnings = [*notes, *_warnings(panel)]
    return FirstScreen(
        name=printable(name),
        headline=printable(claim(panel)),
        table=members_table(panel),
        evidence=printable(evidence(panel)),
        quotable=printable(quotable(panel)),
        warnings=tuple(map(printable, warnings[:MOST_WARNINGS])),
        others=tuple(map(printable, [*warnings[MOST_WARNINGS:], *_remarks(panel)])),
    )


def claim(panel: Panel) -> str:
    """Write the headline: at most twelve words, without numbers."""
    whole = _whole(panel)
    best = f"{panel.best} alone" if panel.same_choice else "The best single judge"
    if panel.identical:
        return "All judges gave identical verdicts, so a panel adds nothing"
    if _is_few(panel):
        return f"Too few {_clusters(panel)} to compare the panel with its best judge"
    if panel.better == "member":
        how = "is right more often than" if panel.kind == "compare" else "agrees better than"
        return f"{best} {how} {whole}"
    if panel.better == "panel":
        how = "is right more often than" if panel.kind == "compare" else "agrees better than"
        return f"{whole[:1].upper()}{whole[1:]} {how} the best single judge"
    return f"No clear winner between {whole} and {panel.best}"


def evidence(panel: Panel) -> str:
    """Write the line of evidence: both values, their difference, the effective votes."""
    metric = METRICS[panel.metric].title
    values = (
        f"{metric[:1].upper()}{metric[1:]} {_value(panel.best_agreement)} ({_chosen(panel)}) against "
        f"{_value(panel.agreement)} ({_whole(panel)}) over {_units(panel)}{_left_out(panel)}"
    )
    apart = panel.lead.difference
    difference = ""
    if apart.value is not None and apart.low is not None:
        difference = f"; difference {_value(apart)}{_interval(panel, apart)}"
        p = panel.lead.adjusted
        difference += "" if p is None else f", p {p_in_words(p)}"
    needed = ""
    if panel.better == "neither" and panel.lead.needed and not _is_few(panel):
        needed = (
            f" At least {panel.lead.needed:,} {_clusters(panel)} would be needed to separate them."
        )
    few = ""
    if _is_few(panel):
        few = f" Fewer than {FEWEST_CLUSTERS} {_clusters(panel)} support no claim."
    return f"{values}{difference}. {votes(panel)}{needed}{few}"


def votes(panel: Panel) -> str:
    """Write how many independent votes the panel is worth."""
    effective = panel.correlation.effective
    mean = panel.correlation.mean
    judges = _count(panel.size)
    if effective.value is None:
        return "The errors of the judges do not vary, so they have no correlation."
    digits = _digits_of_votes(effective)
    return (
        f"{judges[:1].upper()}{judges[1:]} judges, worth {_value(effective, digits)} independent votes"
        f"{_interval(panel, effective, digits)}: their errors correlate at {_value(mean, 2)}"
        f"{_interval(panel, mean, 2)}."
    )


def quotable(panel: Panel) -> str:
    """Write a sentence that a paper may quote; empty without an interval."""
    effective = panel.correlation.effective
    apart = panel.lead.difference
    if effective.low is None or apart.low is None or panel.identical:
        return ""
    metric = METRICS[panel.metric].title
    verb = {
        "member": "agreed better with the labels than",
        "panel": "agreed less with the labels than",
        "neither": "did not differ significantly in its agreement with the labels from",
    }[panel.better]
    p = panel.lead.adjusted
    tested = "" if p is None else f", p {p_in_words(p)}"
    digits = _digits_of_votes(effective)
    return (
        f"On {_units(panel)} of {panel.data}, the errors of {_count(panel.size)} judges had a mean "
        f"correlation of {_value(panel.correlation.mean, 2)}{_interval(panel, panel.correlation.mean, 2)}, "
        f"so that the panel was worth {_value(effective, digits)} independent votes (effective sample "
        f"size by Kish{_interval(panel, effective, digits)}). {_chosen(panel, True)} "
        f"{verb} {_whole(panel)} ({metric} {_value(panel.best_agreement)} against "
        f"{_value(panel.agreement)}{_left_out(panel)}; "
        f"difference {_value(apart)}{_interval(panel, apart)}{tested})."
    )


def members_table(panel: Panel) -> Grid:
    """Tabulate the members, the best first, then the whole panel and the recommended sub-panel."""
    short = METRICS[panel.metric].short
    unit = _PRICES[panel.unit]
    columns = [
        text_column(f"{_units(panel)} of {panel.data}{_aspect(panel)}"),
        Column(f"agreement ({short})"),
        Column("errors with others", 2, about="mean correlation of its errors with the others'"),
        Column(unit, 1, form="money" if panel.unit == "cost" else "plain", about="per item"),
    ]
    members = sorted(panel.members, key=_by_agreement)
    rows: list[tuple[CellValue, ...]] = [
        (of.name, of.agreement, of.error_correlation, _price(panel, of.price))
        for of in members[:MOST_ROWS]
    ]
    rows.append(
        (
            f"{_whole(panel)} of {'both' if panel.size == 2 else f'all {_count(panel.size)}'}",
            panel.agreement,
            panel.correlation.mean,
            _total(panel),
        )
    )
    best = panel.recommended
    if 1 < len(best.members) < panel.size and not _is_few(panel):
        rows.append(
            (
                f"{_whole(panel)} of {_names(best.members)}",
                best.agreement,
                None,
                _shown(panel, best),
            )
        )
    more = len(members) - MOST_ROWS
    notes = [f"{more} more judges: --json"] if more > 0 else []
    return Grid("", tuple(columns), tuple(rows), tuple(notes))


def panel_tables(panels: Sequence[Panel]) -> Iterator[Grid]:
    """Tabulate each panel for a report: its members, its pairs of members, and its sub-panels."""
    for panel in panels:
        title = f"{panel.data}: panel of {_count(panel.size)} judges{_aspect(panel)}"
        members = members_table(panel)
        columns = (text_column("judge"), *members.columns[1:])
        notes = (evidence(panel), *_warnings(panel), *_remarks(panel))
        yield Grid(
            title, columns, members.rows, notes, judges=tuple(of.name for of in panel.members)
        )
        yield _sub_panels(panel)


def _sub_panels(panel: Panel) -> Grid:
    metric = METRICS[panel.metric].title
    unit = _PRICES[panel.unit]
    money_form = panel.unit == "cost"
    columns = (
        text_column("best panel up to this price"),
        Column(unit, 1, form="money" if money_form else "plain"),
        Column(metric, about="chosen and judged on different groups or items"),
        Column("where chosen", about="on the rows on which it was chosen: too optimistic"),
    )
    rows = tuple(
        (", ".join(of.members), _shown(panel, of), of.agreement, of.apparent)
        for of in panel.sub_panels
    )
    title = f"{panel.data}: best sub-panels{_aspect(panel)}"
    return Grid(title, columns, rows, () if _is_few(panel) else (_recommendation(panel),))


def _warnings(panel: Panel) -> Iterator[str]:
    yield from panel.notes
    if panel.human_ties:
        rows = (
            "row is a human tie, which is"
            if panel.human_ties == 1
            else "rows are human ties, which are"
        )
        yield f"{panel.human_ties:,} {rows} left out."
    lost = panel.of_rows - panel.rows - panel.human_ties
    if lost:
        missing = [
            f"{member.name} on {member.missing:,}" for member in panel.members if member.missing
        ]
        yield (
            f"{lost:,} of {panel.of_rows:,} labelled rows lack the verdict of a judge "
            f"({_names(missing)}). All figures are for {panel.rows:,} rows."
        )
    for member in panel.members:
        if member.always is not None and not panel.identical:
            verdict = f"{member.always:g}"
            if panel.kind == "compare":
                verdict = WINNERS[int(member.always)]
            yield f"{member.name} gave every item the verdict {verdict}."
    if undefined := panel.correlation.undefined:
        pairs = panel.size * (panel.size - 1) // 2
        yield (
            f"{undefined} of {pairs} pairs of judges have no error correlation, because the errors "
            "of one judge do not vary. The mean is over the other pairs."
        )
    effective = panel.correlation.effective
    if effective.value is not None and effective.low is None and not _is_few(panel):
        yield "Right and wrong verdicts vary too little for an interval of the independent votes."


def _remarks(panel: Panel) -> Iterator[str]:
    if not _is_few(panel):
        yield further_members(panel)
        yield _recommendation(panel)
    apparent = panel.best_apparent
    value = panel.best_agreement.value
    if apparent is not None and value is not None and apparent - value >= 0.005:
        yield (
            f"{panel.best} has {_value(Statistic(apparent))} on the rows on which it is the best. "
            f"Choosing it on other rows gives {_value(panel.best_agreement)}."
        )
    for judge, reasons in panel.left_out.items():
        if text := listed(reasons):
            yield f"{judge}: left out {text}."


def members_worth(panel: Panel) -> str:
    """Write how many members are worth their cost, or that there is too little to tell."""
    if not _is_few(panel):
        return further_members(panel)
    return (
        f"{panel.clusters} {_clusters(panel)} are too few to say how many members are worth their "
        "cost: judge more of them."
    )


def further_members(panel: Panel) -> str:
    """Write how many members are worth their cost."""
    low, size, high = panel.worth_members
    if panel.correlation.mean.value is None:
        return "The errors do not vary, so the value of further members is unknown."
    each = f"{'adds' if size == 1 else 'add'} at least {panel.worth:g} independent votes{'' if size == 1 else ' each'}"
    between = f" (between {low} and {high} by the interval)" if low != high else ""
    up_to = "only the first member" if size == 1 else f"up to {size} members"
    more = size - panel.size
    if more > 0:
        further = "1 further member is" if more == 1 else f"{more} further members are"
        return f"{further} worth the cost: {up_to}{between} {each}."
    if more == 0:
        return f"No further member is worth the cost: {up_to}{between} {each}."
    return (
        f"No further member is worth the cost, and {-more} of the {panel.size} "
        f"{'is' if more == -1 else 'are'} not: {up_to}{between} {each}."
    )


def _recommendation(panel: Panel) -> str:
    best = panel.recommended
    names = f"{best.members[0]} alone" if len(best.members) == 1 else _names(best.members)
    total = _total(panel)
    price = f"{_written(panel, _shown(panel, best))} instead of {_written(panel, total)}"
    return (
        f"Best for its price: {names} ({METRICS[panel.metric].short} {_value(best.agreement)}, "
        f"{price}), the cheapest panel within one standard error of the best one."
    )


def _by_agreement(member: Member) -> float:
    return -(member.agreement.value if member.agreement.value is not None else -2.0)


def _price(panel: Panel, price: float | None) -> float | int | None:
    return 1 if panel.unit == "judges" else price


def _total(panel: Panel) -> float | int:
    if panel.unit == "judges":
        return panel.size
    return sum(member.price or 0.0 for member in panel.members)


def _shown(panel: Panel, of: SubPanel) -> float | int:
    return len(of.members) if panel.unit == "judges" else of.price


def _written(panel: Panel, price: float | int) -> str:
    if panel.unit == "cost":
        return f"{money(price)} an item"
    if panel.unit == "calls":
        return f"{figure(price, Column('', 1))} calls an item"
    return "1 judge" if price == 1 else f"{price} judges"


def _whole(panel: Panel) -> str:
    return "the majority" if panel.kind == "compare" else "the mean"


def _chosen(panel: Panel, begins: bool = False) -> str:
    if panel.same_choice:
        return panel.best
    return f"{'The' if begins else 'the'} best single judge by cross-fitting"


def _digits_of_votes(effective: Statistic) -> int:
    """Return the decimals of effective votes: more if the ends of the interval would be equal."""
    low = effective.low
    high = effective.high
    return 1 if low is None or high is None or f"{low:.1f}" != f"{high:.1f}" else 2


def _is_few(panel: Panel) -> bool:
    return is_few(panel.clusters) or panel.lead.p is None


def _clusters(panel: Panel) -> str:
    return "groups" if panel.has_groups else "items"


def _units(panel: Panel) -> str:
    noun = "comparison" if panel.kind == "compare" else "text"
    texts = f"{panel.rows:,} {noun}{'' if panel.rows == 1 else 's'}"
    return f"{texts} in {panel.clusters:,} groups" if panel.has_groups else texts


def _left_out(panel: Panel) -> str:
    count = panel.groups_left_out
    return f", {count:,} {'group' if count == 1 else 'groups'} {ALL_ALIKE}" if count else ""


def _aspect(panel: Panel) -> str:
    return "" if panel.subject in ("preference", "score") else f", {panel.subject}"


def _count(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def _names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _value(figure: Statistic, digits: int = 3) -> str:
    return written(Statistic(figure.value), Column("", digits)).text


def _interval(panel: Panel, figure: Statistic, digits: int = 3) -> str:
    if figure.low is None or figure.high is None:
        return ""
    ends = (_value(Statistic(end), digits) for end in (figure.low, figure.high))
    return f", {100 * panel.resampling.confidence:.4g} % CI {' to '.join(ends)}"
