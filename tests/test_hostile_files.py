"""Test small files that expand to gigabytes: each is refused by name in little memory."""

import gzip
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from jurygraph.eval.datasets.frames import row_file
from jurygraph.eval.datasets.spreadsheet_limits import check_spreadsheet
from jurygraph.state.errors import DataError
from pyarrow import parquet

from .processes import Forks

MEGABYTE = 1 << 20
MEMORY = 1200 * MEGABYTE
"""The memory limit: the longest line, with four bytes a character, is copied a few times."""

READS = f"""
import resource, sys
from pathlib import Path
from jurygraph.eval.datasets.frames import row_file
from jurygraph.state.errors import DataError

pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + {MEMORY}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print(sum(1 for _ in row_file(Path(sys.argv[1])).rows()), "rows")
except DataError as error:
    print(error)
"""

XML = b'<?xml version="1.0" encoding="UTF-8"?>'
BOOK = b"""<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
<sheets><sheet name="Sheet" sheetId="1" r:id="rId1"/></sheets></workbook>"""
TYPES = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = b"""<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Type="%b/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="rId2" Type="%b/sharedStrings" Target="sharedStrings.xml"/>
</Relationships>""" % (TYPES, TYPES)
HEADER = b'<row r="1"><c r="A1" t="inlineStr"><is><t>id</t></is></c></row>'


def write_xlsx(path: Path, rows: Iterator[bytes], shared: bytes = b"") -> None:
    """Write a workbook of one sheet, row by row."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", XML + BOOK)
        archive.writestr("xl/_rels/workbook.xml.rels", XML + RELATIONS)
        archive.writestr("xl/sharedStrings.xml", XML + b"<sst>" + shared + b"</sst>")
        with archive.open("xl/worksheets/sheet1.xml", "w") as sheet:
            sheet.write(XML + b"<worksheet><sheetData>" + HEADER)
            for row in rows:
                sheet.write(row)
            sheet.write(b"</sheetData></worksheet>")


def a_value_in_the_last_cell(path: Path) -> None:
    write_xlsx(path, iter([b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>']))


def a_value_in_the_last_cell_of_a_row_without_a_number(path: Path) -> None:
    write_xlsx(path, iter([b"<row><c x='>' r = 'xfd1048576'><v>1</v></c></row>"]))


def a_cell_of_100_megabytes(path: Path) -> None:
    pieces = [
        b'<row r="2"><c r="A2" t="inlineStr"><is><t>',
        *[b"x" * MEGABYTE] * 100,
        b"</t></is></c></row>",
    ]
    write_xlsx(path, iter(pieces))


def a_size_that_is_stated_wrong(path: Path) -> None:
    a_cell_of_100_megabytes(path)
    content = bytearray(path.read_bytes())
    # The uncompressed size of the sheet, the last entry of the directory at the end of the archive.
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(content)


def a_text_that_many_cells_share(path: Path) -> None:
    cells = (
        b'<row r="%d"><c r="A%d" t="s"><v>0</v></c></row>' % (row, row) for row in range(2, 3000)
    )
    write_xlsx(path, cells, b"<si><t>" + b"x" * 5 * MEGABYTE + b"</t></si>")


def a_cell_repeated_in_all_columns_and_rows(path: Path) -> None:
    cell = '<table:table-cell office:value-type="float" office:value="1" table:number-columns-repeated="16384"/>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", f"<table:table>{row}</table:table>")


def one_long_text(begin: str) -> Callable[[Path], None]:
    """A compressed file that begins like this and goes on with a text of 100 MB."""

    def write(path: Path) -> None:
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(begin.encode())
            for _ in range(100):
                file.write(b"x" * MEGABYTE)

    return write


def a_text_that_is_compressed_well(path: Path) -> None:
    table = pa.table({"id": ["a"], "source": ["x" * 100 * MEGABYTE]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)


HOSTILE: dict[str, list[tuple[Callable[[Path], None], str]]] = {
    "far.xlsx": [
        (
            a_value_in_the_last_cell,
            "reaches to cell XFD1048576, 17,179,869,184 cells of which 2 are filled",
        ),
        (a_value_in_the_last_cell_of_a_row_without_a_number, "reaches to cell XFD1048576"),
        (a_cell_of_100_megabytes, "expands to more than the limit of 67,108,864 bytes"),
        (a_size_that_is_stated_wrong, "expands to more than the limit of 67,108,864 bytes"),
        (a_text_that_many_cells_share, "limit of 67,108,864 bytes (texts that cells share)"),
    ],
    "repeated.ods": [
        (a_cell_repeated_in_all_columns_and_rows, "limit of 67,108,864 bytes (texts of repeated")
    ],
    "bomb.json.gz": [
        (one_long_text('[{"id": "'), "expands to more than the limit of 67,108,864 bytes")
    ],
    "bomb.jsonl.gz": [(one_long_text('{"id": "'), "line 1: has more than 67,108,864 characters")],
    "bomb.csv.gz": [(one_long_text('id\n"'), "line 2: has more than 67,108,864 characters")],
    "bomb.parquet": [(a_text_that_is_compressed_well, "limit of 67,108,864 bytes (source)")],
    "old.xls": [(a_value_in_the_last_cell, "save it as .xlsx or .csv")],
}
CASES = [
    pytest.param(name, write, words, id=f"{name}-{write.__name__}")
    for name, cases in HOSTILE.items()
    for write, words in cases
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "write", "words"), CASES)
def test_a_small_file_that_asks_for_gigabytes_is_refused_in_little_memory(
    tmp_path: Path, forks: Forks, name: str, write: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / name
    write(path)
    assert path.stat().st_size < 4 * MEGABYTE
    done = forks(str(path), cwd=tmp_path, program=READS)
    assert done.returncode == 0, done.stderr
    assert str(path) in done.stdout
    assert words in done.stdout


@pytest.mark.slow
def test_rows_that_share_a_long_text_are_read_few_at_a_time(tmp_path: Path, forks: Forks) -> None:
    path = tmp_path / "shared.parquet"
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 40), pa.array(["x" * 20 * MEGABYTE]))
    parquet.write_table(
        pa.table({"source": text}), path, compression="zstd", dictionary_pagesize_limit=1 << 30
    )
    # The memory that is used: pyarrow reserves more addresses than that.
    program = f"""
