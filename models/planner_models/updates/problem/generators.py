"""Presets: updates of real networks by new weights, maintenance, failure or policy, and made-up ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner_models.updates.problem.networks import (
    Demands,
    Forwarding,
    Network,
    find_next_hops,
    is_between,
    read_network,
    rules_of_pairs,
    rules_to,
    tabulate,
)
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import PER_FLOW, PER_PACKET, WAYPOINT

AVOIDED: Final = 1e6  # what weights of links that the next paths avoid are multiplied by

Name = Annotated[str, Field(description="name of the network in topohub, such as sndlib/germany50")]
Kind = Annotated[
    Literal["destinations", "pairs"],
    Field(description="destinations: one class for all packets to a switch; pairs: one for each pair"),
]
Count = Annotated[
    int | None,
    Field(ge=1, le=10**7, description="classes: the destinations or pairs with most traffic; default: all"),
]
DemandKind = Annotated[
    Demands,
    Field(
        description="given: the network's own demands; gravity: synthetic ones of all pairs; auto: given "
        "where there are any"
    ),
]
Headroom = Annotated[
    float | None,
    Field(
        ge=0,
        allow_inf_nan=False,
        description="space of tables beyond the larger of before and after, as a part of it; none: no limit",
    ),
]
Slack = Annotated[
    float | None,
    Field(
        ge=0,
        allow_inf_nan=False,
        description="capacity of links beyond the larger load of before and after, as a part of it; none: no "
        "limit",
    ),
]
Spread = Annotated[
    float,
    Field(ge=0, le=3, description="standard deviation of the logarithm of the switches' time for a rule"),
]
Seed = Annotated[int, Field(ge=0, description="seed of random numbers")]
GuaranteeName = Annotated[
    Literal["", "none", "no_loop", "no_black_hole", "per_packet"],
    Field(description="guarantee of every class; blank: no loops and no lost packets"),
]
SwitchName = Annotated[
    str | None, Field(description="the switch that is emptied; default: the one that most paths pass")
]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Classes of a real network, and the demands that give them traffic."""

    classes: Kind = "destinations"
    demands: DemandKind = "auto"
    count: Count = None

    @property
    def nodes(self) -> int | None:
        """Nodes with demands at most; None for all, where every pair is a class."""
        return None if self.classes == "pairs" else 1000


@dataclass(frozen=True, kw_only=True)
class Margins:
    """Space of tables and links beyond what the update needs."""

    headroom: Headroom = None
    slack: Slack = None


@dataclass(frozen=True, kw_only=True)
class Extras(Margins):
    """Sizes, times and guarantees of a made update, and the seed of what is random."""

    rule_ms_spread: Spread = 0.0
    guarantee: GuaranteeName = ""
    seed: Seed = 1


@spread(selection=Selection(), extras=Extras())
def reweigh(
    *,
    name: Name = "sndlib/germany50",
    selection: Selection,
    metric: Annotated[
        Literal["distance", "hops"], Field(description="weight of a link before the update: its length, or 1")
    ] = "distance",
    raised: Annotated[
        float, Field(ge=0, le=1, description="part of the links whose weight is multiplied by 3")
    ] = 0.25,
    lowered: Annotated[
        float, Field(ge=0, le=1, description="part of the links whose weight is multiplied by 0.3")
    ] = 0.25,
    extras: Extras,
) -> Update:
    """Change the weights of random links of a network: shortest paths before and after."""
    if raised + lowered > 1:
        raise InputError("raised and lowered: add up to more than 1")
    network = read_network(name, extras.seed, selection.nodes, selection.demands, metric)
    random = np.random.default_rng(extras.seed)
    weight = change_weights(network.weight, random, raised, lowered)
    return between_weights(network, network.weight, weight, selection, extras, random)


