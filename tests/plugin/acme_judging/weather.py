"""A dataset: weather reports and how people rated their summaries."""

from pathlib import Path

from jurygraph.eval.datasets.catalog import Source

weather = Source(
    name="weather",
    kind="score",
    summary="summaries of weather reports, rated by one person",
    labels="people",
    items=4,
    size="4 summaries",
    licence="CC0",
    scale="1 to 5",
    aspects=("fluency",),
    file=Path(__file__).parent / "weather.jsonl",
)
