"""Tables of conditions of routes: `rules`, what traffic must use or must not use, and `tunnels`.

Tunnels are the paths that operators have configured, RSVP-TE tunnels or lists of segments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.arrays import Ints
from planner.contract.table import Column, Table, label, number
from planner.contract.tables import abbreviate
from planner.errors import did_you_mean
from planner_models.networks.node_lists import LinkNames, RowFaults, parse_nodes
from planner_models.networks.tunnels import TUNNEL_COLUMNS, Tunnels, read_paths

if TYPE_CHECKING:
    from planner_models.traffic.problem.tables import TrafficTables

RULE_NAMES: Final = ("avoid", "use")
DIVIDERS: Final = re.compile(r"[\s;,|]+")
"""Between the administrative groups of a link."""
TUNNELS: Final = Table(
    name="tunnels",
    about="a path that is configured for a demand; a demand may have several",
    columns={
        **{name: column for name, column in TUNNEL_COLUMNS.items() if name != "name"},
        "kind": label(
            "explicit (each step is a link, as in RSVP-TE) or segments (between the nodes listed, traffic "
            "follows the shortest paths by weight, with ECMP); blank: explicit",
            optional=True,
            may_be_blank=True,
        ),
        "weight": number(
            "its part of the demand, against those of the demand's other tunnels, where nobody optimizes; "
            "blank: 1",
            at_least=0,
            at_most=1e12,
            optional=True,
            may_be_blank=True,
        ),
        "name": TUNNEL_COLUMNS["name"],
    },
    may_be_empty=True,
)


def _blank(about: str) -> Column:
    return label(about, optional=True, may_be_blank=True)


RULES: Final = Table(
    name="rules",
    about="a node, a link, a path or a group of links that the traffic of demands must use or avoid",
    columns={
        "source": _blank("node where the demands start; blank: all"),
        "target": _blank("node where the demands end; blank: all"),
        "rule": label("avoid or use"),
        "node": _blank("the node; demands may still start and end at a node that they avoid"),
        "tail": _blank("node where the link starts; all parallel links are meant"),
        "head": _blank("node where the link ends"),
        "path": _blank(
            "nodes that routes pass one after another, A > B > C, or as a JSON list; of several paths to "
            "use, each route has one"
        ),
        "affinity": _blank(
            "administrative group of links, as in RSVP-TE; where there are groups to use, each link of a "
            "route has one of them"
        ),
    },
    may_be_empty=True,
)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule for the routes of some demands.

    source, target  nodes by row that it holds for; -1 for all
    is_use  whether routes must pass `nodes`, and not must not
    nodes   one node, the ends of a link, or the nodes of a path, one after another
    is_path  whether it is one of several paths that a route may use
    affinity  group of links that it names instead, "" for none; `nodes` is empty then
    links     rows of the links of this group
    """

    source: int
    target: int
    is_use: bool
    nodes: tuple[int, ...]
    is_path: bool
    affinity: str = ""
    links: frozenset[int] = frozenset()

    def demands(self, problem: TrafficTables) -> Ints:
        """Return the demands that it holds for, by row."""
        holds = np.ones(len(problem.demands), dtype=bool)
        if self.source >= 0:
            holds &= problem.source == self.source
        if self.target >= 0:
            holds &= problem.target == self.target
        return np.flatnonzero(holds)


def read_rules(problem: TrafficTables) -> tuple[list[Rule], list[str]]:
    """Return the rules of a problem that has the table, and all faults in its rows."""
    frame = problem.rules
    assert frame is not None
    node_of = {name: node for node, name in enumerate(problem.nodes["node"].tolist())}
    link_names = find_links(problem)
    groups = find_affinities(problem)
    faults = RowFaults(frame, "rules")
    rules: list[Rule] = []
    for row, cells in enumerate(frame.to_dict("records")):
        texts = {column: str(cells.get(column, "")) for column in RULES.columns}
        listed = _listed_nodes(texts, faults, row)
        _require_nodes(texts, listed, node_of, faults, row)
        if texts["affinity"] and texts["affinity"] not in groups and problem.down is None:
            near = did_you_mean(texts["affinity"], groups)
            faults.add(row, f"affinity '{abbreviate(texts['affinity'])}' is that of no link{near}")
        nodes = tuple(node_of.get(name, -1) for name in listed)
        fault = link_names.missing_step(listed, nodes)
        if len(set(nodes)) < len(nodes):
            faults.add(row, "path passes a node twice")
        elif fault is not None:
            faults.add(row, fault if texts["path"] else f"there is no link {listed[0]} > {listed[1]}")
        rules.append(
            Rule(
                source=node_of.get(texts["source"], -1),
                target=node_of.get(texts["target"], -1),
                is_use=texts["rule"] == "use",
                nodes=nodes,
                is_path=bool(texts["path"]),
                affinity=texts["affinity"],
                links=groups.get(texts["affinity"], frozenset()),
            )
        )
    return rules, faults.report()


