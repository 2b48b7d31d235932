"""Plan of system `traffic`: the flow of each demand on each link."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
import pandera.pandas as pa
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import Table, abbreviate, label, number, validate
from planner.errors import PlanRejected
from planner_models.traffic.plan.segment_lists import segment_shares
from planner_models.traffic.plan.segments import SEGMENTS
from planner_models.traffic.problem.indexing import entries_at, sum_by_index
from planner_models.traffic.problem.problem import Traffic

CLASS: Final = "the demand's class, where demands have classes"


def _parallel_column() -> pa.Column:
    about = "which of the links from tail to head, from 1"
    return number(about, at_least=1, whole=True, optional=True, default=1.0)


FLOWS: Final = Table(
    name="flows",
    about="Mbit/s of a demand on a link; without `source`, of all demands to the target together",
    columns={
        "target": label("node where the demand ends"),
        "tail": label("node where the link starts"),
        "head": label("node where the link ends"),
        "rate_mbps": number("Mbit/s of the demand on this link", at_least=0),
        "source": label("node where the demand starts"),
        "parallel": _parallel_column(),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
FLOWS.columns["source"].required = False
ROUTES: Final = Table(
    name="routes",
    about="Mbit/s of a demand on a path",
    columns={
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
        "path": label("its nodes from source to target, as a JSON list"),
        "rate_mbps": number("Mbit/s on this path", at_least=0),
        "parallel": label(
            "which of parallel links each hop takes, as a JSON list; all first if absent",
            optional=True,
            may_be_blank=True,
        ),
        "tunnel": label("name of the tunnel that it is", optional=True, may_be_blank=True),
        "kind": label(
            "explicit: each step is a link; segments: shortest paths between the nodes listed, with ECMP",
            optional=True,
            may_be_blank=True,
        ),
        "reserved_mbps": number(
            "most traffic that it takes when others of the demand fail, Mbit/s; blank: no limit",
            at_least=0,
            optional=True,
            may_be_blank=True,
        ),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
LINKS: Final = Table(
    name="links",
    about="load of each link",
    columns={
        "tail": label("node where it starts"),
        "head": label("node where it ends"),
        "load_mbps": number("traffic on the link, Mbit/s", at_least=0),
        "utilization": number("load over capacity; above 1 is overloaded", at_least=0),
        "parallel": _parallel_column(),
    },
)
SHED: Final = Table(
    name="shed",
    about="demand that the plan leaves out, on purpose or for want of a path",
    columns={
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
        "rate_mbps": number("Mbit/s that are not sent", at_least=0),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
WEIGHTS: Final = Table(
    name="weights",
    about="the routing metric to configure on each link",
    columns={
        "tail": label("node where the link starts"),
        "head": label("node where the link ends"),
        "parallel": _parallel_column(),
        "weight": number("routing metric", more_than=0),
    },
)
LEVELS: Final = Table(
    name="levels",
    about="a level of max-min fairness: its demands can have no more while those of lower levels keep theirs",
    columns={
        "level": number("from 1, the lowest", at_least=1, whole=True),
        "value": number("share of the demand, Mbit/s, or Mbit/s over its weight", at_least=0),
        "bound": number("proven: the level is no higher", at_least=0),
        "demands": number("demands at this level", at_least=0, whole=True),
    },
    may_be_empty=True,
)
MOVED: Final = Table(
    name="moved",
    about="traffic that the plan takes off its present routes",
    columns={
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
        "rate_mbps": number("Mbit/s on other routes than now", at_least=0),
        "class": label(CLASS, optional=True),
    },
    may_be_empty=True,
)
WINDOWS: Final = Table(
    name="windows",
    about="maintenance window of each link or node that is drained",
    columns={
        "window": number(
            "from 1; 0 where not all demand fits while the element is drained", at_least=0, whole=True
        ),
        "element": label("the link or node"),
    },
    key=("element",),
    may_be_empty=True,
)
GUARANTEES: Final = Table(
    name="guarantees",
    about="traffic of a demand that arrives in each failure of a set that leaves the demand a path",
    columns={
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
        "class": label(CLASS, optional=True),
        "rate_mbps": number("Mbit/s that arrive", at_least=0),
        "failures": label("the set of failures: table, links, nodes or double_links"),
        "at_once": number("how many of them may occur together", at_least=0, whole=True),
        "restoration": label(
            "split: sources use those of their routes that survive, in their shares; reroute: a controller "
            "routes all traffic again"
        ),
        "availability": number(
            "with at least this probability; blank: in every failure",
            at_least=0,
            at_most=1,
            optional=True,
            may_be_blank=True,
        ),
        "probability": number(
            "of each failure, where the set has none; blank: unknown",
            more_than=0,
            at_most=1,
            optional=True,
            may_be_blank=True,
        ),
    },
    may_be_empty=True,
)
REROUTING: Final = Table(
    name="rerouting",
    about="what a limit of rerouted traffic costs, in each metric",
    columns={
        "metric": label("the metric"),
        "most_moved": number("largest share of the traffic that may be rerouted", at_least=0, at_most=1),
        "moved_share": number("share that the plan reroutes", at_least=0),
        "value": number("value of the metric"),
        "gain_per_point": number(
            "what a limit that is larger by one percentage point of the traffic brings at first; blank if "
            "unknown",
            optional=True,
            may_be_blank=True,
        ),
        "free_moved_share": number(
            "share that the best plan without the limit reroutes", optional=True, may_be_blank=True
        ),
        "free_value": number("value of that plan", optional=True, may_be_blank=True),
        "loss": number("what the limit costs", optional=True, may_be_blank=True),
    },
    key=("metric",),
    may_be_empty=True,
)
SHARES: Final = Table(
    name="shares",
    about="share of a demand on a link, whatever its rate is",
    columns={
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
        "tail": label("node where the link starts"),
        "head": label("node where the link ends"),
        "parallel": _parallel_column(),
        "share": number("of the demand's traffic", more_than=0, at_most=1, share=True),
    },
    key=("source", "target", "tail", "head", "parallel"),
    may_be_empty=True,
)
WORST_MATRICES: Final = Table(
    name="worst_matrices",
    about="the demand matrices, of those that the shares are made for, that load a link the most",
    columns={
        "matrix": label("name of the matrix"),
        "source": label("node where the demand starts"),
        "target": label("node where the demand ends"),
        "rate_mbps": number("rate of the demand, Mbit/s", at_least=0),
    },
    key=("matrix", "source", "target"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (
    FLOWS,
    ROUTES,
    LINKS,
    SHED,
    WEIGHTS,
    SEGMENTS,
    LEVELS,
    MOVED,
    WINDOWS,
    GUARANTEES,
    REROUTING,
    SHARES,
    WORST_MATRICES,
)
SHED_TOLERANCE: Final = 1e-6  # of a demand; less is rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Routing:
    """Flow of each demand on each link.

    flows   source, target, tail, head, parallel, rate_mbps; without the column `source` the flows of
            all demands to a target are one (then each node's surplus is its own demand), with classes
            those of each class
    links   tail, head, parallel, load_mbps, utilization; one row for each link of the network
    routes  source, target, path, rate_mbps where traffic follows whole paths, else None
    shed    source, target, rate_mbps of demand that is left out; None where all is sent
    weights tail, head, parallel, weight of each link where ECMP with these weights makes the flows
    segments source, target, segments, share where demands follow segment lists; others shortest paths
    levels  level, value, bound, demands of the levels of max-min fairness, of a design that proves them
    moved   source, target, rate_mbps of traffic off its present routes, of a plan that starts from them
    windows window, element where links and nodes are drained in maintenance windows
    guarantees  source, target, rate_mbps, failures, at_once, restoration, availability? of traffic that
            arrives in failures too, of a design that claims some
    rerouting  metric, value, free_value, gain_per_point, ... where the rerouted traffic is limited
    shares  source, target, tail, head, parallel, share where demands have fixed shares, at any rates
    worst_matrices  matrix, source, target, rate_mbps of those that shares are made for
    lost, failed  source, target, rate_mbps of traffic that is lost, as its links have failed since the plan
            was made, and link, rate_mbps of these; None where none has

    Where demands have classes, flows, routes, shed, segments, moved and guarantees have the column `class`.
    """

    flows: pd.DataFrame
    links: pd.DataFrame
    routes: pd.DataFrame | None = None
    shed: pd.DataFrame | None = None
    weights: pd.DataFrame | None = None
    segments: pd.DataFrame | None = None
    levels: pd.DataFrame | None = None
    moved: pd.DataFrame | None = None
    windows: pd.DataFrame | None = None
    guarantees: pd.DataFrame | None = None
    rerouting: pd.DataFrame | None = None
    shares: pd.DataFrame | None = None
    worst_matrices: pd.DataFrame | None = None
    lost: pd.DataFrame | None = None
    failed: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables flows, links and, where there are any, those that `PLAN_TABLES` has besides."""
        tables = {
            "flows": self.flows,
            "links": self.links,
            "routes": self.routes,
            "shed": self.shed,
            "weights": self.weights,
            "segments": self.segments,
            "levels": self.levels,
            "moved": self.moved,
            "windows": self.windows,
            "guarantees": self.guarantees,
            "rerouting": self.rerouting,
            "shares": self.shares,
            "worst_matrices": self.worst_matrices,
        }
        return {name: table for name, table in tables.items() if table is not None}


def routing_by_demand(problem: Traffic, flow_mbps: sp.sparray, routes: pd.DataFrame | None = None) -> Routing:
    """Return the plan of a flow per demand and link, (K, E) Mbit/s."""
    flow = _drop_residual_flow(problem, flow_mbps)
    shed = list_shed(problem, sent_by_demand(problem, flow))
    return _build_routing(problem, flow, _name_demands(problem, flow.row), routes, shed)


def routing_by_target(problem: Traffic, flow_mbps: sp.sparray, commodity: Ints | None = None) -> Routing:
    """Return the plan of a flow per target and link, (D, E) Mbit/s, for plans too large to list by demand.

    commodity  (D,) class and target of each row, as in `problem.commodity`, ascending; needed with classes
    """
    if commodity is None:
        commodity = problem.targets
        if problem.has_classes and flow_mbps.nnz:
            raise ValueError("demands have classes: flows per target need the class of each")
    by_target = sp.csr_array(flow_mbps, copy=True)
    by_target.sum_duplicates()
    by_target.data[by_target.data < 0] = 0.0
    by_target.eliminate_zeros()
    flow = by_target.tocoo()
    shed = list_shed(problem, _sent_by_target(problem, by_target, commodity))
    of_class, target = np.divmod(commodity, len(problem.nodes))
    names = {
        "target": _node_names(problem, target[flow.row]),
        **_name_classes(problem, of_class[flow.row]),
    }
    return _build_routing(problem, flow, names, None, shed)


def routing_from_tables(problem: Traffic, tables: Mapping[str, pd.DataFrame]) -> Routing:
    """Read the plan in the tables `flows` or `routes`; PlanRejected where there is none."""

    def read(table: Table) -> pd.DataFrame | None:
        given = tables.get(table.name)
        return None if given is None else validate(table, given, where=f"plan: {table.name}")

    given, routes, shed, weights = read(LINKS), read(ROUTES), read(SHED), read(WEIGHTS)
    segments, levels, moved, windows = read(SEGMENTS), read(LEVELS), read(MOVED), read(WINDOWS)
    guarantees = read(GUARANTEES)
    if "flows" in tables:
        flows = validate(FLOWS, tables["flows"], where="plan: flows")
        kept = ["source", "target", *(["class"] if problem.has_classes else [])]
        names = {name: flows[name] for name in kept if name in flows}
        link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
        row = np.arange(len(flows))
        rate = flows["rate_mbps"].to_numpy(float)
        flow = sp.coo_array((rate, (row, link)), shape=(len(flows), len(problem.links)))
        plan = _build_routing(problem, flow, names, routes, shed)
    elif routes is not None:
        plan = routing_by_demand(problem, flow_on_routes(problem, routes), routes)
        shed = plan.shed if shed is None else shed
    else:
        raise PlanRejected("plan: has neither a table 'flows' nor 'routes'")
    return replace(
        plan,
        links=plan.links if given is None else given,
        shed=shed,
        weights=weights,
        segments=segments,
        levels=levels,
        moved=moved,
        windows=windows,
        guarantees=guarantees,
        rerouting=read(REROUTING),
        shares=read(SHARES),
        worst_matrices=read(WORST_MATRICES),
    )


def list_shed(problem: Traffic, sent_mbps: Floats) -> pd.DataFrame | None:
    """Return the table `shed` of a plan that sends these rates (K,), Mbit/s; None where it sends all."""
    missing = problem.rate_mbps - sent_mbps
    return list_demands(problem, np.where(missing > SHED_TOLERANCE * problem.rate_mbps, missing, 0.0))


def list_demands(problem: Traffic, amount_mbps: Floats) -> pd.DataFrame | None:
    """Return a table of the demands with an amount above 0, (K,), Mbit/s; None where there is none."""
    rows = np.flatnonzero(amount_mbps > 0)
    if not len(rows):
        return None
    return pd.DataFrame({**_name_demands(problem, rows), "rate_mbps": amount_mbps[rows]})


def sent_by_demand(problem: Traffic, flow_mbps: sp.sparray) -> Floats:
    """Return what leaves the source of each demand, less what returns, of flows (K, E): shape (K,)."""
    flow = sp.coo_array(flow_mbps)
    source = problem.source[flow.row]
    sign = (problem.tail[flow.col] == source).astype(float) - (problem.head[flow.col] == source)
    return sum_by_index(flow.row, flow.data * sign, len(problem.demands))


def _sent_by_target(problem: Traffic, flow: sp.csr_array, commodity: Ints) -> Floats:
    """Return what each demand sends, (K,), of flows per target (D, E); within rounding errors its rate."""
    known = np.flatnonzero(problem.rate_mbps > 0)
    if problem.has_classes:
        row = np.minimum(np.searchsorted(commodity, problem.commodity[known]), max(len(commodity) - 1, 0))
        listed = commodity[row] == problem.commodity[known] if len(commodity) else np.zeros(len(row), bool)
        known, row = known[listed], row[listed]
    else:
        row = problem.target_row[known]
    source = problem.source[known]
    sent = np.zeros(len(problem.demands))
    surplus, passing = (
        entries_at(sp.csr_array(flow @ incidence.T), row, source)
        for incidence in (problem.incidence, abs(problem.incidence))
    )
    # the surplus of a small demand drowns in the rounding errors of much traffic through its source
    sent[known] = surplus + 1e-12 * passing
    return sent


def flow_by_demand(problem: Traffic, plan: Routing) -> sp.csr_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, of a plan with sources."""
    flows = plan.flows
    demand = problem.find_demands(flows)
    link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    shape = (len(problem.demands), len(problem.links))
    return sp.csr_array((flows["rate_mbps"].to_numpy(float), (demand, link)), shape=shape)


def flow_by_target(problem: Traffic, plan: Routing) -> sp.csr_array:
    """Return the flow to each target on each link, (D, E) Mbit/s, of any plan."""
    flows = plan.flows  # of each class, where demands have classes
    row = np.searchsorted(problem.targets, problem.find_nodes(flows["target"]))
    link = require_links(problem, flows["tail"], flows["head"], flows["parallel"], "flows")
    shape = (len(problem.targets), len(problem.links))
    return sp.csr_array((flows["rate_mbps"].to_numpy(float), (row, link)), shape=shape)


def require_classes(problem: Traffic, table: pd.DataFrame, name: str) -> None:
    """Raise PlanRejected where demands have classes and a plan's table does not say which."""
    if not problem.has_classes:
        return
    if "class" not in table:
        raise PlanRejected(f"{name}: column 'class' is missing; demands have classes")
    unknown = np.flatnonzero(problem.find_classes(table) == -1)
    if len(unknown):
        row = int(unknown[0])
        raise PlanRejected(f"{name} row {row + 1}: class '{table['class'].iloc[row]}' is no class of demands")


def require_links(
    problem: Traffic, tail: Iterable[str], head: Iterable[str], parallel: Iterable[float], where: str
) -> Ints:
    """Return the link of each (tail, head, parallel); PlanRejected where there is no such link."""
    tails, heads, numbers = (pd.Series(column) for column in (tail, head, parallel))
    written = numbers.to_numpy(float, copy=False)
    wrong = np.flatnonzero(~((written >= 1) & (written <= 2**31) & (written % 1 == 0)))
    if len(wrong):
        row = int(wrong[0])
        raise PlanRejected(
            f"{where} row {row + 1}: parallel is {written[row]:g}, must be a whole number from 1"
        )
    nth = written.astype(np.int64)
    link = problem.find_links(problem.find_nodes(tails), problem.find_nodes(heads), nth)
    unknown = np.flatnonzero(link < 0)
    if len(unknown):
        row = int(unknown[0])
        extra = f"#{nth[row]}" if nth[row] > 1 else ""
        more = f" and {len(unknown) - 1} rows more" if len(unknown) > 1 else ""
        raise PlanRejected(
            f"{where} row {row + 1}: {tails.iloc[row]}->{heads.iloc[row]}{extra} "
            f"is no link of the network{more}"
        )
    return link


def _drop_residual_flow(problem: Traffic, flow_mbps: sp.sparray) -> sp.coo_array:
    """Return the flow per demand, (K, E), without entries below 1e-9 of the demand's largest one.

    Solvers leave such entries, which would make plans large and unreadable.
    """
    flow = sp.coo_array(flow_mbps)
    flow.sum_duplicates()
    largest = np.zeros(len(problem.demands))
    np.maximum.at(largest, flow.row, flow.data)
    keep = flow.data > 1e-9 * largest[flow.row]
    return sp.coo_array((flow.data[keep], (flow.row[keep], flow.col[keep])), shape=flow.shape)


def _build_routing(
    problem: Traffic,
    flow: sp.coo_array,
    names: Mapping[str, pd.Series | pd.Categorical],
    routes: pd.DataFrame | None,
    shed: pd.DataFrame | None,
) -> Routing:
    flows = pd.DataFrame(
        {
            **names,
            "tail": _node_names(problem, problem.tail[flow.col]),
            "head": _node_names(problem, problem.head[flow.col]),
            "parallel": problem.parallel[flow.col],
            "rate_mbps": flow.data,
        }
    )
    load = sum_by_index(flow.col, flow.data, len(problem.links))
    links = pd.DataFrame(
        {
            "tail": problem.links["tail"].to_numpy(),
            "head": problem.links["head"].to_numpy(),
            "parallel": problem.parallel,
            "load_mbps": load,
            "utilization": load / problem.capacity_mbps,
        }
    )
    return Routing(flows=flows, links=links, routes=routes, shed=shed)


def _name_demands(problem: Traffic, demands: Ints) -> dict[str, pd.Categorical]:
    """Return the columns that tell demands apart: source, target and, with classes, class."""
    ends = {
        "source": _node_names(problem, problem.source[demands]),
        "target": _node_names(problem, problem.target[demands]),
    }
    return {**ends, **_name_classes(problem, problem.class_of[demands])} if problem.has_classes else ends


def _name_classes(problem: Traffic, of_class: Ints) -> dict[str, pd.Categorical]:
    """Return the column `class` of rows of `class_table`; none without classes."""
    if not problem.has_classes:
        return {}
    return {"class": pd.Categorical.from_codes(of_class, categories=pd.Index(problem.class_table["class"]))}


def _node_names(problem: Traffic, places: Ints) -> pd.Categorical:
    return pd.Categorical.from_codes(places, categories=problem.node_index)


def flow_on_routes(problem: Traffic, routes: pd.DataFrame) -> sp.coo_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, of the table `routes`."""
    require_classes(problem, routes, "routes")
    demand, nodes, rate = problem.find_demands(routes), list_routes(problem, routes), routes["rate_mbps"]
    columns = [routes[name].tolist() for name in ("source", "target")]
    names = problem.nodes["node"].tolist()
    for row, (source, target, path) in enumerate(zip(*columns, nodes, strict=True)):
        ends = names[path[0]], names[path[-1]]
        if demand[row] < 0 or ends != (source, target):
            what = (
                "is no demand of the problem" if demand[row] < 0 else "has a path from {} to {}".format(*ends)
            )
            raise PlanRejected(f"routes row {row + 1}: {source}->{target} {what}")
    uses = links_of_routes(problem, routes, nodes)
    amount = sp.diags_array(rate.to_numpy(float)) @ uses
    place = sp.csr_array(
        (np.ones(len(demand)), (demand, np.arange(len(demand)))), shape=(len(problem.demands), len(demand))
    )
    return sp.coo_array(place @ amount)


def list_routes(problem: Traffic, routes: pd.DataFrame) -> list[tuple[int, ...]]:
    """Return the nodes of each of the table `routes`; PlanRejected for paths that are none."""
    node_of = {name: node for node, name in enumerate(problem.nodes["node"].tolist())}
    listed = []
    for row, text in enumerate(routes["path"].tolist()):
        path = _parse_path(text, row)
        unknown = [name for name in path if name not in node_of]
        if unknown:
            raise PlanRejected(f"routes row {row + 1}: '{unknown[0]}' is no node of the network")
        listed.append(tuple(node_of[name] for name in path))
    return listed


def links_of_routes(problem: Traffic, routes: pd.DataFrame, nodes: Sequence[tuple[int, ...]]) -> sp.csr_array:
    """Return the share of a route's traffic on each link, (R, E); PlanRejected for a step without a link."""
    by_segments = is_by_segments(routes)
    names = problem.nodes["node"].to_numpy()
    rows: list[int] = []
    tails: list[int] = []
    heads: list[int] = []
    numbers: list[int] = []
    given = routes["parallel"].tolist() if "parallel" in routes else [""] * len(routes)
    for row, path in enumerate(nodes):
        if by_segments[row]:
            continue
        hops = len(path) - 1
        rows += [row] * hops
        tails += path[:-1]
        heads += path[1:]
        numbers += _parse_parallels(given[row], row, hops) if given[row] else [1] * hops
    link = require_links(
        problem, names[np.array(tails, dtype=int)], names[np.array(heads, dtype=int)], numbers, "routes"
    )
    shape = (len(routes), len(problem.links))
    uses = sp.csr_array((np.ones(len(link)), (np.array(rows, dtype=int), link)), shape=shape)
    if not by_segments.any():
        return uses
    shares, is_followed = segment_shares(
        problem, [nodes[row] for row in np.flatnonzero(by_segments).tolist()]
    )
    if not is_followed.all():
        row = int(np.flatnonzero(by_segments)[int(np.argmin(is_followed))])
        raise PlanRejected(f"routes row {row + 1}: has a segment without a path")
    place = np.flatnonzero(by_segments)
    spread = sp.csr_array(
        (np.ones(len(place)), (place, np.arange(len(place)))), shape=(len(routes), len(place))
    )
    return sp.csr_array(uses + spread @ shares)


def is_by_segments(routes: pd.DataFrame) -> Bools:
    """Return whether each route is a list of segments, (R,); PlanRejected for an unknown kind."""
    if "kind" not in routes:
        return np.zeros(len(routes), dtype=bool)
    kind = routes["kind"].to_numpy()
    wrong = np.flatnonzero(~np.isin(kind.astype(str), ("", "explicit", "segments")))
    if len(wrong):
        text = abbreviate(kind[wrong[0]])
        raise PlanRejected(f"routes row {wrong[0] + 1}: kind is '{text}', must be explicit or segments")
    return np.asarray(kind == "segments")


def _parse_parallels(text: str, row: int, hops: int) -> list[int]:
    numbers = _parse_json(text)
    if not isinstance(numbers, list) or len(numbers) != hops or not all(isinstance(n, int) for n in numbers):
        raise PlanRejected(
            f"routes row {row + 1}: parallel is '{abbreviate(text)}', must be a JSON list of {hops} numbers"
        )
    return numbers


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, numbers of thousands of digits, nested too deep
        return None


def _parse_path(text: str, row: int) -> list[str]:
    path = _parse_json(text)
    if not isinstance(path, list) or len(path) < 2 or not all(isinstance(node, str) for node in path):
        raise PlanRejected(
            f"routes row {row + 1}: path is '{abbreviate(text)}', must be a JSON list of node names"
        )
    return path
