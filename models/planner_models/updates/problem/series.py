"""Series of problems: a week of changes of a network, each from where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats
from planner.contract.parameters import spread
from planner_models.updates.problem import generators
from planner_models.updates.problem.networks import Network, is_between, read_network
from planner_models.updates.problem.problem import Update

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MINUTES_PER_DAY: Final = 1440

Changes = Annotated[int, Field(ge=1, le=2000, description="changes of the network in the week")]
Part = Annotated[
    float, Field(ge=0, le=1, description="part of the links that new weights change, by a factor of 3 or 0.3")
]
Work = Annotated[
    float,
    Field(ge=0, le=1, description="part of the changes in which a link goes out of service or comes back"),
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Week:
    """Updates of one network between consecutive sets of weights of its links.

    weights   (K + 1, E) weights before the first change and after each
    labels    (K,) day and time of each change, such as `Tue 14h05`
    Tables and links are as large as the largest state of the week needs, and some more, all week.
    """

    network: Network
    weights: Floats
    labels: tuple[str, ...]
    selection: generators.Selection
    margins: generators.Margins

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[tuple[str, Update]]:
        made = [self._change(number) for number in range(len(self))]
        switches, links = made[0].switches, made[0].links
        headroom, slack = self.margins.headroom, self.margins.slack
        if headroom is not None:
            held = np.max([np.maximum(update.rules_now, update.rules_next) for update in made], axis=0)
            switches = switches.assign(rule_capacity=np.floor(held * (1 + headroom) + 1e-9))
        if slack is not None:
            load = np.max([np.maximum(*update.link_loads) for update in made], axis=0)
            idle = max(float(load.max(initial=0.0)), 1.0)
            capacity = np.where(load > 0, load * (1 + slack), idle)
            links = links.assign(capacity_mbps=np.round(np.maximum(capacity, 1e-6), 9))
        for label, update in zip(self.labels, made, strict=True):
            yield label, replace(update, switches=switches, links=links)

    def _change(self, number: int) -> Update:
        before, after = self.weights[number], self.weights[number + 1]
        return generators.between_weights(
            self.network, before, after, self.selection, generators.Extras(), np.random.default_rng(0)
        )


@spread(selection=generators.Selection(), margins=generators.Margins())
def week(
    *,
    name: generators.Name = "sndlib/germany50",
    changes: Changes = 50,
    selection: generators.Selection,
    part: Part = 0.1,
    work: Work = 0.5,
    margins: generators.Margins,
    seed: generators.Seed = 1,
) -> Week:
    """Change a network many times in a week: new weights, and links that go out of service and come back."""
    network = read_network(name, seed, selection.nodes, selection.demands)
    random = np.random.default_rng(seed)
    weights, weight = [network.weight], network.weight
    out: int | None = None
    for _ in range(changes):
        if random.random() < work:
            if out is None:
                out = int(random.integers(len(network.tail)))
                weight = np.where(_both_ways(network, out), weight * generators.AVOIDED, weight)
            else:
                weight = np.where(_both_ways(network, out), weight / generators.AVOIDED, weight)
                out = None
        else:
            weight = generators.change_weights(weight, random, part / 2, part / 2)
        weights.append(weight)
    minutes = np.sort(random.choice(7 * MINUTES_PER_DAY, size=changes, replace=False))
    return Week(
        network=network,
        weights=np.array(weights),
        labels=tuple(_name_minute(int(minute)) for minute in minutes),
        selection=selection,
        margins=margins,
    )


def _both_ways(network: Network, link: int) -> Bools:
    return is_between(network, int(network.tail[link]), int(network.head[link]))


def _name_minute(minute: int) -> str:
    day, minute_of_day = divmod(minute, MINUTES_PER_DAY)
    return f"{day + 1} {DAYS[day]} {minute_of_day // 60:02d}h{minute_of_day % 60:02d}"