def _require_nodes(
    texts: Mapping[str, str], listed: Sequence[str], node_of: Mapping[str, int], faults: RowFaults, row: int
) -> None:
    """Add an error for each name of a rule that is no node."""
    named = [(column, texts[column]) for column in ("source", "target", "node", "tail", "head")]
    for column, name in [*named, *(("path", name) for name in listed)]:
        if name and name not in node_of:
            faults.add_unknown_node(row, name, column, list(node_of))


def _listed_nodes(texts: dict[str, str], faults: RowFaults, row: int) -> list[str]:
    """Return the names that a rule is about: of a node, of a link's ends, or of a path; add its faults."""
    if texts["rule"] not in RULE_NAMES:
        near = did_you_mean(texts["rule"], RULE_NAMES)
        faults.add(row, f"rule '{abbreviate(texts['rule'])}' is not avoid or use{near}")
    if texts["source"] and texts["source"] == texts["target"]:
        faults.add(row, f"source and target are both '{texts['source']}', must differ")
    named = {
        "node": texts["node"],
        "link": texts["tail"] or texts["head"],
        "path": texts["path"],
        "affinity": texts["affinity"],
    }
    kinds = [kind for kind, text in named.items() if text]
    if len(kinds) != 1:
        what = " and ".join(kinds) or "none"
        faults.add(row, f"must name a node, a link (tail and head), a path or an affinity; has {what}")
        return []
    if kinds == ["affinity"]:
        return []
    if kinds == ["node"]:
        return [texts["node"]]
    return _listed_ends(texts, faults, row) if kinds == ["link"] else _listed_path(texts, faults, row)


def _listed_ends(texts: dict[str, str], faults: RowFaults, row: int) -> list[str]:
    """Return the names of the ends of a rule's link; add its errors."""
    for name in ("tail", "head"):
        if not texts[name]:
            faults.add(row, f"{name} is empty: a link needs tail and head")
            return []
    if texts["tail"] == texts["head"]:
        faults.add(row, f"tail and head are both '{texts['tail']}', must differ")
    return [texts["tail"], texts["head"]]


def _listed_path(texts: dict[str, str], faults: RowFaults, row: int) -> list[str]:
    """Return the names of the nodes of a rule's path; add its errors."""
    listed = parse_nodes(texts["path"])
    if len(listed) < 2 or "" in listed:
        faults.add(row, f"path is '{abbreviate(texts['path'])}', must be two nodes at least, such as A > B")
        return []
    return listed


def find_affinities(problem: TrafficTables) -> dict[str, frozenset[int]]:
    """Return the rows of the links of each administrative group."""
    groups: dict[str, set[int]] = {}
    if "affinity" in problem.links:
        for row, text in enumerate(problem.links["affinity"].fillna("").astype(str)):
            for name in DIVIDERS.split(text):
                if name:
                    groups.setdefault(name, set()).add(row)
    return {name: frozenset(rows) for name, rows in groups.items()}


def read_tunnels(problem: TrafficTables) -> tuple[Tunnels, list[str]]:
    """Return the tunnels of a problem that has the table, and all faults in its rows."""
    assert problem.tunnels is not None
    return read_paths(problem.tunnels, problem.nodes["node"].tolist(), find_links(problem))


def find_links(problem: TrafficTables) -> LinkNames:
    """Return the links of a problem by their ends and numbers, those that are down too."""
    ends = zip(problem.tail.tolist(), problem.head.tolist(), problem.parallel.tolist(), strict=True)
    return LinkNames(ends, _links_down(problem))


def _links_down(problem: TrafficTables) -> Iterator[tuple[int, int, int]]:
    """Yield the ends and the number of each link that is down."""
    down = problem.down
    if down is None:
        return
    yield from zip(
        problem.find_nodes(down["tail"]).tolist(),
        problem.find_nodes(down["head"]).tolist(),
        np.maximum(down["parallel"].to_numpy(int), 1).tolist(),  # 0: there are no others
        strict=True,
    )
