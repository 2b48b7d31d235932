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
BISECTIONS: Final = 40
"""Halvings of the interval of a price of rules."""
MARGIN: Final = 1e-9
"""Relative distance of bounds that is rounding."""


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

    Exact for each switch: a price of rules gives a lower and an upper bound, choices that cost more than
    their distance are dropped, and dynamic programming over the capacity selects among the others. A switch
    for which no rules fit is excluded whole: its ports have -1.
    """
    beside = ports.beside()
    by, lower, upper, price = _relax_capacities(ports, beside)
    order = np.argsort(ports.switch, kind="stable")
    starts = np.searchsorted(ports.switch[order], np.arange(len(ports.capacity) + 1))
    priced = beside + price[ports.switch, None] * ports.rules
    extra = priced - priced.min(axis=1, keepdims=True)
    slack = np.where(np.isfinite(upper), upper, 0.0) - np.where(np.isfinite(upper), lower, 0.0)
    slack += MARGIN * (np.abs(upper) + price * ports.capacity)
    may_be = extra <= slack[ports.switch, None]
    for switch in np.flatnonzero(np.isfinite(upper) & (upper > lower)).tolist():
        rows = order[starts[switch] : starts[switch + 1]]
        is_open = may_be[rows].sum(axis=1) > 1
        fixed, free = rows[~is_open], rows[is_open]
        by[fixed] = may_be[fixed].argmax(axis=1)
        capacity = int(ports.capacity[switch]) - int(ports.rules[fixed, by[fixed]].sum())
        cost = np.where(may_be[free], beside[free], np.inf)
        by[free] = select_granularities(ports.rules[free], cost, capacity)
    return by


def _relax_capacities(ports: BorderPorts, beside: Floats) -> tuple[Ints, Floats, Floats, Floats]:
    """Return choices that fit, (P,), with bounds of the processes cut beside at each switch, and its price.

    Lagrangian relaxation: a price of each rule of a switch, by bisection, at which the best choices just fit.
    The lower bounds, (W,), hold for all choices that fit; the upper ones, (W,), are those of the choices
    returned. A switch for which no rules fit has choices of -1 and infinite bounds.
    """
    switch, capacity, width = ports.switch, ports.capacity.astype(float), len(ports.capacity)
    rows = np.arange(len(switch))

    def choose(price: Floats) -> tuple[Ints, Floats]:
        by = (beside + price[switch, None] * ports.rules).argmin(axis=1)
        return by, np.bincount(switch, ports.rules[rows, by], minlength=width).astype(float)

    low, by_fewest = np.zeros(width), ports.rules.argmin(axis=1)
    fewest = np.bincount(switch, ports.rules[rows, by_fewest], minlength=width)
    high = np.full(width, beside.max(initial=0.0) + 1.0)  # one rule fewer is worth more than any choice
    by, used = choose(low)
    by = np.where((used <= capacity)[switch], by, by_fewest)
    high = np.where(used <= capacity, 0.0, high)
    for _ in range(BISECTIONS):
        price = (low + high) / 2
        trial, used = choose(price)
        is_within = (used <= capacity) & (high > 0)
        by = np.where(is_within[switch], trial, by)
        low, high = np.where(is_within | (high == 0), low, price), np.where(is_within, price, high)
    total = np.bincount(switch, (beside + high[switch, None] * ports.rules).min(axis=1), minlength=width)
    upper = np.bincount(switch, beside[rows, by], minlength=width)
    fits = fewest <= capacity
    lower = np.where(fits, np.where(high > 0, total - high * capacity, upper), np.inf)
    return np.where(fits[switch], by, -1), lower, np.where(fits, upper, np.inf), high


def select_granularities(rules: Ints, cost: Floats, capacity: int) -> Ints:
    """Return the choice of each port, (P,), of least cost in all within a capacity; -1 where none fits.

    rules, cost  (P, K) of each choice
    """
    cheapest = cost.argmin(axis=1)
    if rules[np.arange(len(rules)), cheapest].sum() <= capacity:
        return np.asarray(cheapest, dtype=np.int64)
    if rules.min(axis=1).sum() > capacity:
        return np.full(len(rules), -1, dtype=np.int64)
    best = np.full((len(rules) + 1, capacity + 1), np.inf)
    best[0] = 0.0
    for row in range(len(rules)):
        for used, added in zip(rules[row].tolist(), cost[row].tolist(), strict=True):
            if used <= capacity and added < np.inf:
                extended = best[row, : capacity + 1 - used] + added
                np.minimum(best[row + 1, used:], extended, out=best[row + 1, used:])
    selected = np.empty(len(rules), dtype=np.int64)
    remaining = capacity
    for row in range(len(rules) - 1, -1, -1):
        before = np.maximum(remaining - rules[row], 0)
        total = np.where(rules[row] <= remaining, best[row, before] + cost[row], np.inf)
        selected[row] = total.argmin()
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