@spread(selection=Selection(), extras=Extras())
def maintenance(
    *, name: Name = "sndlib/germany50", selection: Selection, switch: SwitchName = None, extras: Extras
) -> Update:
    """Empty a switch of packets that only pass it, before work on it."""
    network = read_network(name, extras.seed, selection.nodes, selection.demands)
    if switch is None:
        every = np.arange(len(network.names))
        hops = find_next_hops(network, network.weight, every)
        passing = np.bincount(hops[hops >= 0], minlength=len(every))
        switch_row = int(passing.argmax())
    elif switch in network.names:
        switch_row = network.names.index(switch)
    else:
        raise InputError(f"switch: '{switch}' is no switch of {name}" + did_you_mean(switch, network.names))
    touches = (network.tail == switch_row) | (network.head == switch_row)
    weight = np.where(touches, network.weight * AVOIDED, network.weight)
    random = np.random.default_rng(extras.seed)
    return between_weights(network, network.weight, weight, selection, extras, random)


@spread(selection=Selection(), extras=Extras())
def failure(
    *,
    name: Name = "sndlib/germany50",
    selection: Selection,
    link: Annotated[
        tuple[str, str] | None,
        Field(description="ends of the link whose traffic moves; default: the one on most paths"),
    ] = None,
    extras: Extras,
) -> Update:
    """Move all packets off a link that fails or is taken out of service, and is protected until then."""
    network = read_network(name, extras.seed, selection.nodes, selection.demands)
    if link is None:
        every = np.arange(len(network.names))
        hops = find_next_hops(network, network.weight, every)
        target, node = np.nonzero(hops >= 0)
        key, uses = np.unique(node * len(every) + hops[target, node], return_counts=True)
        ends = divmod(int(key[uses.argmax()]), len(every))
    else:
        for end in link:
            if end not in network.names:
                raise InputError(f"link: '{end}' is no switch of {name}" + did_you_mean(end, network.names))
        ends = network.names.index(link[0]), network.names.index(link[1])
        if not is_between(network, *ends).any():
            raise InputError(f"link: there is none between '{link[0]}' and '{link[1]}' in {name}")
    weight = np.where(is_between(network, *ends), network.weight * AVOIDED, network.weight)
    random = np.random.default_rng(extras.seed)
    return between_weights(network, network.weight, weight, selection, extras, random)


def policy(
    *,
    name: Name = "sndlib/germany50",
    count: Count = 300,
    firewall: Annotated[
        str | None, Field(description="switch with the firewall; default: the one with most links")
    ] = None,
    headroom: Headroom = None,
    seed: Seed = 1,
) -> Update:
    """Add classes, end others, and send a part of the rest through a new firewall."""
    network = read_network(name, seed, None)
    random = np.random.default_rng(seed)
    source, target = network.source[:count], network.target[:count]
    if firewall is not None and firewall not in network.names:
        raise InputError(
            f"firewall: '{firewall}' is no switch of {name}" + did_you_mean(firewall, network.names)
        )
    degree = np.bincount(network.tail, minlength=len(network.names))
    wall = int(degree.argmax()) if firewall is None else network.names.index(firewall)
    every = np.arange(len(network.names))
    hops = find_next_hops(network, network.weight, every)
    paths = [_walk(hops, int(a), int(b)) for a, b in zip(source, target, strict=True)]
    now: list[list[int] | None] = []
    after: list[list[int] | None] = []
    asks, ways = [], []
    for path in paths:
        before, then, passes = _change_policy(path, wall, hops, kind=int(random.integers(4)))
        now.append(before)
        after.append(then)
        asks.append(PER_PACKET)
        ways.append(network.names[wall] if passes else "")
    names = _name_pairs(network, source, target)
    table = pd.DataFrame(
        {
            "class": names,
            "ingress": [network.names[node] for node in source],
            "egress": [network.names[node] for node in target],
            "traffic_mbps": np.round(network.rate_mbps[:count], 4),
            "waypoints": ways,
            "guarantee": asks,
        }
    )
    return make_update(network, table, _rules_of(now), _rules_of(after), Extras(headroom=headroom), random)


