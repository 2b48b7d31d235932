"""Maintenance: take links and nodes out of use, and keep as much traffic as possible on its present routes.

Linear program, for the flow f of each demand now, drained links and nodes, and the rate r of each demand:

    max sum_k s_k, then max the traffic that stays
    s_k = y_k r_k + g_k + w_k <= r_k,   load <= capacity

y_k is the part of a demand off the drained elements that stays as it is; g is a flow on links that a demand
over drained elements uses now, at most as much as now; w_k goes over any links, one flow for each target. No
flow uses a drained link, or passes a drained node: its own demands still start and end there.

A first program keeps all other demands as they are. Where it serves all demand, and keeps as much as can
stay, no plan moves less; else a second one may move every demand.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner.options import Options
from planner_models.traffic.designs import ecmp, optimum
from planner_models.traffic.designs.column_generation import column_generation
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan import cycle_removal, schema, split_ratios
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.check import verify_flow
from planner_models.traffic.plan.moved_traffic import largest_flows, share_flows
from planner_models.traffic.plan.plan import Routing, sent_by_demand
from planner_models.traffic.problem.element_names import ElementNames
from planner_models.traffic.problem.problem import Traffic

MAX_COLUMNS: Final = 1_500_000  # variables of a linear program
SMALLEST_SHARE: Final = 1e-9  # of a demand on a link
FIT_TOLERANCE: Final = 1e-7  # of all demand; where all but this share fits, all counts as fitting

Start = Annotated[
    Literal["ecmp", "optimum"],
    Field(
        description="the present plan, where there is no previous one: shortest paths with ECMP, or the "
        "optimum of all elements"
    ),
]
DrainLinks = Annotated[
    tuple[str, ...], Field(description="links to drain, named as in fail_links: tail->head or tail<->head")
]
DrainNodes = Annotated[
    tuple[str, ...],
    Field(description="nodes to drain, * ? [..] match; only their own demands still start and end there"),
]
Present = Annotated[
    Path | None,
    Field(description="folder or workbook with the tables of the present plan: flows, or routes"),
]
Windows = Annotated[
    bool,
    Field(
        description="drain the elements in as few maintenance windows as possible, without overload; the "
        "plan is that of the first window"
    ),
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Drained:
    """Links (E,) and nodes (N,) to take out of use."""

    links: Bools
    nodes: Bools

    def forbidden(self, problem: Traffic, demand: Ints, link: Ints) -> Bools:
        """Return whether each demand must not use each link, (P,)."""
        tail, head = problem.tail[link], problem.head[link]
        leaves = self.nodes[tail] & (tail != problem.source[demand])
        enters = self.nodes[head] & (head != problem.target[demand])
        returns = self.nodes[head] & (head == problem.source[demand])
        ends = self.nodes[tail] & (tail == problem.target[demand])
        return np.asarray(self.links[link] | leaves | enters | returns | ends)


@shed_unreachable
def route(
    problem: Traffic,
    *,
    links: DrainLinks = (),
    nodes: DrainNodes = (),
    present: Present = None,
    start: Start = "ecmp",
    windows: Windows = False,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Take links and nodes out of use, with the least traffic moved from its present routes.

    Delivers the most that fits within the capacities, and of these plans takes the one that moves the least.
    The present routes are those of `previous`, in their shares, else of the tables in `present`, else of
    `start`. What they send over links that are gone moves too, and so does what they did not send. Traffic
    stays where a demand off the drained elements keeps part of its present flow, all of its links in
    proportion; a demand over drained elements may keep any flow on its present links.

    returns  Decision with a Routing whose table `moved` lists the traffic on other routes than now, and, with
             `windows`, a table `windows` of the elements; the bound is that of the moved traffic among the
             plans that deliver the most
    raises   InputError for a name that matches no link or node
    source   linear program of its own
    """
    until = np.inf if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    elements = _find_elements(problem, links, nodes)
    if previous is not None and previous.plan is not None:
        now = share_flows(problem, previous.plan.flows, previous.plan.shed)
    elif present is not None:
        now = share_flows(problem, *_read_flows(problem, present))
    else:
        now = _flow_of_design(problem, start, options)
    table = None
    if windows:
        table = plan_windows(problem, elements, options, until)
        first = set(table["element"][table["window"] == 1])
        elements = {name: one for name, one in elements.items() if name in first}
    decision = _drain(problem, join(problem, elements), now, options, until)
    if options.service == "all" and decision.plan is not None and decision.plan.shed is not None:
        return _refuse(problem, decision)
    if table is None or decision.plan is None:
        return decision
    return replace(decision, plan=replace(decision.plan, windows=table))


