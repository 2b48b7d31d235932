"""Time to choose the entries of a network card, and the gap to the bound, by the number of entries.

python -m benchmarks.offload
"""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from planner_models.flowtables.plan.offload import Candidates, Limits, choose_offload

ENTRIES: Final = (1_000, 10_000, 100_000)
GOAL_S: Final = 5.0
GOAL_GAP: Final = 0.01


def main() -> None:
    """Print time and gap for cards with and without limits of masks and insertions; require the goals."""
    for entries in ENTRIES:
        random = np.random.default_rng(entries)
        masks = max(entries // 100, 20)
        candidates = Candidates(
            np.floor(random.pareto(1.1, entries) * 10 + 1),
            (masks * random.random(entries) ** 3).astype(np.int64),
            np.floor(random.pareto(1.5, entries) * 2 + 1),
        )
        for limits in (
            Limits(entries // 20, entries, np.inf),
            Limits(entries // 20, masks // 10, np.inf),
            Limits(entries // 20, masks // 10, entries / 10),
        ):
            start = time.process_time()
            offload = choose_offload(candidates, limits)
            seconds = time.process_time() - start
            gap = 1 - offload.saved / offload.bound
            print(f"{entries:>7,} entries, {limits}: {seconds:.2f} s (CPU), gap {gap:.2%}")
            assert seconds <= GOAL_S
            assert gap <= GOAL_GAP


if __name__ == "__main__":
    main()
