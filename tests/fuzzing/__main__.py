"""Runs the hostile cases of the command line, such as `python -m tests.fuzzing 3 10-20`."""

from __future__ import annotations

import sys
import time

from tests.fuzzing.running import run_case


def main() -> None:
    """Run the cases of the command line, each in this process, with the time it takes."""
    for text in sys.argv[1:]:
        first, _, last = text.partition("-")
        for number in range(int(first), int(last or first) + 1):
            start = time.perf_counter()
            faults = run_case(number)
            sys.__stdout__.write("".join(f"{fault}\n" for fault in faults) or f"{number} ")
            if time.perf_counter() - start > 3:
                sys.__stdout__.write(f"case {number}: {time.perf_counter() - start:.1f} s\n")
            sys.__stdout__.flush()


if __name__ == "__main__":
    main()
