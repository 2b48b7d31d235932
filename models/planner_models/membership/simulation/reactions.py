"""Reactions of Albatross to failures that are injected (Leners et al. 2015, 5.2, 5.3, 6.2, 6.3 and Figure 6).

A client watches a target in a complete ternary tree of 13 switches. A failure takes some components away,
each monitor sees some of them, and the one that fires first decides the action. The components on their path
decide whether the client still hears the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

HEARTBEAT_S: Final = 0.01
NET_CHECK_S: Final = 1.0
"""Idle time after which a rule ends, the shortest of OpenFlow (6.2)."""
SPY_S: Final = 0.1
OPENFLOW_S: Final = 1.0
BACKSTOP_S: Final = 10.0
"""Assumed: the paper gives no time of its clients' end-to-end timeouts."""
ELECTION_S: Final = 1.0
SPIKE_S: Final = 2.0
RULE_S: Final = 0.001
BRANCHES: Final = 3
Alarm = tuple[float, str, str]
"""Seconds after the failure, monitor, action."""


@dataclass(kw_only=True)
class Testbed:
    """Components of the testbed that work; switches are numbered from the root, W of them.

    up          (W,) switches that are up
    forwards    (W,) switches that forward packets of the target
    answers     (W,) switches that answer the controller
    link_up     (W,) link of each switch to the one above it; the root's is unused
    reported    links that a switch reports as down though they are up
    spike_s     time for which packets are delayed
    """

    up: np.ndarray = field(default_factory=lambda: np.ones(13, dtype=bool))
    forwards: np.ndarray = field(default_factory=lambda: np.ones(13, dtype=bool))
    answers: np.ndarray = field(default_factory=lambda: np.ones(13, dtype=bool))
    link_up: np.ndarray = field(default_factory=lambda: np.ones(13, dtype=bool))
    reported: frozenset[int] = frozenset()
    host_up: bool = True
    module_up: bool = True
    process_up: bool = True
    leader_up: bool = True
    spike_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Reaction:
    """What is detected, when, and who makes it definitive.

    monitor  the monitor that fires first: link, openflow, host, spy, backstop; None: nothing is detected
    action   enforced by the manager's partitions, the manager's backstop, or the spy
    """

    monitor: str | None
    action: str | None
    after_s: float | None


def parent(switch: int) -> int:
    """Return the switch above one."""
    return (switch - 1) // BRANCHES


def path(first: int, last: int) -> tuple[list[int], list[int]]:
    """Return the switches and the links between two switches; a link has the number of its lower end."""
    links: list[int] = []
    switches = {first, last}
    while first != last:
        lower = max(first, last)
        links.append(lower)
        first, last = (parent(first), last) if lower == first else (first, parent(last))
        switches |= {first, last}
    return sorted(switches), links


def hears(bed: Testbed, client: int, target: int) -> bool:
    """Return whether packets of the target reach its client."""
    switches, links = path(client, target)
    network = bed.up[switches].all() and bed.forwards[switches].all() and bed.link_up[links].all()
    return bool(network and bed.host_up and bed.process_up)


def react(bed: Testbed, client: int, target: int, rng: np.random.Generator) -> Reaction:
    """Return the reaction to what is down in a testbed, with random phases of timers."""
    fired = [*_network_alarms(bed, client, target, rng), *_host_alarms(bed, rng)]
    if not hears(bed, client, target) or bed.spike_s > BACKSTOP_S:
        fired.append((BACKSTOP_S, "backstop", "backstop"))
    if not fired:
        return Reaction(monitor=None, action=None, after_s=None)
    after, monitor, action = min(fired)
    waits = 0.0 if bed.leader_up or action == "spy" else ELECTION_S * rng.uniform(0.5, 1.0)
    return Reaction(monitor=monitor, action=action, after_s=after + waits + RULE_S)


def _network_alarms(bed: Testbed, client: int, target: int, rng: np.random.Generator) -> Iterator[Alarm]:
    """Yield the alarms of links, also of those to a switch that is down, and of the controller (5.2, 6.2)."""
    switches, links = path(client, target)
    ends = np.array([bed.link_up[link] and bed.up[link] and bed.up[parent(link)] for link in links])
    if not ends.all() or bed.reported & set(links):
        yield RULE_S * rng.uniform(1, 2), "link", "partition"
    if not (bed.answers | ~bed.up)[switches].all():
        yield OPENFLOW_S * rng.uniform(0.9, 1.0), "openflow", "partition"


def _host_alarms(bed: Testbed, rng: np.random.Generator) -> Iterator[Alarm]:
    """Yield the alarms of a host: heartbeats of its module that end, and its spy (6.2, 6.3)."""
    is_watched = bed.host_up and bed.module_up
    if not is_watched:
        yield NET_CHECK_S - HEARTBEAT_S * rng.random(), "host", "partition"
    elif not bed.process_up:
        yield SPY_S * rng.random(), "spy", "spy"


CLIENT, TARGET = 4, 7
"""Switches of the client and of the target: leaves below different switches of the second level."""


def inject(name: str) -> Testbed:
    """Return the testbed after a failure of Figure 9."""
    bed = Testbed()
    INJECTIONS[name](bed)
    return bed


def _cut_link(bed: Testbed) -> None:
    bed.link_up[TARGET] = False


def _stop_switch(bed: Testbed) -> None:
    bed.up[parent(TARGET)] = False


def _misconfigure(bed: Testbed) -> None:
    bed.forwards[parent(TARGET)] = False


def _flood(bed: Testbed) -> None:
    bed.spike_s = SPIKE_S


def _drop_openflow(bed: Testbed) -> None:
    bed.answers[TARGET] = False


def _report_link(bed: Testbed) -> None:
    bed.reported = frozenset({TARGET})


def _stop_process(bed: Testbed) -> None:
    bed.process_up = False


def _stop_host(bed: Testbed) -> None:
    bed.host_up = bed.module_up = bed.process_up = False


def _stop_module(bed: Testbed) -> None:
    bed.module_up = bed.process_up = False


def _stop_leader(bed: Testbed) -> None:
    bed.leader_up = False
    _cut_link(bed)


INJECTIONS: Final[dict[str, Callable[[Testbed], None]]] = {
    "link": _cut_link,
    "switch": _stop_switch,
    "misconf": _misconfigure,
    "flood": _flood,
    "openflow": _drop_openflow,
    "spurious": _report_link,
    "process": _stop_process,
    "host": _stop_host,
    "module": _stop_module,
    "manager": _stop_leader,
}
"""Failures of Figure 9, by the names of its rows."""
PRINTED: Final[dict[str, tuple[str | None, str | None]]] = {
    "link": ("link", "partition"),
    "switch": ("link", "partition"),
    "misconf": ("backstop", "backstop"),
    "flood": (None, None),
    "openflow": ("openflow", "partition"),
    "spurious": ("link", "partition"),
    "process": ("spy", "spy"),
    "host": ("host", "partition"),
    "module": ("backstop", "partition"),
    "manager": ("link", "partition"),
}
"""Monitor and action of Figure 10, by the same names."""


def repeat(name: str, repetitions: int, seed: int = 0) -> list[Reaction]:
    """Return the reactions to some repetitions of a failure."""
    random = np.random.default_rng(seed)
    return [react(inject(name), CLIENT, TARGET, random) for _ in range(repetitions)]
