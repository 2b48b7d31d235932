"""Archives that are given to the page: damaged ones are one clear line, whatever packs them."""

from __future__ import annotations

import contextlib
import io
import zipfile

import pytest

from planner.errors import InputError
from planner_dashboard.own_data.intake import GivenFile, _unpack


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_a_damaged_archive_is_refused(method: int) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        archive.writestr("links.csv", "tail,head,capacity_mbps\n" + "a,b,1\n" * 200)
    full = content.getvalue()
    assert len(_unpack(GivenFile(name="own.zip", content=full))) == 1
    refused = 0
    for position in range(30, len(full), max(1, len(full) // 60)):
        damaged = bytearray(full)
        damaged[position] ^= 0xFF
        with contextlib.suppress(InputError):
            _unpack(GivenFile(name="own.zip", content=bytes(damaged)))
            continue
        refused += 1
    assert refused > 10
