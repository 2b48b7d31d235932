"""Byzantine agreement with early stopping: protocol D of Abraham and Dolev (2015), sections 2 and 3.

A process gathers values in a tree IT: node (a, b) holds what b says that a said. It resolves nodes in a
second tree RT, whose values all correct processes share two rounds later, and closes resolved branches.

Readings of the rules, where the printed text is silent or contradicts its own theorems (`Rules` has both):

- IT-TO-RT also holds at the root, beside which no process w stands; otherwise no output comes in round 2.
- u supports w on (s, w, d) if u says that w said d, as for the other nodes of the same rules.
- In RT, as in IT, w may be among the n - t that are confirmed, by t + 1 children: its note needs it.
- EARLY-IT-TO-RT asks all n - r + 1 children, as its note says; with the printed n - r processes disagree.
- EARLY and STRONG-IT-TO-RT put the value on which the children agree, not that of the node, which one process
  alone may have heard otherwise.
- STRONG-IT-TO-RT asks for one value of all pairs, as its note says, not for equal values within each pair.
- STRONG-IT-TO-RT asks at the root for n - t processes that are not detected: RELAXED RULE, on which its note
  relies, does not hold there.
- NOT VOTER lowers its threshold by one below the first level, where one correct process of the sequence,
  not resolved yet, does not echo; with the printed threshold correct processes are detected as faulty.
- NOT IT-TO-RT skips branches that the process has closed, as it hears no voters there.
- NOT MASKING asks what is said of u (its note), and of messages of the current round.
- A process that is detected is masked from the messages of the current round on, as detection is repeated.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

Node = tuple[int, ...]
"""Processes through which a value came, without repetition."""
DEFAULT: Final = 0
"""The default decision, which the text writes as bottom."""


@dataclass(frozen=True)
class Rules:
    """Readings of the rules; True for this module's reading, False for the printed or narrower text."""

    resolves_root: bool = True
    asks_all_children: bool = True
    resolves_sender: bool = True
    needs_one_value: bool = True
    needs_quorum: bool = True
    spares_echoes: bool = True


USUAL: Final = Rules()


@dataclass
class Suspects:
    """Processes that a process has detected (F), and those that it knows all correct ones to have (FA)."""

    limit: int
    detected: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    lists: dict[int, frozenset[int]] = field(default_factory=dict)

    def update(self, received: Mapping[int, frozenset[int]]) -> None:
        """Add processes on t + 1 lists to those detected, and on 2t + 1 lists to those known."""
        self.lists.update(received)
        votes = Counter(process for listed in self.lists.values() for process in listed)
        self.known |= {process for process, count in votes.items() if count >= 2 * self.limit + 1}
        self.detected |= {process for process, count in votes.items() if count >= self.limit + 1}


