"""Runs hostile cases, such as `python -m tests.fuzzing 3 10-20`, of all systems or of some.

With `--system fairshare`, all input is that of the system named, and a number is another case than without.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time

from planner.scenarios.catalogue import system_names
from tests.fuzzing.bases import choose_readers, choose_systems
from tests.fuzzing.cases import reader_names
from tests.fuzzing.running import run_case

SLOW_S = 3.0
LIMIT_S = 120.0
"""Time of a case after which the process ends with a traceback: it hangs."""


def main() -> None:
    """Run the cases of the command line, each in this process; report faults and slow cases."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description="Run hostile cases.")
    parser.add_argument("cases", nargs="+", help="numbers, or ranges as 0-9999")
    parser.add_argument("--system", action="append", choices=system_names(), help="only input of this system")
    parser.add_argument("--reader", action="append", choices=reader_names(), help="only files of this reader")
    arguments = parser.parse_args()
    choose_systems(arguments.system or ())
    choose_readers(arguments.reader or ())
    begin, result, faulty, longest = time.process_time(), 0, 0, 0.0
    for text in arguments.cases:
        first, _, last = text.partition("-")
        for number in range(int(first), int(last or first) + 1):
            start = time.perf_counter()
            faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=sys.__stderr__)
            faults = run_case(number)
            seconds = time.perf_counter() - start
            result, faulty, longest = result + 1, faulty + bool(faults), max(longest, seconds)
            sys.__stdout__.write("".join(f"{fault}\n" for fault in faults))
            if seconds > SLOW_S:
                sys.__stdout__.write(f"case {number}: {seconds:.1f} s\n")
            if result % 1_000 == 0:
                sys.__stdout__.write(f"{result} cases, {faulty} with faults\n")
            sys.__stdout__.flush()
    faulthandler.cancel_dump_traceback_later()
    cpu_s = time.process_time() - begin
    sys.__stdout__.write(
        f"{result} cases, {faulty} with faults, {cpu_s:.0f} CPU s, the longest case {longest:.1f} s\n"
    )
    sys.exit(1 if faulty else 0)


if __name__ == "__main__":
    main()
