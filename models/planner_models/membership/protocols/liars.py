"""Runs of the early-stopping protocol beside processes that lie: adversaries and outcomes.

A liar follows the protocol up to a round, and from then on changes what it sends, another value to each
receiver; it also accuses correct processes. Liars that say nothing until the end are one case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from planner_models.membership.protocols.early_stopping import DEFAULT, USUAL, Node, Protocol, Rules, Suspects

Lie = Callable[[int, int, int, Node, int], int | None]
"""(round, sender, receiver, node, true value) -> the value that is sent; None for none."""
Kind = Literal["honest", "random", "split", "victim", "default", "silent", "noise"]
KINDS: Final[tuple[Kind, ...]] = ("honest", "random", "split", "victim", "default", "silent", "noise")


@dataclass(frozen=True)
class Outcome:
    """Outcome of a run of one protocol, of correct processes only.

    output        value by process
    output_round  round at whose end it was output
    stop_round    round at whose end the process stopped
    values        values sent by correct processes, each to n - 1 others
    suspected     correct processes that a correct one detected as faulty
    """

    output: dict[int, int | None]
    output_round: dict[int, int]
    stop_round: dict[int, int]
    values: int
    suspected: set[int] = field(default_factory=set)


def draw_lie(kind: Kind, values: Sequence[int], count: int, start: int, random: np.random.Generator) -> Lie:
    """Return a way to lie from round `start` on.

    honest   as the protocol says
    random   another value or none to each receiver and for each node
    split    one value to half of the receivers, and another one to the others
    victim   a wrong value to one receiver alone
    default  the default value
    silent   nothing
    noise    a random value in one of four messages
    """
    victim, cut = int(random.integers(count)), int(random.integers(1, count))
    first, second = (int(random.choice(values)) for _ in range(2))

    def lie(round_number: int, _sender: int, receiver: int, _node: Node, value: int) -> int | None:
        is_told = kind == "honest" or (kind == "victim" and receiver != victim)
        if round_number < start or is_told or (kind == "noise" and random.random() < 0.75):
            return value
        if kind in {"random", "noise"}:
            index = int(random.integers(len(values) + 1))
            return None if index == len(values) else values[index]
        return {"split": first if receiver < cut else second, "default": DEFAULT, "victim": first}.get(kind)

    return lie


def run(
    inputs: Sequence[int],
    liars: Mapping[int, Lie],
    limit: int,
    *,
    phi: int | None = None,
    known: frozenset[int] = frozenset(),
    accused: Mapping[int, frozenset[int]] | None = None,
    rules: Rules = USUAL,
) -> Outcome:
    """Run the protocol until all correct processes stop.

    inputs   value of each process, the default or another one
    liars    the processes that lie, and how
    phi      parameter of the protocol; None for t, the limit
    known    faulty processes that all correct ones know at the start, and that stay silent
    accused  processes that liars put on their lists of faulty ones
    """
    count, depth = len(inputs), limit if phi is None else phi
    suspects = [Suspects(limit, set(known), set(known)) for _ in inputs]
    protocols = [Protocol(z, count, depth, inputs[z], suspects[z], rules) for z in range(count)]
    correct = [z for z in range(count) if z not in liars and z not in known]
    active = [z for z in range(count) if z not in known]
    values = 0
    for round_number in range(1, depth + 2):
        sent = {z: protocols[z].send() for z in active}
        lists = {z: frozenset(suspects[z].detected) for z in active if protocols[z].stop_round is None}
        lists |= {z: (accused or {}).get(z, frozenset()) for z in liars}
        values += sum(len(sent[z]) * (count - 1) for z in correct)
        for z in active:
            if protocols[z].stop_round is not None:
                continue
            messages = {
                sender: change_messages(liars.get(sender), sent[sender], round_number, sender, z)
                for sender in active
            }
            suspects[z].update(lists)
            protocols[z].receive(messages)
            while protocols[z].detect():
                pass
            protocols[z].finish_round()
    return Outcome(
        output={z: protocols[z].output for z in correct},
        output_round={z: protocols[z].output_round or depth + 2 for z in correct},
        stop_round={z: protocols[z].stop_round or depth + 2 for z in correct},
        values=values,
        suspected={q for z in correct for q in suspects[z].detected} & set(correct),
    )


def change_messages(
    lie: Lie | None, sent: Mapping[Node, int], round_number: int, sender: int, receiver: int
) -> Mapping[Node, int]:
    """Return the value that a receiver gets in place of the true one; a process tells itself the truth."""
    if lie is None or sender == receiver:
        return sent
    changed = {node: lie(round_number, sender, receiver, node, value) for node, value in sent.items()}
    return {node: value for node, value in changed.items() if value is not None}
