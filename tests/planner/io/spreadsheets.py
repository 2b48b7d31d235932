"""Spreadsheets that tests write."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import openpyxl
import pandas as pd

from planner.contract.table import Table
from planner.contract.units import is_per_unit, unit_of
from planner.scenarios.catalogue import find_system

Content = bytes | str | Callable[[Path], None]
"""Content of a file, or what writes it."""


def table_of(name: str) -> Table:
    """Return a table of a problem by `system.table`."""
    system, _, table = name.partition(".")
    return next(item for item in find_system(system).problem.tables if item.name == table)


def sheet(
    *rows: list[Any], name: str = "links", more: Mapping[str, list[list[Any]]] | None = None
) -> Content:
    """Return a function that writes an xlsx workbook."""

    def write(path: Path) -> None:
        book = openpyxl.Workbook()
        assert book.active is not None
        book.active.title = name
        for row in rows:
            book.active.append(row)
        for other, cells in (more or {}).items():
            added = book.create_sheet(other)
            for row in cells:
                added.append(row)
        book.save(path)

    return write


ODS_ROW: Final = "<table:table-row>{}</table:table-row>"
ODS_NUMBER: Final = (
    '<table:table-cell office:value-type="float" office:value="{0}"><text:p>{0}</text:p></table:table-cell>'
)
ODS_TEXT: Final = '<table:table-cell office:value-type="string"><text:p>{0}</text:p></table:table-cell>'
ODS_MANIFEST: Final = (
    '<?xml version="1.0"?>'
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
    '<manifest:file-entry manifest:full-path="/" '
    'manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/></manifest:manifest>'
)


def ods(*rows: list[Any], name: str = "links") -> Content:
    """Return a function that writes an OpenDocument spreadsheet."""

    def write(path: Path) -> None:
        cells = "".join(
            ODS_ROW.format(
                "".join(
                    (ODS_TEXT if isinstance(picture, str) else ODS_NUMBER).format(picture) for picture in row
                )
            )
            for row in rows
        )
        urn = "urn:oasis:names:tc:opendocument:xmlns:"
        content = (
            f'<?xml version="1.0" encoding="UTF-8"?><office:document-content xmlns:office="{urn}office:1.0" '
            f'xmlns:table="{urn}table:1.0" xmlns:text="{urn}text:1.0" office:version="1.2"><office:body>'
            f'<office:spreadsheet><table:table table:name="{name}">{cells}</table:table></office:spreadsheet>'
            "</office:body></office:document-content>"
        )
        with zipfile.ZipFile(path, "w") as parts:
            parts.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
            parts.writestr("META-INF/manifest.xml", ODS_MANIFEST)
            parts.writestr("content.xml", content)

    return write


OLD_EXCEL: Final = (
    "H4sIAAAAAAACA+1YTWgTQRT+ZpM0PzRpUlOhFUooWNtaEPXipV1/0Jws1Yuigm6agCEhLWku9aDVmqMgeFK8FHrxUvXiD3rQmweh"
    "oqAgCIkePQkKPbRZ37ydrWmbQwJaVOYL8+bNm/l2Xva9md3ZN0uxyvzDnio2YBQe1Owg2upsgkrQbURB/bYtVbcOULE1/ikEAxTI"
    "Nh+ehV/7ZQxlvKsw8MD7kiTwmco5TGFsspBJbCEOsw+WkD6MkBS4S5YIutmrTpYTLLexvM8jn7M8yJYbLEdobEWcwZI5NnRAZfFp"
    "o4/7IpDXfcycj2zZiy68kll85aZwxvpwqJi18n9nR6+3HQuguCUzhUzRylcQpwAu4IedAL67K/VFQtu31i5A9uX1dn8D+y3DC8zC"
    "vsAJXkYY7z2yx4d8tpCbXsE+GVxqAjSwZGXzVF3MWOkYcMSasiaypZnEQDKVLe2ZHqTUsKikQnKX5lUdXbeqw5zt7STT6GA9xjkf"
    "pX175d63t8dT4+Z5tszyTu7s9zuli7BxVTKIHOEez5ocYsZultf4qjtY72EZJ9+p7h/vUsqxOR5znXv7aZ79jHfmrjp9gPTy1xNP"
    "estfzEHSF5PVS/HFD+Y8+uj5kya+/M1hWAyLO7clnppuLdTe8Ill96Z9ImBEle+2eqh1YBUhVmMsnZa8O2KtZah7JdmiAVsw26PG"
    "C2bL+3bZkC3JPms4bKMB22C2V7GdyHgU22C29GHU6MQjOZT2t18IQUNDQ0NDQ0NDQ6N5CH67dd7lveqsIU8LfvVdZ5VKTX8m+W9x"
    "EpP0K9HB9CgKVBcx01L+bIdPuNcSTXLc74USp2j2InJIsR+5lvOXTnui/v80TYz+viXU6vy1Vvz8w/P/BJvKvU0AFgAA"
)
"""A workbook in the format of Excel 97: compressed, in base 64."""


OTHER_UNITS: Final = {
    "Mbit/s": ("Gbit/s", 1e3),
    "kbit/s": ("Mbit/s", 1e3),
    "ms": ("s", 1e3),
    "us": ("ms", 1e3),
    "B": ("kB", 1e3),
    "GB": ("TB", 1e3),
    "kops": ("Mops", 1e3),
}


def in_other_words(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as a stranger would name and measure it, such as `Capacity (Gbit/s)`."""
    columns = {}
    for name in frame:
        stem, unit = unit_of(str(name))
        title = str(name).replace("_", " ").title()
        if unit is not None and unit.symbol in OTHER_UNITS:
            symbol, factor = OTHER_UNITS[unit.symbol]
            values = frame[name] * factor if is_per_unit(stem) else frame[name] / factor
            columns[f"{stem.replace('_', ' ').title()} ({symbol})".strip()] = values
        else:
            columns[title] = frame[name]
    return pd.DataFrame(columns).assign(Remark="checked")