def _refuse(problem: Traffic, decision: Decision[Routing]) -> Decision[Routing]:
    """Return the decision that not all demand can be served; undecided where that is not proven."""
    assert decision.plan is not None
    assert decision.plan.shed is not None
    shed, offered = float(decision.plan.shed["rate_mbps"].sum()), float(problem.rate_mbps.sum())
    is_proven = decision.proof.status is Status.OPTIMAL
    reason = f"at most {1 - shed / offered:.4%} of all traffic fits without the drained elements"
    proof = replace(
        decision.proof,
        status=Status.INFEASIBLE if is_proven else Status.UNDECIDED,
        objective=None,
        bound=None,
        reasons=(reason,) if is_proven else (),
    )
    return Decision(plan=None, proof=proof)


def _find_elements(problem: Traffic, links: tuple[str, ...], nodes: tuple[str, ...]) -> dict[str, Drained]:
    """Return the links and the nodes of each name."""
    found = ElementNames(problem)
    elements: dict[str, Drained] = {}
    for name in links:
        rows = found.match_links(name, "links")
        is_link = np.zeros(len(problem.links), dtype=bool)
        is_link[rows] = True
        elements[name] = Drained(links=is_link, nodes=np.zeros(len(problem.nodes), dtype=bool))
    for name in nodes:
        for node in found.match_nodes(name, "nodes").tolist():
            is_node = np.zeros(len(problem.nodes), dtype=bool)
            is_node[node] = True
            label = str(problem.nodes["node"].iloc[node])
            elements[label] = Drained(links=np.zeros(len(problem.links), dtype=bool), nodes=is_node)
    if found.faults:
        raise InputError(*found.faults)
    return elements


def join(problem: Traffic, elements: dict[str, Drained]) -> Drained:
    """Return all elements as one."""
    is_link = np.zeros(len(problem.links), dtype=bool)
    is_node = np.zeros(len(problem.nodes), dtype=bool)
    for one in elements.values():
        is_link |= one.links
        is_node |= one.nodes
    return Drained(links=is_link, nodes=is_node)