import resource, sys
from pathlib import Path
from jurygraph.eval.datasets.frames import row_file

rows = sum(1 for _ in row_file(Path(sys.argv[1])).rows())
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < {MEMORY})
"""
    done = forks(str(path), cwd=tmp_path, program=program)
    assert (done.returncode, done.stdout.strip()) == (0, "40 True"), done.stderr


@pytest.mark.slow
def test_a_sheet_of_200_000_rows_passes(tmp_path: Path) -> None:
    path = tmp_path / "large.xlsx"
    text = b'<c r="%c%d" t="inlineStr"><is><t>It rained in the %dth week.</t></is></c>'
    rows = (
        b'<row r="%d"><c r="A%d"><v>%d</v></c>%b%b<c r="H%d" s="1"/></row>'
        % (row, row, row, text % (66, row, row), text % (67, row, row), row)
        for row in range(2, 200_002)
    )
    write_xlsx(path, rows)
    check_spreadsheet(path)


def test_a_note_far_below_a_table_passes(tmp_path: Path) -> None:
    stray = tmp_path / "stray.xlsx"
    cells = b'<row r="2"><c r="A2"><v>7</v></c></row><row r="900000"><c r="D900000"/><c r="C900000"><v>1</v></c></row>'
    write_xlsx(stray, iter([cells]))
    check_spreadsheet(stray)


def test_a_damaged_spreadsheet_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "damaged.xlsx"
    a_value_in_the_last_cell(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="cannot be read as a spreadsheet"):
        list(row_file(path).rows())
