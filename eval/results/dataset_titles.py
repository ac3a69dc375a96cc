"""Unique titles of the datasets of a report, or of several runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

IN_MEMORY = "in memory"
"""The location of a dataset without a file."""


class Place(NamedTuple):
    """The name of a dataset and where it is."""

    name: str
    location: str = IN_MEMORY


def dataset_titles(places: Sequence[Place]) -> list[str]:
    """Return the shortest unique title of each dataset.

    This is its name. Files with the same name get as many of their folders as distinguish them.
    Datasets that are still equal get a number.

    >>> dataset_titles([Place("demo"), Place("test.csv", "/a/en/test.csv"), Place("test.csv", "/a/de/test.csv")])
    ['demo', 'en/test.csv', 'de/test.csv']
    >>> dataset_titles([Place("rows"), Place("rows")])
    ['rows', 'rows #2']
    """
    titles: list[str] = []
    for place in places:
        same_name = [other for other in places if other.name == place.name]
        titles.append(_with_folders(place, same_name))
    counted = Counter[str]()
    for position, title in enumerate(titles):
        counted[title] += 1
        if counted[title] > 1:
            titles[position] = f"{title} #{counted[title]}"
    return titles


def _with_folders(place: Place, same_name: Sequence[Place]) -> str:
    """Return the name after as few folders as distinguish it.

    Alone if no number of folders does.
    """
    if len(same_name) == 1 or place.location == IN_MEMORY:
        return place.name
    folders = _folders(place)
    others = [_folders(other) for other in same_name if other is not place]
    for count in range(1, len(folders) + 1):
        if all(other[-count:] != folders[-count:] for other in others):
            return "/".join((*folders[-count:], place.name))
    return place.name


def _folders(place: Place) -> tuple[str, ...]:
    return () if place.location == IN_MEMORY else PurePath(place.location).parent.parts