def _read_flows(problem: Traffic, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the table `flows` of a plan in a folder, or that of its routes, and its table `shed`."""
    tables = (schema.FLOWS, schema.ROUTES, schema.SHED)
    found = find_tables(tables, folder, ("flows", "routes", "shed"))
    if not {"flows", "routes"} & found.keys():
        raise InputError(f"present: {folder}: has neither a table 'flows' nor 'routes'")
    read = read_tables(tables, found)
    flows = read["flows"] if "flows" in read else routing.routing_from_tables(problem, read).flows
    return flows, read.get("shed")


def _flow_of_design(problem: Traffic, start: str, options: Options) -> sp.csr_array:
    """Return what each demand sends on each link, (K, E) Mbit/s, by the design `start`."""
    if start == "ecmp":
        plan = ecmp.route(problem).plan
        assert plan is not None
        return routing.flow_by_demand(problem, plan)
    with progress.ignore():
        plan = optimum.route(problem, options=options).plan
    if plan is None:
        return sp.csr_array((len(problem.demands), len(problem.links)))
    return share_flows(problem, plan.flows, plan.shed)


def _drain(
    problem: Traffic, drained: Drained, now: sp.csr_array, options: Options, until: float
) -> Decision[Routing]:
    """Return the plan that delivers the most, and of these moves the least."""
    entries = now.tocoo()
    wrong = np.zeros(len(problem.demands), dtype=bool)
    wrong[entries.row[drained.forbidden(problem, entries.row, entries.col) & (entries.data > 0)]] = True
    wrong |= ~_is_whole(problem, now)
    rate = problem.rate_mbps
    everything = float(rate.sum())
    most_kept = _most_kept(problem, drained, now, wrong)
    least_moved = float((rate[wrong] - most_kept[wrong]).sum())
    best: _Solved | None = None
    for is_free in (wrong, rate > 0):
        if is_free is not wrong and best is not None and best.is_best(everything, least_moved):
            break
        solved = _solve(problem, drained, now, wrong, is_free, options, until)
        if solved is not None:
            best = solved
        if time.perf_counter() >= until:
            break
    if best is None:
        best = _keep_only(problem, now, wrong)
    return _decide(problem, best, least_moved)


def _is_whole(problem: Traffic, now: sp.csr_array) -> Bools:
    """Return whether the flow of each demand, (K, E), brings its whole rate to its target, (K,).

    It does not where links are gone or where the demand was shed.
    """
    surplus = sp.csr_array(now @ problem.incidence.T).tocoo()
    wanted = problem.rate_mbps
    is_end = (surplus.col == problem.source[surplus.row]) | (surplus.col == problem.target[surplus.row])
    lost = np.abs(surplus.data) > FIT_TOLERANCE * wanted[surplus.row]
    whole = sent_by_demand(problem, now) >= wanted * (1 - FIT_TOLERANCE)
    whole[surplus.row[~is_end & lost]] = False
    return np.asarray(whole | (wanted == 0))


def _options(options: Options, until: float) -> Options:
    if np.isinf(until):
        return options
    return replace(options, time_limit_s=max(until - time.perf_counter(), 0.01))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solved:
    """Flow (K, E) of each demand, what of it stays (K,), and whether it is proven to move the least."""

    flow: sp.csr_array
    served: Floats
    kept: Floats
    is_optimal: bool
    is_all_free: bool
    backend: str

    def is_best(self, everything: float, least_moved: float) -> bool:
        """Return whether all is served and no plan moves less."""
        moved = float((self.served - self.kept).sum())
        tolerance = FIT_TOLERANCE * everything
        return float(self.served.sum()) >= everything - tolerance and moved <= least_moved + tolerance


def _most_kept(problem: Traffic, drained: Drained, now: sp.csr_array, wrong: Bools) -> Floats:
    """Return the most traffic of each demand over drained elements that can stay on its links, (K,)."""
    entries = sp.csr_array(sp.diags_array(wrong * 1.0) @ now).tocoo()
    allowed = ~drained.forbidden(problem, entries.row.astype(np.int64), entries.col) & (entries.data > 0)
    usable = (entries.data[allowed], (entries.row[allowed], entries.col[allowed]))
    return np.minimum(largest_flows(problem, sp.csr_array(usable, shape=now.shape)), problem.rate_mbps)


def _solve(
    problem: Traffic,
    drained: Drained,
    now: sp.csr_array,
    wrong: Bools,
    is_free: Bools,
    options: Options,
    until: float,
) -> _Solved | None:
    """Solve the program in which the demands `is_free` (K,) may move; None without a solution."""
    program = _Program(problem, drained, now, wrong, is_free)
    if not len(program.free) and (program.residual >= 0).all():
        stays = sent_by_demand(problem, now)
        return _Solved(flow=now, served=stays, kept=stays, is_optimal=True, is_all_free=False, backend="none")
    if program.count > MAX_COLUMNS or (program.residual < 0).any():
        return None
    total = float(problem.rate_mbps[is_free].sum())
    solution, delivers_most = backends.solve(program.build(total), _options(options, until)), True
    if solution.status is Status.INFEASIBLE:
        most = backends.solve(program.build(None), _options(options, until))
        if most.x is None or most.objective is None:
            return None
        solution = backends.solve(
            program.build(most.objective * (1 - FIT_TOLERANCE)), _options(options, until)
        )
        delivers_most = most.status is Status.OPTIMAL and solution.x is not None
        solution = most if solution.x is None else solution
    if solution.x is None:
        return None
    is_optimal = delivers_most and solution.status is Status.OPTIMAL
    return program.read(solution.x, is_optimal, solution.backend)


class _Program:
    """Columns of the linear program, and the plan of their values.

    staying  demands that are free and off the drained elements: y, one column each
    present  entries of the flow now that demands over drained elements may keep: g
    anew     (D', E) links of each target of free demands: the flow of w; and w itself, one column a demand
    """

    def __init__(
        self, problem: Traffic, drained: Drained, now: sp.csr_array, wrong: Bools, is_free: Bools
    ) -> None:
        self.problem, self.now, self.wrong, self.is_free = problem, now, wrong, is_free
        self.free = np.flatnonzero(is_free & (problem.rate_mbps > 0))
        self.staying = self.free[~wrong[self.free]]
        entries = now.tocoo()
        row, link = entries.row.astype(np.int64), entries.col.astype(np.int64)
        keep = wrong[row] & (entries.data > 0) & ~drained.forbidden(problem, row, link)
        self.row, self.link, self.most = row[keep], link[keep], entries.data[keep]
        self.targets = np.unique(problem.target[self.free])
        self.anew_target, self.anew_link = (
            axis.ravel()
            for axis in np.meshgrid(
                np.arange(len(self.targets)), np.arange(len(problem.links)), indexing="ij"
            )
        )
        node = self.targets[self.anew_target]
        tail, head = problem.tail[self.anew_link], problem.head[self.anew_link]
        usable = ~drained.links[self.anew_link] & ~(drained.nodes[head] & (head != node)) & (tail != node)
        self.anew_target, self.anew_link = self.anew_target[usable], self.anew_link[usable]
        fixed = ~is_free & ~wrong
        load = np.asarray(now[np.flatnonzero(fixed)].sum(axis=0)).ravel()
        self.residual = problem.capacity_mbps - load
        self.residual[np.abs(self.residual) < 1e-9 * problem.capacity_mbps] = 0.0
        self.starts = np.cumsum(
            [0, len(self.staying), len(self.row), len(self.anew_link), len(self.free)]
        ).tolist()
        self.count = self.starts[-1]

    def build(self, least_mbps: float | None) -> LinearProgram:
        """Return the program: the most traffic that stays with `least_mbps` served, or the most served."""
        problem, count, starts = self.problem, self.count, self.starts
        rate = problem.rate_mbps
        is_all = least_mbps is not None and least_mbps >= float(rate[self.free].sum())
        place = np.full(len(problem.demands), -1)
        place[self.free] = np.arange(len(self.free))
        source = problem.source[self.row]
        out = (problem.tail[self.link] == source) * 1.0 - (problem.head[self.link] == source)
        y = np.arange(starts[0], starts[1])
        g = np.arange(starts[1], starts[2])
        z = np.arange(starts[2], starts[3])
        w = np.arange(starts[3], starts[4])
        served = sp.csr_array(
            (
                np.concatenate([rate[self.staying], out, np.ones(len(w))]),
                (
                    np.concatenate([place[self.staying], place[self.row], np.arange(len(w))]),
                    np.concatenate([y, g, w]),
                ),
            ),
            shape=(len(self.free), count),
        )
        stays = np.zeros(count)
        stays[y] = rate[self.staying]
        stays[g] = out
        nodes = len(problem.nodes)
        # what stays: each node but the ends of its demand sends what it gets
        key = np.concatenate(
            [self.row * nodes + problem.tail[self.link], self.row * nodes + problem.head[self.link]]
        )
        inner = (key % nodes != problem.source[key // nodes]) & (key % nodes != problem.target[key // nodes])
        distinct, at = np.unique(key[inner], return_inverse=True)
        sign = np.r_[np.ones(len(g)), -np.ones(len(g))]
        balance = sp.csr_array((sign[inner], (at, np.r_[g, g][inner])), shape=(len(distinct), count))
        # what is routed anew: each node but the target sends what it gets and its own
        key = np.concatenate(
            [
                self.anew_target * nodes + problem.tail[self.anew_link],
                self.anew_target * nodes + problem.head[self.anew_link],
                np.searchsorted(self.targets, problem.target[self.free]) * nodes + problem.source[self.free],
            ]
        )
        sign = np.concatenate([np.ones(len(z)), -np.ones(len(z)), -np.ones(len(w))])
        column = np.concatenate([z, z, w])
        inner = key % nodes != self.targets[key // nodes]
        anew = sp.csr_array(
            (sign[inner], (key[inner], column[inner])), shape=(len(self.targets) * nodes, count)
        )
        load = sp.hstack(
            [
                self.now[self.staying].T,
                sp.csr_array(
                    (np.ones(len(g)), (self.link, np.arange(len(g)))), shape=(len(problem.links), len(g))
                ),
                sp.csr_array(
                    (np.ones(len(z)), (self.anew_link, np.arange(len(z)))), shape=(len(problem.links), len(z))
                ),
                sp.csr_array((len(problem.links), len(w))),
            ]
        )
        rows = [
            Rows("served", served, lower=rate[self.free] if is_all else 0.0, upper=rate[self.free]),
            Rows("stays", balance, lower=0.0, upper=0.0),
            Rows("anew", anew, lower=0.0, upper=0.0),
            Rows("capacity", sp.csr_array(load), upper=self.residual),
        ]
        total = np.asarray(served.sum(axis=0)).ravel()
        if least_mbps is not None and not is_all:
            rows.append(Rows("total", sp.csr_array(total[None, :]), lower=least_mbps))
        upper = np.full(count, np.inf)
        upper[y] = 1.0
        upper[g] = self.most
        return LinearProgram.build(
            sense="max",
            cost=stays if least_mbps is not None else total,
            rows=rows,
            upper=upper,
            columns=[
                Columns(name=name, count=size)
                for name, size in zip(
                    ("stays", "kept", "anew", "moved"), np.diff(starts).tolist(), strict=True
                )
            ],
            name="traffic drain",
        )

    def read(self, x: Floats, is_optimal: bool, backend: str) -> _Solved:
        """Return the flows of a solution."""
        problem, starts = self.problem, self.starts
        shape = (len(problem.demands), len(problem.links))
        share = np.where(self.is_free | self.wrong, 0.0, 1.0)
        share[self.staying] = x[: starts[1]]
        kept = sp.csr_array(sp.diags_array(share) @ self.now)
        g = np.where(x[starts[1] : starts[2]] > 0, x[starts[1] : starts[2]], 0.0)
        kept = sp.csr_array(kept + sp.csr_array((g, (self.row, self.link)), shape=shape))
        moved = np.zeros(len(problem.demands))
        w = x[starts[3] :]
        moved[self.free] = np.where(w > FIT_TOLERANCE * problem.rate_mbps[self.free], w, 0.0)
        z = x[starts[2] : starts[3]]
        row = np.searchsorted(problem.targets, self.targets[self.anew_target])
        used = z > FIT_TOLERANCE * float(z.max(initial=0.0)) * 1e-3
        anew = sp.coo_array(
            (z[used], (row[used], self.anew_link[used])), shape=(len(problem.targets), len(problem.links))
        )
        anew = split_ratios.drop_stranded_flow(problem, cycle_removal.remove_cycles(problem, anew))
        ratios = split_ratios.compute_ratios(problem, anew)
        reached = _has_ratio(problem, ratios, moved)
        moved = np.where(reached, moved, 0.0)
        flow = sp.csr_array(kept + sp.csr_array(split_ratios.apply_ratios(problem, ratios, moved)))
        stays = sent_by_demand(problem, kept)
        return _Solved(
            flow=flow,
            served=stays + moved,
            kept=stays,
            is_optimal=is_optimal,
            is_all_free=bool(self.is_free[problem.rate_mbps > 0].all()),
            backend=backend,
        )


def _has_ratio(problem: Traffic, ratios: sp.coo_array, moved: Floats) -> Bools:
    """Return whether split ratios lead the moved part of each demand away from its source, (K,)."""
    nodes = len(problem.nodes)
    known = np.unique(ratios.row.astype(np.int64) * nodes + problem.tail[ratios.col])
    return np.asarray((moved > 0) & np.isin(problem.target_row * nodes + problem.source, known))


def _keep_only(problem: Traffic, now: sp.csr_array, wrong: Bools) -> _Solved:
    """Return the plan that sheds the demands over drained elements, the others reduced to the capacities."""
    kept = sp.csr_array(sp.diags_array(np.where(wrong, 0.0, 1.0)) @ now)
    load = np.asarray(kept.sum(axis=0)).ravel()
    factor = np.minimum(1.0, problem.capacity_mbps / np.maximum(load, 1e-300))
    entries = kept.tocoo()
    share = np.ones(len(problem.demands))
    np.minimum.at(share, entries.row, factor[entries.col])
    kept = sp.csr_array(sp.diags_array(share) @ kept)
    stays = sent_by_demand(problem, kept)
    return _Solved(flow=kept, served=stays, kept=stays, is_optimal=False, is_all_free=False, backend="none")


def _decide(problem: Traffic, solved: _Solved, least_moved: float) -> Decision[Routing]:
    flow = solved.flow
    load = np.asarray(flow.sum(axis=0)).ravel()
    excess = load / problem.capacity_mbps
    if (worst := float(excess.max(initial=0.0))) > 1:  # a solver's tolerance
        flow = sp.csr_array(flow / worst)
        solved = replace(solved, served=solved.served / worst, kept=solved.kept / worst)
    plan = routing.routing_by_demand(problem, flow)
    served = verify_flow(problem, plan).served_mbps
    moved = np.maximum(served - solved.kept, 0.0)
    rows = np.flatnonzero(moved > FIT_TOLERANCE * problem.rate_mbps)
    table = pd.DataFrame(
        {
            "source": problem.demands["source"].to_numpy()[rows],
            "target": problem.demands["target"].to_numpy()[rows],
            "rate_mbps": moved[rows],
        }
    )
    value, everything = float(moved[rows].sum()), float(problem.rate_mbps.sum())
    is_best = solved.is_best(everything, least_moved)
    is_proven = is_best or (solved.is_optimal and solved.is_all_free)
    is_all_served = float(solved.served.sum()) >= everything * (1 - FIT_TOLERANCE)
    proof = Proof(
        status=Status.OPTIMAL if is_proven else Status.FEASIBLE,
        objective=value,
        bound=value if is_proven else (min(least_moved, value) if is_all_served else None),
        metric="moved_mbps",
        bound_scope=None if is_all_served and is_best else "plans that deliver the most",
        backend=solved.backend,
    )
    return Decision(
        plan=replace(plan, moved=table), proof=proof, guarantees=frozenset({"capacity", "demand"})
    )


# --- maintenance windows ------------------------------------------------------------------


def plan_windows(
    problem: Traffic, elements: dict[str, Drained], options: Options, until: float
) -> pd.DataFrame:
    """Return the maintenance window of each element: window, element; as few windows as possible.

    Elements share a window where all demand fits with all of them drained. An element that overloads links
    even alone has window 0, and so has one for which the time is too short. Elements are taken in the order
    of how many others they cannot be drained with.
    """
    names = list(elements)
    fits_alone = {name: fits_without(problem, elements[name], _options(options, until)) for name in names}
    usable = [name for name in names if fits_alone[name]]
    conflicts: dict[str, set[str]] = {name: set() for name in usable}
    for i, one in enumerate(usable):
        for other in usable[i + 1 :]:
            both = join(problem, {one: elements[one], other: elements[other]})
            if not fits_without(problem, both, _options(options, until)):
                conflicts[one].add(other)
                conflicts[other].add(one)
    chosen: list[list[str]] = []
    for name in sorted(usable, key=lambda one: -len(conflicts[one])):
        for window in chosen:
            if conflicts[name] & set(window):
                continue
            together = {other: elements[other] for other in [*window, name]}
            if len(window) < 2 or fits_without(problem, join(problem, together), _options(options, until)):
                window.append(name)
                break
        else:
            chosen.append([name])
    window_of = {name: number for number, window in enumerate(chosen, 1) for name in window}
    rows = sorted((window_of.get(name, 0), place) for place, name in enumerate(names))
    return pd.DataFrame(
        {"window": [number for number, _ in rows], "element": [names[place] for _, place in rows]}
    )


def fits_without(problem: Traffic, drained: Drained, options: Options) -> bool:
    """Return whether all demand fits the capacities without the drained elements."""
    without = remove(problem, drained)
    if not len(without.links) or without.unreachable.any():
        return False
    value = column_generation.route(without, enough=1 + 1e-6, options=replace(options, backend="highs")).proof
    return value.objective is not None and value.objective >= 1 - 1e-6


def remove(problem: Traffic, drained: Drained) -> Traffic:
    """Return the problem without drained links, in which a drained node is two: one sends, one receives.

    Nothing can pass them then, and all else stays as it is.
    """
    names = problem.nodes["node"].astype(str).to_numpy(dtype=object)
    receiver = names.copy()
    for node in np.flatnonzero(drained.nodes).tolist():
        name = f"{names[node]} (receives)"
        while name in set(names):
            name += "'"
        receiver[node] = name
    up = ~drained.links
    links = problem.links[up].assign(head=receiver[problem.head[up]], tail=names[problem.tail[up]])
    demands = problem.demands[["source", "target", "rate_mbps"]].assign(
        source=names[problem.source], target=receiver[problem.target]
    )
    every = np.r_[names, receiver[drained.nodes]]
    return Traffic(nodes=pd.DataFrame({"node": every}), links=links, demands=demands)
