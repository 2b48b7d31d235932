"""Order of the tiers: links must connect them in one chain from the sources to the groups."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

Pair = tuple[str, str]


def linked_tiers(tail_tier: np.ndarray, head_tier: np.ndarray) -> dict[Pair, int]:
    """Return the pairs of tiers that links connect, each with its first link.

    tail_tier, head_tier  (L,) tiers of both ends of each link
    """
    pairs = pd.DataFrame({"tail": tail_tier, "head": head_tier})
    first = np.flatnonzero(~pairs.duplicated().to_numpy()).tolist()
    return {(str(tail_tier[row]), str(head_tier[row])): row for row in first}


def order_tiers(pairs: Iterable[Pair]) -> list[str] | None:
    """Return the tiers in the order of the links between them; None where they form no single chain."""
    pairs = list(pairs)
    after = dict(pairs)
    first = set(after) - set(after.values())
    if len(after) != len(pairs) or len(first) != 1:
        return None
    chain = [first.pop()]
    while chain[-1] in after and len(chain) <= len(after):
        chain.append(after[chain[-1]])
    return chain if len(chain) == len(after) + 1 and len(set(chain)) == len(chain) else None


def find_cycle(pairs: Iterable[Pair]) -> list[str] | None:
    """Return tiers that lead from one back to itself, by depth-first search; None where there is no cycle."""
    after: dict[str, list[str]] = {}
    for tail, head in pairs:
        after.setdefault(tail, []).append(head)
    for start in after:
        paths = [[start]]
        visited: set[str] = set()
        while paths:
            path = paths.pop()
            for tier in after.get(path[-1], []):
                if tier == start:
                    return [*path, tier]
                if tier not in visited:
                    visited.add(tier)
                    paths.append([*path, tier])
    return None
