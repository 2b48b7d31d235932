"""Byzantine agreement: rounds and values of protocols, exponential information gathering, and its adversary.

`run` is the protocol of n > 3t processes in t + 1 rounds (PSL80, as a tree: Abraham and Dolev 2015, section
2). `early_stopping` has the protocol of that paper; its rounds (Theorem 1), its monitors (section 4) and its
waste (section 5) are formulas here.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np

Node = tuple[int, ...]
"""Processes through which a value came, without repetition."""
Adversary = Literal["random", "split", "silent"]
ADVERSARIES: Final[tuple[Adversary, ...]] = ("random", "split", "silent")
PERIOD: Final = 4
"""Rounds between two monitors of a sequence (section 4)."""


def rounds_psl(faulty: int, limit: int) -> int:  # noqa: ARG001 - the signature of `ROUNDS`
    """Return the rounds of PSL80: t + 1, however few are faulty."""
    return limit + 1


def rounds_gm(faulty: int, limit: int) -> int:
    """Return the rounds of GM98: min{f + 5, t + 1}."""
    return min(faulty + 5, limit + 1)


def rounds_early(faulty: int, limit: int) -> int:
    """Return the rounds of BGP92 and of Theorem 1, which no protocol beats: min{f + 2, t + 1}."""
    return min(faulty + 2, limit + 1)


ROUNDS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "psl": rounds_psl,
    "bgp": rounds_early,
    "gm": rounds_gm,
    "early": rounds_early,
}
"""By protocol: (processes that lie, processes that may) -> rounds until all correct ones decide."""
EXPONENTIAL: Final = ("psl", "bgp")
"""Protocols that send a whole tree of values."""


def values_sent(protocol: str, processes: int, rounds: int) -> float | None:
    """Return the values that a process sends to each other one until it decides; None for no printed number.

    Those of a whole tree of exponential information gathering; of polynomial protocols only the order is
    known, O(n^7) at most (Abraham and Dolev 2015, Lemma 6).
    """
    return float(sum(level_sizes(processes, rounds))) if protocol in EXPONENTIAL else None


def level_sizes(processes: int, depth: int) -> list[int]:
    """Return the nodes of a tree at levels 1 to `depth`: a node of level k has n - k children."""
    sizes = [processes]
    for level in range(1, depth):
        sizes.append(sizes[-1] * (processes - level))
    return sizes


def run(
    inputs: Sequence[int], faulty: frozenset[int], limit: int, adversary: Adversary, seed: int = 0
) -> dict[int, int]:
    """Return the decision of each correct process after t + 1 rounds of exponential information gathering.

    A process sends all values of the last level to each other one; a faulty one sends what `adversary` says,
    another value to each receiver. A node has the majority of its children's values, 0 for none.

    inputs  0 or 1, one of each process
    limit   t, so that the tree has t + 1 levels
    """
    random = np.random.default_rng(seed)
    count = len(inputs)
    trees: list[dict[Node, int]] = [{(): value} for value in inputs]
    for level in range(limit + 1):
        nodes = list(itertools.permutations(range(count), level))
        for node, sender in itertools.product(nodes, range(count)):
            if sender in node:
                continue
            for receiver in range(count):
                value = trees[sender][node]
                if sender in faulty:
                    value = _lie(adversary, value, receiver, count, random)
                trees[receiver][*node, sender] = value
    return {
        process: _resolve(trees[process], (), count, limit + 1)
        for process in range(count)
        if process not in faulty
    }


def _lie(adversary: Adversary, value: int, receiver: int, count: int, random: np.random.Generator) -> int:
    """Return the value that a faulty process sends in place of a true one; 0 for nothing."""
    if adversary == "random":
        return int(random.integers(2))
    if adversary == "split":
        return int(receiver >= count // 2)
    return value if receiver == 0 else 0


def _resolve(tree: dict[Node, int], node: Node, count: int, depth: int) -> int:
    """Return the value of a node: its own at the last level, else the majority of its children."""
    if len(node) == depth:
        return tree[node]
    children = [process for process in range(count) if process not in node]
    votes = Counter(_resolve(tree, (*node, child), count, depth) for child in children)
    return int(votes[1] > votes[0])


def is_agreement(inputs: Sequence[int], faulty: frozenset[int], decisions: dict[int, int]) -> bool:
    """Return whether all decide alike, and on the input where all correct processes have the same."""
    values = set(decisions.values())
    correct = {value for process, value in enumerate(inputs) if process not in faulty}
    return len(values) == 1 and (len(correct) > 1 or values == correct)


def find_disagreement(
    processes: int, limit: int, seeds: Sequence[int] = range(5)
) -> tuple[tuple[int, ...], frozenset[int]] | None:
    """Return inputs and faulty processes that break agreement among all of them; None for none.

    All inputs, all sets of t faulty processes and all adversaries are tried; random ones for each seed.
    """
    trials = [(name, seed) for name in ADVERSARIES for seed in (seeds if name == "random" else seeds[:1])]
    all_inputs = itertools.product((0, 1), repeat=processes)
    groups = itertools.combinations(range(processes), limit)
    for inputs, group, (adversary, seed) in itertools.product(all_inputs, groups, trials):
        faulty = frozenset(group)
        if not is_agreement(inputs, faulty, run(inputs, faulty, limit, adversary, seed)):
            return inputs, faulty
    return None


def monitor_parameters(limit: int, source: Literal["text", "algorithm"]) -> dict[int, int]:
    """Return the parameter of each monitor of the basic sequence by the round r = 1 + 4k that starts it.

    The text of section 4 prints t - 1 - 4k, which is t - r; Algorithm 1, line 2, prints t + 1 - r.
    """
    starts = range(1 + PERIOD, limit - 1, PERIOD)
    return {start: limit - start + (source == "algorithm") for start in starts}


def waste_of(corrupted: Sequence[int]) -> int:
    """Return the waste of rounds with these numbers of processes that become fully corrupt (section 5).

    Their sum, minus the number of rounds.
    """
    return sum(corrupted) - len(corrupted)


def known_faults(corrupted: Sequence[int], round_number: int) -> int:
    """Return the faults that all know in a round: those of three rounds before and earlier (Claim 2)."""
    return sum(corrupted[: max(round_number - 3, 0)])