def _change_policy(
    path: list[int], wall: int, hops: Ints, *, kind: int
) -> tuple[list[int] | None, list[int] | None, bool]:
    """Return the path of a class now and after a change, None for none, and whether it is sent to a firewall.

    kind  0: the class is added, 1: it ends, 2: it goes through the firewall, where it can; else it stays
    """
    through = _walk(hops, path[0], wall)[:-1] + _walk(hops, wall, path[-1])
    if kind == 0:
        return None, path, False
    if kind == 1:
        return path, None, False
    passes = kind == 2 and wall not in path and len(set(through)) == len(through)
    return path, through if passes else path, passes


def zigzag(
    *,
    switches: Annotated[int, Field(ge=3, le=5000, description="switches on the path")] = 100,
    first_only: Annotated[
        bool, Field(description="whether packets enter at the first switch only, not at all of them")
    ] = False,
    headroom: Headroom = None,
) -> Update:
    """Turn a line around, so that each switch must wait for the one before it.

    The present path passes all switches in order; the next one leaves from the first, and all others send
    back."""
    names = [f"s{number + 1}" for number in range(switches)]
    last = switches - 1
    forward = [(node, node + 1) for node in range(last)]
    back = [(node, node - 1) for node in range(1, last)]
    ends = sorted({*forward, *back, (0, last)})
    tail, head = (np.array(nodes, dtype=np.int64) for nodes in zip(*ends, strict=True))
    network = _plain(names, tail, head)
    switch = np.arange(last)
    now = Forwarding(np.zeros(last, np.int64), switch, switch + 1, np.ones(last))
    after = Forwarding(
        np.zeros(last, np.int64), switch, np.r_[last, switch[1:] - 1].astype(np.int64), np.ones(last)
    )
    table = pd.DataFrame({"class": [f"to {names[-1]}"], "egress": [names[-1]], "traffic_mbps": [0.0]})
    if first_only:
        table["ingress"] = names[0]
    return make_update(network, table, now, after, Extras(headroom=headroom), np.random.default_rng(0))


def server_move(
    *,
    ingresses: Annotated[int, Field(ge=1, le=1000, description="switches where clients enter")] = 8,
    flows: Annotated[int, Field(ge=1, le=10**9, description="flows at a time, of all ingresses")] = 10_000,
    flow_life_s: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="mean life of a flow, s")
    ] = 10.0,
    headroom: Headroom = None,
    seed: Seed = 1,
) -> Update:
    """Move clients from one replica of a server to another; a flow must reach one replica only."""
    names = [*(f"edge{number + 1}" for number in range(ingresses)), "core1", "core2", "old", "new", "service"]
    core1, core2, old, new, service = range(ingresses, ingresses + 5)
    links = [(edge, core) for edge in range(ingresses) for core in (core1, core2)]
    links += [(core, server) for core in (core1, core2) for server in (old, new)]
    links += [(old, service), (new, service)]
    tail, head = (np.array(nodes, dtype=np.int64) for nodes in zip(*links, strict=True))
    share = np.random.default_rng(seed).dirichlet(np.full(ingresses, 3.0))
    paths = [([edge, core1, old, service], [edge, core2, new, service]) for edge in range(ingresses)]
    table = pd.DataFrame(
        {
            "class": [f"clients {edge + 1}" for edge in range(ingresses)],
            "ingress": names[:ingresses],
            "egress": "service",
            "traffic_mbps": np.round(1000 * share, 3),
            "flow_life_s": flow_life_s,
            "flows": np.maximum(np.round(flows * share), 1.0),
            "guarantee": PER_FLOW,
        }
    )
    now, after = (_rules_of([pair[which] for pair in paths]) for which in (0, 1))
    random = np.random.default_rng(seed)
    return make_update(_plain(names, tail, head), table, now, after, Extras(headroom=headroom), random)


