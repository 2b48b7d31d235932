"""Flow files of the packet simulator htsim, as its users of Opera write them: rows without a header.

Source: W. M. Mellette et al., "Expanding across time to deliver bandwidth efficiency and low latency", NSDI
2020, whose simulator reads such files.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import pandas as pd

from planner.contract.notes import add_note
from planner.contract.tables import shorten_faults
from planner.errors import InputError
from planner.io.text_files import read_text

SUFFIX: Final = ".htsim"
FIELDS: Final = ("source", "target", "bytes", "start in ns")
MAX_LINE_BYTES: Final = 1 << 10


def read_htsim_flows(path: Path, hosts_per_rack: int) -> pd.DataFrame:
    """Return the flows of a file: start_us, source_rack, target_rack and bytes, in the order of its rows.

    Host h is in rack h // hosts_per_rack. Racks are named by their numbers.

    raises  InputError for rows of other than four numbers, and for numbers below the least
    """
    rows: list[tuple[float, str, str, float]] = []
    faults = []
    for count, line in enumerate(read_text(path, max_line_bytes=MAX_LINE_BYTES).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        flow = _read_flow(words, hosts_per_rack)
        if isinstance(flow, str):
            faults.append(f"{path.name} row {count}: {flow}")
        else:
            rows.append(flow)
    if not rows and not faults:
        faults.append(f"{path.name}: has no flow")
    if faults:
        raise InputError(*shorten_faults(faults, path.name, "that are no flow"))
    note = f"assumed: {path.name}: columns are {', '.join(FIELDS[:3])} and {FIELDS[3]}"
    if hosts_per_rack == 1:
        note += "; each number is a rack, unless hosts_per_rack says how many hosts share one"
    add_note(note)
    return pd.DataFrame(rows, columns=["start_us", "source_rack", "target_rack", "bytes"])


def _read_flow(words: list[str], hosts_per_rack: int) -> tuple[float, str, str, float] | str:
    """Return start, us, racks and bytes of a row; or the rule that it breaks."""
    rule = f"must be four numbers: {', '.join(FIELDS)}"
    if len(words) != len(FIELDS):
        return f"has {len(words)} fields, {rule}"
    for name, word in zip(FIELDS[:2], words, strict=False):
        if not (word.isascii() and word.isdecimal() and len(word) <= 9):
            return f"{name} is '{word[:40]}', must be the number of a host"
    try:
        size, start_ns = float(words[2]), float(words[3])
    except ValueError:
        return f"is '{' '.join(words)[:80]}', {rule}"
    if not (math.isfinite(size) and size > 0):
        return f"bytes is {words[2][:40]}, must be greater than 0"
    if not (math.isfinite(start_ns) and start_ns >= 0):
        return f"start is {words[3][:40]} ns, must be at least 0"
    source, target = (str(int(word) // hosts_per_rack) for word in words[:2])
    return start_ns / 1e3, source, target, size
