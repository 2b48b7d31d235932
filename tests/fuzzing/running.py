"""Runs hostile cases against planner in this process, and reports every crash, leak and escape.

A case is a number: it seeds everything that the case draws, so that each can be repeated alone with
`python -m tests.fuzzing NUMBER...`.
"""

from __future__ import annotations

import gc
import random
import shutil
import time
import traceback
from typing import Any, Final

import numpy as np

from planner_models.circuits.problem import readers as circuit_traces
from tests.commands import planner
from tests.fuzzing.bases import bases, chosen_readers, documents, has_chosen_systems
from tests.fuzzing.cases import KINDS, of_crafted
from tests.fuzzing.faults import MAX_OUTPUT, find_control_characters, find_text_faults
from tests.fuzzing.sandbox import Sandbox, limit_memory
from tests.fuzzing.workbook_forks import WorkbookForks

CODES: Final = (0, 1, 2, 3, 4, 5, 6)
"""Exit codes that a user can act on; 70 is a fault of planner."""
OF_SYSTEMS: Final = ["tables", "scenarios", "plans", "uploads"]
"""Kinds of cases whose input is that of a system; the only kinds where systems are chosen."""
FIRST_CRAFTED: Final = 1_000_000
"""Cases from this number on are files that were made to stop a reader."""
MOST_WINDOWS: Final = 20
"""Windows of a trace: rolling through the million that are allowed takes hours."""
MAX_CPU_S: Final = 30.0
"""CPU time of a command, which may compile kernels."""

_sandbox: Sandbox | None = None


def run_case(number: int) -> list[str]:
    """Run a case; return what planner did wrong, one line each."""
    global _sandbox
    if _sandbox is None:
        bases(), documents()
        _sandbox = Sandbox()
        limit_memory()
        circuit_traces.MOST_WINDOWS = MOST_WINDOWS  # type: ignore[misc]
        WorkbookForks().install()
        gc.collect()
        gc.freeze()  # what all cases share is not looked through for each
    draw = random.Random(number)
    kinds = ["files"] if chosen_readers() else OF_SYSTEMS if has_chosen_systems() else list(KINDS)
    (kind,) = draw.choices(kinds, [KINDS[name][0] for name in kinds])
    make = KINDS[kind][1]
    if number >= FIRST_CRAFTED:
        kind, make = "crafted", of_crafted
    faults: list[str] = []
    command: Any = None
    seconds = 0.0
    with _sandbox as folder:
        before = dict(np.geterr())
        try:
            command = make(draw, folder)
            if kind in ("addresses", "uploads"):
                faults += command
            else:
                start = time.process_time()
                result = planner(*command)
                seconds = time.process_time() - start
                if result.code not in CODES:
                    faults.append(f"exit code {result.code}: {result.err.strip()[-300:]}")
                faults += find_control_characters(result.out) + find_control_characters(result.err)
                faults += find_text_faults(result.out, upper=MAX_OUTPUT) + find_text_faults(result.err)
                if any(_sandbox.temp.iterdir()):
                    faults.append(f"leaves temporary files: {sorted(_sandbox.temp.iterdir())[:3]}")
                    shutil.rmtree(_sandbox.temp)
                    _sandbox.temp.mkdir()
        except BaseException:
            faults.append("raises " + traceback.format_exc()[-1500:])
        if dict(np.geterr()) != before:
            faults.append("NumPy's error state is changed")
    if seconds > MAX_CPU_S:
        faults.append(f"takes {seconds:.0f} s of CPU time")
    faults += _sandbox.escapes
    words = "" if kind in ("addresses", "uploads") else " ".join(str(word)[:80] for word in command or ())
    return [f"case {number} ({kind}: {words!r}): {fault}" for fault in faults]