class Protocol:
    """Protocol D of one process, with parameter phi: at most phi + 1 rounds."""

    def __init__(
        self,
        process: int,
        count: int,
        phi: int,
        initial: int,
        suspects: Suspects,
        rules: Rules = USUAL,
    ) -> None:
        self.process, self.count, self.phi = process, count, phi
        self.limit = suspects.limit
        self.suspects, self.rules = suspects, rules
        self.heard: dict[Node, int] = {(): initial}  # IT
        self.put: dict[Node, int] = {}  # RT, without the nodes that are coloured
        self.put_round: dict[Node, int] = {}
        self.below: Counter[Node] = Counter()  # nodes put below each node
        self.closed: set[Node] = set()
        self.levels: list[list[Node]] = [[()]]  # nodes of IT by level
        self.open: list[Node] = [()]
        self.round = 0
        self.output: int | None = None
        self.output_round: int | None = None
        self.stop_round: int | None = None
        self.unmasked: list[tuple[int, Node]] = []

    # Messages

    def send(self) -> dict[Node, int]:
        """Return the values that the process sends to all in the next round, by node."""
        if self.stop_round is not None:
            return {}
        return {node: self.heard[node] for node in self.open if self.process not in node}

    def receive(self, messages: Mapping[int, Mapping[Node, int]]) -> None:
        """Take the values of a round, by sender and node; a silent one repeats the values heard."""
        self.round += 1
        level = []
        for node in self.open:
            for sender in self.others(node):
                child = (*node, sender)
                if sender in self.suspects.detected:
                    value = DEFAULT
                else:
                    value = messages.get(sender, {}).get(node, self.heard[node])
                self.heard[child] = value
                level.append(child)
        self.levels.append(level)
        self.unmasked = []

    def others(self, node: Node) -> Iterator[int]:
        """Iterate over the processes that are not in a node's sequence."""
        return (process for process in range(self.count) if process not in node)

    # The tree RT

    def resolved(self, node: Node) -> int | None:
        """Return the value of a node in RT, that of the shortest prefix which is put; None for none."""
        for length in range(len(node) + 1):
            value = self.put.get(node[:length])
            if value is not None:
                return value
        return None

    def resolve(self, node: Node, value: int) -> bool:
        """Put a value into RT, which colours all nodes below; return whether the node had none."""
        if self.resolved(node) is not None:
            return False
        self.put[node] = value
        self.put_round[node] = self.round
        for length in range(len(node)):
            self.below[node[:length]] += 1
        return True

    # Votes in IT

    def has_voters(self, node: Node, value: int, *, confirmed: bool, needed: int) -> bool:
        """Return whether so many processes vote for a value of a node of IT (rules 1 to 5 of IT-to-RT).

        confirmed  False for voters of the usual grade-cast, whose echoers need no support
        """
        heard, others = self.heard, list(self.others(node))
        enough = self.count - self.limit
        is_sender = bool(node) and heard[node] == value
        echoers = [v for v in others if heard.get((*node, v)) == value]
        said = {v: {u for u in others if heard.get((*node, v, u)) == value} for v in others}
        for v in echoers:
            said[v].add(v)
        counted = [v for v in others if not confirmed or len(said[v]) + is_sender >= enough]
        counts = Counter(u for v in counted for u in said[v])
        if node and (is_sender or not confirmed):
            counts.update(echoers)  # they support the sender
        voters = sum(votes >= enough for votes in counts.values()) + (is_sender and confirmed)
        return voters >= needed

    def voted(self, node: Node) -> int | None:
        """Return the value for which n - t processes vote at a node of IT; None for none."""
        for value in self.values_near(node):
            if self.has_voters(node, value, confirmed=True, needed=self.count - self.limit):
                return value
        return None

    def values_near(self, node: Node) -> list[int]:
        """Return the values of a node of IT and of its children, ascending."""
        values = {self.heard.get((*node, child)) for child in self.others(node)} | {self.heard[node]}
        return sorted(value for value in values if value is not None)

    # Fault detection

    def detect(self) -> bool:
        """Apply the rules of fault detection once, and mask; return whether a process was added."""
        before = len(self.suspects.detected)
        self.mask()
        if self.round >= 2:
            self.detect_not_voter()
        if self.round >= 3:
            self.detect_not_resolved()
        if self.round >= 4:
            self.detect_not_masking()
        self.mask()
        return len(self.suspects.detected) > before

    def mask(self) -> None:
        """Set the messages of this round of processes that are detected to the default."""
        for node in self.levels[self.round]:
            if node[-1] in self.suspects.detected:
                self.heard[node] = DEFAULT

    def detect_not_voter(self) -> None:
        """Add processes with a message that n - t - 1 others do not echo in the next round."""
        for node in self.levels[self.round - 1]:
            sender = node[-1]
            if sender == self.process or sender in self.suspects.detected or self.resolved(node) is not None:
                continue
            if (*node, next(self.others(node))) not in self.heard:
                continue
            spared = self.rules.spares_echoes and len(node) > 1
            needed = self.count - self.limit - 1 - spared
            if sum(self.heard[(*node, u)] == self.heard[node] for u in self.others(node)) < needed:
                self.suspects.detected.add(sender)

    def detect_not_resolved(self) -> None:
        """Add those without n - t voters two rounds after their message."""
        for node in self.levels[self.round - 2]:
            sender = node[-1]
            if sender in {self.process} | self.suspects.detected or node in self.closed:
                continue
            if self.resolved(node[:-1]) is None and self.voted(node) is None:
                self.suspects.detected.add(sender)

    def detect_not_masking(self) -> None:
        """Mask the messages of those that should have masked a process, and note them."""
        current: dict[tuple[int, int], list[Node]] = {}
        for node in self.levels[self.round]:
            current.setdefault((node[-2], node[-1]), []).append(node)
        for node in self.levels[self.round - 3]:
            for witness in self.others(node):
                messages = [m for m in current.get((node[-1], witness), ()) if self.heard[m] != DEFAULT]
                if not messages or witness == self.process:
                    continue
                if self.should_mask(node, witness):
                    for message in messages:
                        self.heard[message] = DEFAULT
                        self.unmasked.append((witness, message[:-1]))

    def should_mask(self, node: Node, witness: int) -> bool:
        """Return whether a node leans towards a value while t + 1 say that a witness said another one."""
        said = Counter(self.heard.get((*node, witness, v)) for v in self.others((*node, witness)))
        told = {value for value, count in said.items() if value is not None and count > self.limit}
        return bool(told) and any(
            told - {value} and self.has_voters(node, value, confirmed=False, needed=self.limit + 1)
            for value in self.values_near(node)
        )

    # Resolve rules

    def finish_round(self) -> None:
        """Apply all rules until none holds, close branches, and see whether to output and to stop."""
        self.resolve_heard()
        is_changed = True
        while is_changed:
            is_changed = self.resolve_again()
            if self.round <= self.phi:
                is_changed |= self.resolve_early() | self.resolve_strong()
        for witness, node in self.unmasked:
            if self.resolved(node) is None:
                self.suspects.detected.add(witness)
        self.close_branches()
        if self.output is None and self.is_cut(()):
            root = self.resolved(())
            self.output = DEFAULT if root is None else root
            self.output_round = self.round
        if self.round == self.phi + 1 or not self.open:
            self.stop_round = self.round

    def resolve_heard(self) -> None:
        """Apply IT-TO-RT, and ROUND phi + 1 in the last round."""
        if self.round >= 2:
            for node in self.levels[self.round - 2]:
                if (node or self.rules.resolves_root) and self.resolved(node) is None:
                    value = self.voted(node)
                    if value is not None:
                        self.resolve(node, value)
        if self.round == self.phi + 1:
            for node in self.levels[self.round]:
                self.resolve(node, self.heard[node])

    def resolve_again(self) -> bool:
        """Apply the rules within RT to each node once; return whether one held."""
        nodes = [node for level in self.levels for node in level if self.below[node]]
        is_changed = False
        for rule in (self.find_resolved, self.find_relaxed):
            for node in reversed(nodes):
                if self.resolved(node) is None:
                    value = rule(node)
                    is_changed |= value is not None and self.resolve(node, value)
        for node in nodes:
            is_changed |= bool(node) and self.resolve_special(node)
        children = [self.resolved((child,)) for child in range(self.count)]
        if children.count(DEFAULT) > self.limit:
            is_changed |= self.resolve((), DEFAULT)
        return is_changed

    def find_resolved(self, node: Node) -> int | None:
        """Return the value of RESOLVE RULE: t + 1 voters in RT; None for none."""
        others = list(self.others(node))
        enough = self.count - self.limit
        said = {v: {u: self.resolved((*node, v, u)) for u in others if u != v} for v in others}
        values = sorted({x for row in said.values() for x in row.values() if x is not None})
        for value in values:
            confirmed = [v for v in others if list(said[v].values()).count(value) > self.limit]
            children = {u for u in others if self.resolved((*node, u)) == value}
            is_sender = bool(node) and self.rules.resolves_sender and len(children) > self.limit
            if len(confirmed) + is_sender < enough:
                continue
            voters = 0
            for u in others:
                votes = sum(said[v][u] == value for v in confirmed if v != u)
                votes += (u in children) * ((u in confirmed) + is_sender)
                voters += votes >= enough
            if voters > self.limit:
                return value
        return None

    def find_relaxed(self, node: Node) -> int | None:
        """Return the value of RELAXED RULE: n - t - 1 children, all of them resolved; None for none."""
        if not node:
            return None
        children = [self.resolved((*node, child)) for child in self.others(node)]
        if None in children:
            return None
        value, votes = Counter(children).most_common(1)[0]
        return value if votes >= self.count - self.limit - 1 else None

    def resolve_special(self, node: Node) -> bool:
        """Apply SPECIAL-BOT RULE to the last child of a node that is not resolved."""
        children = {child: self.resolved((*node, child)) for child in self.others(node)}
        missing = [child for child, value in children.items() if value is None]
        needed = self.limit + 1 - len(node)
        if len(missing) != 1 or needed < 1 or list(children.values()).count(DEFAULT) < needed:
            return False
        return self.resolve((*node, missing[0]), DEFAULT)

    # Closing of branches

    def trusted(self, node: Node) -> list[int]:
        """Return the processes after a node that are not detected."""
        return [child for child in self.others(node) if child not in self.suspects.detected]

    def close(self, node: Node, value: int) -> bool:
        """Close a branch with children that agree on a value; return whether it was not resolved."""
        self.closed.add(node)
        return self.resolve(node, value)

    def resolve_early(self) -> bool:
        """Apply EARLY-IT-TO-RT RULE to nodes of the round before; return whether one is resolved."""
        is_changed = False
        for node in self.levels[self.round - 1]:
            children = self.trusted(node)
            if node in self.closed or (*node, next(self.others(node))) not in self.heard:
                continue
            votes = Counter(self.heard[(*node, child)] for child in children)
            value, agreeing = votes.most_common(1)[0] if votes else (DEFAULT, 0)
            if len(children) - agreeing <= (not self.rules.asks_all_children):
                is_changed |= self.close(node, value)
        return is_changed

    def resolve_strong(self) -> bool:
        """Apply STRONG-IT-TO-RT RULE to nodes of two rounds before; return whether one is resolved."""
        is_changed = False
        for node in self.levels[self.round - 2] if self.round >= 2 else ():
            if node in self.closed:
                continue
            value = self.find_common(node)
            if value is not None:
                is_changed |= self.close(node, value)
        return is_changed

    def find_common(self, node: Node) -> int | None:
        """Return the value that trusted children but one at most say in pairs of each other, or None."""
        trusted = self.trusted(node)
        said = {(u, v): self.heard.get((*node, u, v)) for u, v in itertools.permutations(trusted, 2)}
        if not said or None in said.values():
            return None
        counted = Counter(said.values()).most_common()
        values = [value for value, _ in counted if value is not None][
            : 1 if self.rules.needs_one_value else None
        ]
        odd = [
            (u, v)
            for u, v in itertools.combinations(trusted, 2)
            if said[u, v] != said[v, u] or said[u, v] not in values
        ]
        agreeing = len(trusted) - bool(odd)
        if odd and not any(all(child in pair for pair in odd) for child in odd[0]):
            return None
        if self.rules.needs_quorum and not node and agreeing < self.count - self.limit:
            return None
        return values[0]

    def close_branches(self) -> None:
        """Leave open nodes without a prefix that is closed, or was resolved before (DECAY RULE)."""
        if self.round <= self.phi:
            self.closed |= {node for node, number in self.put_round.items() if number < self.round}
        self.open = [
            node
            for node in self.levels[self.round]
            if not any(node[:length] in self.closed for length in range(len(node) + 1))
        ]

    def is_cut(self, node: Node) -> bool:
        """Return whether each sequence of phi + 1 processes behind a node has a prefix in RT."""
        if self.resolved(node) is not None:
            return True
        if len(node) > self.phi or not self.below[node]:
            return False
        return all(self.is_cut((*node, child)) for child in self.others(node))