def small() -> Update:
    """Return a tiny problem with every column: moves, a new class, one that ends, splits, and a waypoint."""
    names = ["a", "b", "c", "d"]
    ends = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("b", "c"), ("c", "b"), ("a", "d")]
    classes = [
        ("tree", "", "d", 0.0, np.nan, np.nan, "", ""),
        ("moved", "a", "d", 4.0, np.nan, np.nan, "", PER_PACKET),
        ("begins", "b", "d", 1.0, np.nan, np.nan, "", ""),
        ("ends", "a", "d", 1.0, np.nan, np.nan, "", ""),
        ("flows", "a", "d", 1.0, 2.0, 10.0, "", PER_FLOW),
        ("walled", "a", "d", 1.0, np.nan, np.nan, "c", WAYPOINT),
        ("split", "a", "d", 2.0, np.nan, np.nan, "", "none"),
    ]
    columns = ["class", "ingress", "egress", "traffic_mbps", "flow_life_s", "flows", "waypoints", "guarantee"]
    now = [
        ("tree", "a", "b", 1), ("tree", "b", "d", 1), ("tree", "c", "b", 1),
        ("moved", "a", "b", 1), ("moved", "b", "d", 1),
        ("ends", "a", "d", 1),
        ("flows", "a", "b", 1), ("flows", "b", "d", 1),
        ("walled", "a", "c", 1), ("walled", "c", "d", 1),
        ("split", "a", "b", 0.5), ("split", "a", "c", 0.5), ("split", "b", "d", 1), ("split", "c", "d", 1),
    ]  # fmt: skip
    after = [
        ("tree", "a", "c", 1), ("tree", "b", "c", 1), ("tree", "c", "d", 1),
        ("moved", "a", "c", 1), ("moved", "c", "d", 1),
        ("begins", "b", "d", 1),
        ("flows", "a", "c", 1), ("flows", "c", "d", 1),
        ("walled", "a", "b", 1), ("walled", "b", "c", 1), ("walled", "c", "d", 1),
        ("split", "a", "b", 0.25), ("split", "a", "c", 0.75), ("split", "b", "d", 1), ("split", "c", "d", 1),
    ]  # fmt: skip
    rules = ["class", "switch", "next_hop", "share"]
    return Update(
        switches=pd.DataFrame(
            {
                "switch": names,
                "rule_capacity": [8.0, 8.0, 8.0, np.nan],
                "rule_ms": [2.5, 2.0, 3.0, 2.5],
                "matches_version": 1.0,
            }
        ),
        links=pd.DataFrame(ends, columns=["from", "to"]).assign(
            capacity_mbps=[8.0, 8.0, 9.0, 9.0, np.nan, np.nan, 5.0], delay_ms=1.0
        ),
        classes=pd.DataFrame(classes, columns=columns),
        now=pd.DataFrame(now, columns=rules).astype({"share": float}),
        next=pd.DataFrame(after, columns=rules).astype({"share": float}),
        rules=pd.DataFrame([("moved", "b", 2.0)], columns=["class", "switch", "rules"]),
    )


def change_weights(weight: Floats, random: np.random.Generator, raised: float, lowered: float) -> Floats:
    """Return weights with a part of them multiplied by 3, and a part by 0.3."""
    order = random.permutation(len(weight))
    more, less = round(raised * len(weight)), round(lowered * len(weight))
    changed = weight.copy()
    changed[order[:more]] *= 3.0
    changed[order[more : more + less]] *= 0.3
    return changed


