"""The linear program of a network with drained elements: the most traffic, then the most that stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder, Variables
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import SOLVER
from planner_models.flows import split_ratios
from planner_models.traffic.plan.moved_traffic import largest_flows
from planner_models.traffic.plan.plan import sent_by_demand
from planner_models.traffic.problem.network_elements import ElementNames
from planner_models.traffic.problem.problem import Traffic

MAX_COLUMNS: Final = 1_500_000  # variables of a linear program
FIT_TOLERANCE: Final = SOLVER  # of all demand; where all but this share fits, all counts as fitting


def is_whole(problem: Traffic, now: sp.csr_array) -> Bools:
    """Return whether the flow of each demand, (K, E), brings its whole rate to its target, (K,).

    It does not where links are gone or where the demand was shed.
    """
    surplus = sp.csr_array(now @ problem.incidence.T).tocoo()
    rate = problem.rate_mbps
    is_end = (surplus.col == problem.source[surplus.row]) | (surplus.col == problem.target[surplus.row])
    lost = np.abs(surplus.data) > FIT_TOLERANCE * rate[surplus.row]
    is_conserved = sent_by_demand(problem, now) >= rate * (1 - FIT_TOLERANCE)
    is_conserved[surplus.row[~is_end & lost]] = False
    return np.asarray(is_conserved | (rate == 0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """Flow (K, E) of each demand, its staying part (K,), and whether it is proven to move the least."""

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


def find_most_kept(problem: Traffic, drained: Drained, now: sp.csr_array, wrong: Bools) -> Floats:
    """Return the most traffic of each demand over drained elements that can stay on its links, (K,)."""
    entries = sp.csr_array(sp.diags_array(wrong * 1.0) @ now).tocoo()
    allowed = ~drained.forbidden(problem, entries.row.astype(np.int64), entries.col) & (entries.data > 0)
    usable = (entries.data[allowed], (entries.row[allowed], entries.col[allowed]))
    return np.minimum(largest_flows(problem, sp.csr_array(usable, shape=now.shape)), problem.rate_mbps)


def solve_program(
    problem: Traffic,
    drained: Drained,
    now: sp.csr_array,
    wrong: Bools,
    is_free: Bools,
    options: Options,
    deadline: Deadline,
) -> Solved | None:
    """Solve the program in which the demands `is_free` (K,) may move; None without a solution."""
    program = _Program(problem, drained, now, wrong, is_free)
    if not len(program.free) and (program.residual >= 0).all():
        stays = sent_by_demand(problem, now)
        return Solved(flow=now, served=stays, kept=stays, is_optimal=True, is_all_free=False, backend="none")
    if program.count > MAX_COLUMNS or (program.residual < 0).any():
        return None
    total = float(problem.rate_mbps[is_free].sum())
    solution, delivers_most = (
        backends.solve(program.build(total), deadline.options(options)),
        True,
    )
    if solution.status is Status.INFEASIBLE:
        largest = backends.solve(program.build(None), deadline.options(options))
        if largest.x is None or largest.objective is None:
            return None
        solution = backends.solve(
            program.build(largest.objective * (1 - FIT_TOLERANCE)), deadline.options(options)
        )
        delivers_most = largest.status is Status.OPTIMAL and solution.x is not None
        solution = largest if solution.x is None else solution
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
        problem, rate, links = self.problem, self.problem.rate_mbps, len(self.problem.links)
        demands, nodes = len(self.free), len(problem.nodes)
        is_all = least_mbps is not None and least_mbps >= float(rate[self.free].sum())
        position = np.full(len(problem.demands), -1)
        position[self.free] = np.arange(demands)
        source = problem.source[self.row]
        out = (problem.tail[self.link] == source) * 1.0 - (problem.head[self.link] == source)
        staying = rate[self.staying]

        m = ProgramBuilder(sense="maximize", name="traffic drain")
        y = m.variables("stays", len(staying), upper=1.0, cost=staying)
        g = m.variables("kept", len(out), upper=self.most, cost=out)
        z = m.variables("anew", len(self.anew_link))
        w = m.variables("moved", demands, cost=1.0 if least_mbps is None else 0.0)
        served = (y * staying).sum_by(position[self.staying], demands) + w
        served += (g * out).sum_by(position[self.row], demands)
        m.constrain("served", served, lower=rate[self.free] if is_all else 0.0, upper=rate[self.free])
        # what stays: each node but the ends of its demand sends what it gets
        ends = np.stack([problem.tail[self.link], problem.head[self.link]])
        key = self.row * nodes + ends
        is_inner = (ends != problem.source[self.row]) & (ends != problem.target[self.row])
        distinct, row = np.unique(key[is_inner], return_inverse=True)
        end, entry = np.nonzero(is_inner)
        stays = (g[entry] * np.array([1.0, -1.0])[end]).sum_by(row, len(distinct))
        m.constrain("stays", stays, equal=0.0)

        def at_nodes(variables: Variables, target: Ints, node: Ints) -> Expression:
            is_inner = node != self.targets[target]
            rows = (target * nodes + node)[is_inner]
            return variables[is_inner].sum_by(rows, len(self.targets) * nodes)

        # what is routed anew: each node but the target sends what it gets and its own
        leaves = at_nodes(z, self.anew_target, problem.tail[self.anew_link])
        enters = at_nodes(z, self.anew_target, problem.head[self.anew_link])
        begins = at_nodes(
            w, np.searchsorted(self.targets, problem.target[self.free]), problem.source[self.free]
        )
        m.constrain("anew", leaves - enters - begins, equal=0.0)
        load = self.now[self.staying].T @ y + g.sum_by(self.link, links) + z.sum_by(self.anew_link, links)
        m.constrain("capacity", load, upper=self.residual)
        if least_mbps is not None and not is_all:
            total = staying[None, :] @ y + out[None, :] @ g + w.sum()
            m.constrain("total", total, lower=least_mbps)
        return m.build()

    def read(self, x: Floats, is_optimal: bool, backend: str) -> Solved:
        """Return the flows of a solution."""
        problem, starts = self.problem, self.starts
        shape = (len(problem.demands), len(problem.links))
        share = np.where(self.is_free | self.wrong, 0.0, 1.0)
        share[self.staying] = x[: starts[1]]
        retained = sp.csr_array(sp.diags_array(share) @ self.now)
        g = np.where(x[starts[1] : starts[2]] > 0, x[starts[1] : starts[2]], 0.0)
        retained = sp.csr_array(retained + sp.csr_array((g, (self.row, self.link)), shape=shape))
        moved = np.zeros(len(problem.demands))
        w = x[starts[3] :]
        moved[self.free] = np.where(w > FIT_TOLERANCE * problem.rate_mbps[self.free], w, 0.0)
        z = x[starts[2] : starts[3]]
        row = np.searchsorted(problem.targets, self.targets[self.anew_target])
        used = z > FIT_TOLERANCE * float(z.max(initial=0.0)) * 1e-3
        anew = sp.coo_array(
            (z[used], (row[used], self.anew_link[used])), shape=(len(problem.targets), len(problem.links))
        )
        anew = split_ratios.drop_stranded_flow(problem, split_ratios.remove_cycles(problem, anew))
        ratios = split_ratios.compute_ratios(problem, anew)
        reached = _has_ratio(problem, ratios, moved)
        moved = np.where(reached, moved, 0.0)
        flow = sp.csr_array(retained + sp.csr_array(split_ratios.apply_ratios(problem, ratios, moved)))
        stays = sent_by_demand(problem, retained)
        return Solved(
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
    keys_used = np.unique(ratios.row.astype(np.int64) * nodes + problem.tail[ratios.col])
    return np.asarray((moved > 0) & np.isin(problem.target_row * nodes + problem.source, keys_used))


def keep_only(problem: Traffic, now: sp.csr_array, wrong: Bools) -> Solved:
    """Return the plan that sheds the demands over drained elements, the others reduced to the capacities."""
    retained = sp.csr_array(sp.diags_array(np.where(wrong, 0.0, 1.0)) @ now)
    load = np.asarray(retained.sum(axis=0)).ravel()
    factor = np.minimum(1.0, problem.capacity_mbps / np.maximum(load, 1e-300))
    entries = retained.tocoo()
    share = np.ones(len(problem.demands))
    np.minimum.at(share, entries.row, factor[entries.col])
    retained = sp.csr_array(sp.diags_array(share) @ retained)
    stays = sent_by_demand(problem, retained)
    return Solved(
        flow=retained, served=stays, kept=stays, is_optimal=False, is_all_free=False, backend="none"
    )


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


def find_elements(problem: Traffic, links: tuple[str, ...], nodes: tuple[str, ...]) -> dict[str, Drained]:
    """Return the links and the nodes of each name."""
    names = ElementNames(problem)
    elements: dict[str, Drained] = {}
    for name in links:
        rows = names.match_links(name, "links")
        is_link = np.zeros(len(problem.links), dtype=bool)
        is_link[rows] = True
        elements[name] = Drained(links=is_link, nodes=np.zeros(len(problem.nodes), dtype=bool))
    for name in nodes:
        for node in names.match_nodes(name, "nodes").tolist():
            is_node = np.zeros(len(problem.nodes), dtype=bool)
            is_node[node] = True
            label = str(problem.nodes["node"].iloc[node])
            elements[label] = Drained(links=np.zeros(len(problem.links), dtype=bool), nodes=is_node)
    if names.faults:
        raise InputError(*names.faults)
    return elements


def join(problem: Traffic, elements: dict[str, Drained]) -> Drained:
    """Return all elements as one."""
    is_link = np.zeros(len(problem.links), dtype=bool)
    is_node = np.zeros(len(problem.nodes), dtype=bool)
    for element in elements.values():
        is_link |= element.links
        is_node |= element.nodes
    return Drained(links=is_link, nodes=is_node)


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
