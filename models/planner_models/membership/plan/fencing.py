"""Fences: rules at the ports of switches that stop the traffic of processes that are reported as down.

A port is fenced by process, application or epoch. Finer rules are more, coarser ones also cut processes that
work (Leners et al. 2015, 5.2, 5.3 and 7.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.membership.problem.schema import EXCLUDED, GRANULARITIES

BY_PROCESS, BY_APPLICATION, BY_EPOCH = range(3)


@dataclass(frozen=True, kw_only=True, eq=False)
class BorderPorts:
    """Ports of switches with the processes behind them, P ports of W switches.

    switch     (P,) number of the switch of each port
    is_host    (P,) whether an end-host is behind the port, not a switch
    rules      (P, 3) rules that fence it by process, application and epoch
    processes  (P,) processes behind it
    capacity   (W,) rules that a switch can hold
    rule_ms    (W,) time that a switch takes for a rule, ms
    """

    switch: Ints
    is_host: np.ndarray
    rules: Ints
    processes: Floats
    capacity: Ints
    rule_ms: Floats

    def beside(self) -> Floats:
        """Return the processes that a rule cuts beside a suspected one, in the mean, (P, 3).

        A rule of an application cuts all processes of it behind the port, a rule of an epoch all of that.
        """
        each = self.processes[:, None] / np.maximum(self.rules, 1)
        return np.asarray(np.maximum(each - 1.0, 0.0))

    def excluded_beside(self) -> Floats:
        """Return the same where the whole switch of a port is excluded, (P,): all processes behind it."""
        behind = np.bincount(self.switch, weights=self.processes, minlength=len(self.capacity))
        return np.asarray(np.maximum(behind[self.switch] - 1.0, 0.0))


def fence_by_kind(ports: BorderPorts) -> Ints:
    """Return the granularity of each port in Albatross, (P,): applications to end-hosts, epochs to switches.

    A switch whose rules do not fit refuses them, and is excluded whole: its ports have -1.
    """
    by = np.where(ports.is_host, BY_APPLICATION, BY_EPOCH)
    rules = ports.rules[np.arange(len(by)), by]
    used = np.bincount(ports.switch, weights=rules, minlength=len(ports.capacity))
    return np.where((used > ports.capacity)[ports.switch], -1, by)


def fence_planned(ports: BorderPorts) -> Ints:
    """Return the granularity of each port that cuts the fewest processes beside suspected ones, (P,).

    Exact for each switch by dynamic programming over its capacity. A switch for which no rules fit is
    excluded whole: its ports have -1.
    """
    by = np.full(len(ports.switch), -1, dtype=np.int64)
    beside = ports.beside()
    order = np.argsort(ports.switch, kind="stable")
    starts = np.searchsorted(ports.switch[order], np.arange(len(ports.capacity) + 1))
    for switch, capacity in enumerate(ports.capacity.tolist()):
        rows = order[starts[switch] : starts[switch + 1]]
        if len(rows):
            by[rows] = select_granularities(ports.rules[rows], beside[rows], int(capacity))
    return by


def select_granularities(rules: Ints, cost: Floats, capacity: int) -> Ints:
    """Return the choice of each port, (P,), of least cost in all within a capacity; -1 where none fits.

    rules, cost  (P, K) of each choice
    """
    cheapest = cost.argmin(axis=1)
    if rules[np.arange(len(rules)), cheapest].sum() <= capacity:
        return np.asarray(cheapest, dtype=np.int64)
    if rules.min(axis=1).sum() > capacity:
        return np.full(len(rules), -1, dtype=np.int64)
    best = np.zeros(capacity + 1)
    choices = np.zeros((len(rules), capacity + 1), dtype=np.int8)
    trial = np.empty((rules.shape[1], capacity + 1))
    for row in range(len(rules)):
        trial[:] = np.inf
        for choice, used in enumerate(rules[row].tolist()):
            if used <= capacity:
                trial[choice, used:] = best[: capacity + 1 - used] + cost[row, choice]
        choices[row] = trial.argmin(axis=0)
        best = trial.min(axis=0)
    selected = np.empty(len(rules), dtype=np.int64)
    remaining = capacity
    for row in range(len(rules) - 1, -1, -1):
        selected[row] = choices[row, remaining]
        remaining -= int(rules[row, selected[row]])
    return selected


def rules_of(ports: BorderPorts, by: Ints) -> Floats:
    """Return the rules of each port, (P,); 0 where the switch is excluded."""
    rows = np.arange(len(by))
    return np.where(by >= 0, ports.rules[rows, np.maximum(by, 0)], 0).astype(float)


def beside_of(ports: BorderPorts, by: Ints) -> Floats:
    """Return the processes that the fence of each port cuts beside a suspected one, (P,)."""
    rows = np.arange(len(by))
    return np.where(by >= 0, ports.beside()[rows, np.maximum(by, 0)], ports.excluded_beside())


def granularity_name(by: int) -> str:
    """Return the word for the granularity of a port."""
    return EXCLUDED if by < 0 else GRANULARITIES[by]


# --- the manager's procedure, step by step ---------------------------------------------------

Install = Callable[[str, str], bool]
"""(switch, rule) -> whether the switch takes the rule."""


@dataclass(kw_only=True)
class Manager:
    """The manager's state of epochs while it enforces a partition (Leners et al. 2015, Figure 5).

    active   epochs in use; `current` is the one in which processes register
    unused   epochs that are free
    """

    active: list[int]
    unused: list[int]
    current: int
    rules: list[tuple[str, str]] = field(default_factory=list)
    calls: int = 0

    def enforce_as_printed(
        self, border: Mapping[str, Sequence[str]], excluded: set[str], install: Install
    ) -> bool:
        """Run `enforce_partition` as Figure 5 prints it: true only for a partition without ports.

        The new epoch is taken inside the loop over ports, and `return false` ends its first turn.

        border  switch.port -> applications behind it; none where another switch is behind it
        raises  IndexError where no epoch is free, for which the figure has no answer
        """
        for port, applications in border.items():
            self.calls += 1
            switch = port.split(".")[0]
            if not self._cut(port, applications, install):
                excluded.add(switch)
            elif not applications:
                self._take_epoch()
            return False
        return True

    def enforce(self, border: Mapping[str, Sequence[str]], excluded: set[str], install: Install) -> bool:
        """Enforce a partition at all ports; false where a switch refused a rule and is excluded instead.

        One epoch is taken, after the last fence stands.

        raises  IndexError where no epoch is free
        """
        self.calls += 1
        if not all(border.values()) and not self.unused:
            raise IndexError("no epoch is free: processes that register later would be cut too")
        for port, applications in border.items():
            if not self._cut(port, applications, install):
                excluded.add(port.split(".")[0])
                return False
        if not all(border.values()):
            self._take_epoch()
        return True

    def _cut(self, port: str, applications: Sequence[str], install: Install) -> bool:
        """Install the rules of a port; false where its switch refuses one."""
        switch = port.split(".")[0]
        names = applications or [f"epoch {epoch}" for epoch in self.active]
        for name in names:
            if not install(switch, f"{port} {name}"):
                return False
            self.rules.append((port, name))
        return True

    def _take_epoch(self) -> None:
        self.current = self.unused.pop(0)
        self.active.append(self.current)


ENDLESS: Final = 1_000
"""Calls after which a procedure that never returns true is ended."""