def between_weights(
    network: Network,
    before: Floats,
    after: Floats,
    selection: Selection,
    extras: Extras,
    random: np.random.Generator,
) -> Update:
    """Return the update from shortest paths by one set of weights to those by another."""
    count = selection.count
    if selection.classes == "pairs":
        source, target = network.source[:count], network.target[:count]
        targets = np.unique(target)
        now, then = (
            rules_of_pairs(source, target, targets, find_next_hops(network, weight, targets))
            for weight in (before, after)
        )
        table = pd.DataFrame(
            {
                "class": _name_pairs(network, source, target),
                "ingress": [network.names[node] for node in source],
                "egress": [network.names[node] for node in target],
                "traffic_mbps": np.round(network.rate_mbps[: len(source)], 6),
            }
        )
    else:
        arriving = np.bincount(network.target, weights=network.rate_mbps, minlength=len(network.names))
        targets = np.argsort(-arriving, kind="stable")[:count].astype(np.int64)
        now, then = (
            rules_to(targets, find_next_hops(network, weight, targets)) for weight in (before, after)
        )
        table = pd.DataFrame(
            {
                "class": [f"to {network.names[item]}" for item in targets],
                "egress": [network.names[item] for item in targets],
                "traffic_mbps": np.round(arriving[targets], 6),
            }
        )
    return make_update(network, table, now, then, extras, random)


def make_update(
    network: Network,
    classes: pd.DataFrame,
    now: Forwarding,
    after: Forwarding,
    extras: Extras,
    random: np.random.Generator,
) -> Update:
    """Return the update with tables and links as large as they must be, and some more."""
    headroom, slack = extras.headroom, extras.slack
    if extras.guarantee:
        classes = classes.assign(guarantee=extras.guarantee)
    names, count = network.names, len(network.names)
    switches = pd.DataFrame({"switch": names, "rule_ms": 2.5})
    if extras.rule_ms_spread > 0:
        switches["rule_ms"] = np.round(2.5 * random.lognormal(0.0, extras.rule_ms_spread, count), 4)
    if headroom is not None:
        held = np.maximum(*(np.bincount(rules.switch, minlength=count) for rules in (now, after)))
        switches["rule_capacity"] = np.floor(held * (1 + headroom) + 1e-9)
    links = pd.DataFrame(
        {
            "from": [names[node] for node in network.tail],
            "to": [names[node] for node in network.head],
            "delay_ms": network.delay_ms,
        }
    )
    labels = classes["class"].tolist()
    made = Update(
        switches=switches,
        links=links,
        classes=classes,
        now=tabulate(now, labels, names),
        next=tabulate(after, labels, names),
    )
    if slack is None:
        return made
    load = np.maximum(*made.link_loads)
    idle = float(load.max(initial=1.0))
    capacity = np.where(load > 0, load * (1 + slack), idle)
    return Update(
        switches=made.switches,
        links=links.assign(capacity_mbps=np.round(np.maximum(capacity, 1e-6), 9)),
        classes=made.classes,
        now=made.now,
        next=made.next,
    )


def _name_pairs(network: Network, source: Ints, target: Ints) -> list[str]:
    return [f"{network.names[a]} > {network.names[b]}" for a, b in zip(source, target, strict=True)]


def _walk(hops: Ints, source: int, target: int) -> list[int]:
    """Return the switches of the path from source to target; `hops` has a row for every switch."""
    path = [source]
    while path[-1] != target:
        hop = int(hops[target, path[-1]])
        if hop < 0:
            raise InputError("the network is not connected; choose another one")
        path.append(hop)
    return path


def _rules_of(paths: list[list[int] | None] | list[list[int]]) -> Forwarding:
    """Return the rules of one path for each class; None for a class without one."""
    rows = [
        (owner, path[index], path[index + 1])
        for owner, path in enumerate(paths)
        if path is not None
        for index in range(len(path) - 1)
    ]
    owner, switch, hop = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Forwarding(owner, switch, hop, np.ones(len(owner)))


def _plain(names: list[str], tail: Ints, head: Ints) -> Network:
    """Return a network of links of 1 ms, without demands."""
    none, ones = np.zeros(0, np.int64), np.ones(len(tail))
    return Network(names, tail, head, ones, ones, none, none, np.zeros(0))


PRESETS: Final[dict[str, Callable[..., Update]]] = {
    "reweigh": reweigh,
    "maintenance": maintenance,
    "failure": failure,
    "policy": policy,
    "zigzag": zigzag,
    "server_move": server_move,
    "small": small,
}
