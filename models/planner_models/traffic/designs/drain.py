"""Maintenance: take links and nodes out of use, and keep as much traffic as possible on its present routes.

Linear program, for the flow f of each demand now, drained links and nodes, and the rate r of each demand:

    max sum_k s_k, then max the traffic that stays
    s_k = y_k r_k + g_k + w_k <= r_k,   load <= capacity

y_k is the part of a demand off the drained elements that stays as it is; g is a flow on links that a demand
over drained elements uses now, at most as much as now; w_k goes over any links, one flow for each target. No
flow uses a drained link, or passes a drained node: its own demands still start and end there.

A first program keeps all other demands as they are. Where it serves all demand, and keeps as much as can
stay, no plan moves less; else a second one may move every demand.

Maintenance windows say which elements can be drained together without overload, in as few as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.parameters import spread
from planner.contract.proof import Status
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner_models.traffic.designs import column_generation, ecmp
from planner_models.traffic.designs.drain_program import (
    FIT_TOLERANCE,
    Drained,
    Solved,
    find_elements,
    find_most_kept,
    is_whole,
    join,
    keep_only,
    remove,
    solve_program,
)
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan import schema
from planner_models.traffic.plan.moved_traffic import share_flows
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

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


@dataclass(frozen=True, kw_only=True)
class PresentPlan:
    """The plan whose traffic is to move little, where there is no previous one."""

    present: Present = None
    start: Start = "ecmp"

    def share(self, problem: Traffic, previous: Decision[Routing] | None, options: Options) -> sp.csr_array:
        """Return the present flow of each demand on each link, (K, E), in its shares."""
        if previous is not None and previous.plan is not None:
            return share_flows(problem, previous.plan.flows, previous.plan.shed)
        if self.present is not None:
            return share_flows(problem, *_read_flows(problem, self.present))
        return _flow_of_design(problem, self.start, options)


@shed_unreachable
@spread(present=PresentPlan())
def route(
    problem: Traffic,
    *,
    links: DrainLinks = (),
    nodes: DrainNodes = (),
    present: PresentPlan,
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
    deadline = Deadline.of(options)
    elements = find_elements(problem, links, nodes)
    now = present.share(problem, previous, options)
    table = None
    if windows:
        table = plan_windows(problem, elements, options, deadline)
        first = set(table["element"][table["window"] == 1])
        elements = {name: element for name, element in elements.items() if name in first}
    decision = _drain(problem, join(problem, elements), now, options, deadline)
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


def _read_flows(problem: Traffic, folder: Path) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return the table `flows` of a plan in a folder, or that of its routes, and its table `shed`."""
    tables = (schema.FLOWS, schema.ROUTES, schema.SHED)
    files = find_tables(tables, folder, ("flows", "routes", "shed"))
    if not {"flows", "routes"} & files.keys():
        raise InputError(f"present: {folder}: has neither a table 'flows' nor 'routes'")
    read = read_tables(tables, files)
    flows = read["flows"] if "flows" in read else routing.routing_from_tables(problem, read).flows
    return flows, read.get("shed")


def _flow_of_design(problem: Traffic, start: str, options: Options) -> sp.csr_array:
    """Return the flow of each demand on each link, (K, E) Mbit/s, by the design `start`."""
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
    problem: Traffic, drained: Drained, now: sp.csr_array, options: Options, deadline: Deadline
) -> Decision[Routing]:
    """Return the plan that delivers the most, and of these moves the least."""
    entries = now.tocoo()
    wrong = np.zeros(len(problem.demands), dtype=bool)
    wrong[entries.row[drained.forbidden(problem, entries.row, entries.col) & (entries.data > 0)]] = True
    wrong |= ~is_whole(problem, now)
    rate = problem.rate_mbps
    everything = float(rate.sum())
    most_kept = find_most_kept(problem, drained, now, wrong)
    least_moved = float((rate[wrong] - most_kept[wrong]).sum())
    best: Solved | None = None
    for is_free in (wrong, rate > 0):
        if is_free is not wrong and best is not None and best.is_best(everything, least_moved):
            break
        solved = solve_program(problem, drained, now, wrong, is_free, options, deadline)
        if solved is not None:
            best = solved
        if deadline.is_over:
            break
    if best is None:
        best = keep_only(problem, now, wrong)
    return _decide(problem, best, least_moved)


def _decide(problem: Traffic, solved: Solved, least_moved: float) -> Decision[Routing]:
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
    proof = judged(
        "min",
        value,
        value if is_proven else (min(least_moved, value) if is_all_served else None),
        is_optimal=is_proven,
        metric="moved_mbps",
        bound_scope=None if is_all_served and is_best else "plans that deliver the most",
        backend=solved.backend,
    )
    return Decision(
        plan=replace(plan, moved=table), proof=proof, guarantees=frozenset({"capacity", "demand"})
    )


def _fill_windows(names: Sequence[str], fit_together: Callable[[Sequence[str]], bool]) -> list[list[str]]:
    """Return windows of elements that fit together, first fit by falling number of conflicts in pairs."""
    conflicts: dict[str, set[str]] = {name: set() for name in names}
    for name, other in combinations(names, 2):
        if not fit_together([name, other]):
            conflicts[name].add(other)
            conflicts[other].add(name)
    windows: list[list[str]] = []
    for name in sorted(names, key=lambda element: -len(conflicts[element])):
        for window in windows:
            if not conflicts[name] & set(window) and (len(window) < 2 or fit_together([*window, name])):
                window.append(name)
                break
        else:
            windows.append([name])
    return windows


def plan_windows(
    problem: Traffic, elements: dict[str, Drained], options: Options, deadline: Deadline
) -> pd.DataFrame:
    """Return the maintenance window of each element: window, element; as few windows as possible.

    Elements share a window where all demand fits with all of them drained. An element that overloads links
    even alone has window 0, and so has one for which the time is too short. Elements are taken in the order
    of how many others they cannot be drained with.
    """
    names = list(elements)
    fits_alone = {name: fits_without(problem, elements[name], deadline.options(options)) for name in names}
    usable = [name for name in names if fits_alone[name]]

    def fit_together(names: Sequence[str]) -> bool:
        drained = join(problem, {name: elements[name] for name in names})
        return fits_without(problem, drained, deadline.options(options))

    windows = _fill_windows(usable, fit_together)
    window_of = {name: number for number, window in enumerate(windows, 1) for name in window}
    rows = sorted((window_of.get(name, 0), index) for index, name in enumerate(names))
    return pd.DataFrame(
        {"window": [number for number, _ in rows], "element": [names[index] for _, index in rows]}
    )


def fits_without(problem: Traffic, drained: Drained, options: Options) -> bool:
    """Return whether all demand fits the capacities without the drained elements."""
    without = remove(problem, drained)
    if not len(without.links) or without.unreachable.any():
        return False
    value = column_generation.route(without, enough=1 + 1e-6, options=replace(options, backend="highs")).proof
    return value.objective is not None and value.objective >= 1 - 1e-6
