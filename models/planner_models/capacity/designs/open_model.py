"""The whole program of network design with names, for constraints and objectives of the user.

Beside the master program of `optimum`, which has cuts in place of flows, it has the flows of every year and
state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.completion import complete
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.options import Options, Service
from planner_models.capacity.designs import optimum
from planner_models.capacity.plan.check import evaluate, least_shed
from planner_models.capacity.plan.module_limits import largest_counts
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import FITS
from planner_models.capacity.routing import (
    FlowProgram,
    Flows,
    plan_flows,
    required_rate,
    usable_share,
)

TIME_LIMIT_S: Final = 20.0
"""Time limit where the user names none."""
NO_FAILURE: Final = "no failure"
"""Name of the state in which nothing fails, in tables of members."""


def open_model(problem: CapacityPlanning, *, service: Service = "best") -> OpenModel[Purchases]:
    """Return the integer program of the least cost with the flows of every year and state, open to changes.

    Variables, with the columns of their members:

    modules  modules that are bought (link, module, year)
    setup    1 where the setup cost of a link is paid (link, year)
    flow     Mbit/s to a target on a link (state, target, link, tail, head, year)
    tunnel   Mbit/s in a tunnel (state, tunnel, year)
    shed     Mbit/s of a demand that is left out (state, demand, source, target, year)

    Constraints: conserve, capacity, unserved, limits, one module and setup. The state without failures is
    called "no failure". Plans leave no more demand unserved than whatever is bought must. The search starts
    from the plan of the design `optimum`, and ends at its gap, 0.01%, or after 20 s. It is practical for up
    to some tens of links and states: every state has its own flows.

    raises  InputError with a budget, and with service "all" where some demand cannot be served
    """
    if problem.budget is not None:
        raise InputError(
            "network: budget is set, and the model that can be changed is that of the least cost; leave the "
            "budget out, and add a constraint on model.objective"
        )
    must = least_shed(problem)
    offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    is_all = float(must.max(initial=0.0)) <= FITS * offered
    if service == "all" and not is_all:
        raise InputError(
            f"service is 'all', but {float(must.max()):,.6g} Mbit/s are unserved whatever is bought"
        )
    flows = FlowProgram(problem)
    program = _build(problem, flows, must)

    def read(x: Floats) -> Purchases:
        counts = np.round(program.values("modules", x))
        years = [_read_flows(problem, flows, program, x, year) for year in range(len(counts))]
        return plan_flows(problem, flows, counts, years)

    @cache
    def start(options: Options) -> Floats | None:
        plan = optimum.plan(problem, options=options).plan
        if plan is None:
            return None
        return complete(program, {"modules": evaluate(problem, plan).counts}, options)

    return OpenModel(
        program=program.describe(
            "the cost of all capacity and of routing", metric="cost_of_all" if is_all else "total_cost"
        ),
        read=read,
        members=_list_members(problem, flows),
        then={"flow": np.tile(_lengths(problem)[flows.arcs.line], program_size(program, flows))},
        goals=_make_goals(problem, flows),
        scope=None if is_all else "plans that leave no more unserved than any must",
        follows=frozenset({"setup"}),
        start=start,
        options={"gap": optimum.GAP, "time_limit_s": TIME_LIMIT_S},
    )


def program_size(program: LinearProgram, flows: FlowProgram) -> int:
    """Return the number of copies of the arcs in block `flow`: years times states times targets."""
    block = next(block for block in program.columns if block.name == "flow")
    return (block.stop - block.start) // max(len(flows.arcs.line), 1)


def _lengths(problem: CapacityPlanning) -> Floats:
    """Return a positive length of each link, (L,), so that no flow runs in a circle."""
    length = np.where(np.isnan(problem.length_km), 1.0, problem.length_km)
    return np.maximum(length / max(float(length.max(initial=0.0)), 1e-9), 1e-3)


def _required(problem: CapacityPlanning) -> Floats:
    """Return the rate of each demand that must be routed in each year and state, (Y, 1 + S, D)."""
    states = 1 + len(problem.states.names)
    years = range(len(problem.year_numbers))
    rates = [[required_rate(problem, year, state) for state in range(states)] for year in years]
    required = np.array(rates).reshape(len(years), states, len(problem.demands))
    return np.where(problem.cut_off[None], 0.0, required)


def _build(problem: CapacityPlanning, flows: FlowProgram, must: Floats) -> LinearProgram:
    """Return the program; must is the least unserved rate in each year and state, (Y, 1 + S)."""
    arcs, modules, limits = flows.arcs, problem.options, np.floor(largest_counts(problem))
    required, price = _required(problem), problem.price_factor
    years, states, demands = required.shape
    columns, tunnels = flows.arc_columns, flows.flow_columns - flows.arc_columns
    fees = np.flatnonzero(problem.setup_cost > 0)
    is_normal = (np.arange(states) == 0)[None, :, None]
    routing = flows.column_cost(problem.routing_cost[arcs.line])
    up = np.array([usable_share(problem, state) for state in range(states)])[:, arcs.row_line]
    cost = price[:, None, None] * is_normal
    until = np.triu(np.ones((years, years)))  # until[u, t]: what is bought in u counts in t

    m = ProgramBuilder(name="capacity", offset=problem.installed_cost)
    n = m.variables(
        "modules", (years, len(modules.link)), upper=limits, integer=True, cost=price[:, None] * modules.cost
    )
    z = m.variables(
        "setup", (years, len(fees)), upper=1.0, integer=True, cost=price[:, None] * problem.setup_cost[fees]
    )
    f = m.variables("flow", (years, states, columns), cost=cost * routing[:columns])
    x = m.variables("tunnel", (years, states, tunnels), cost=cost * routing[columns:])
    shed = m.variables("shed", (years, states, demands), upper=required)

    conserve, load = flows.matrix[: flows.first_load], flows.matrix[flows.first_load :]
    supply = np.array([[flows.supply(rate) for rate in of_year] for of_year in required])
    balance = _product(conserve, flows, f, x, shed)
    m.constrain("conserve", balance, equal=supply.reshape(balance.shape))
    on_line = sp.csr_array(
        (modules.size, (np.arange(len(modules.link)), modules.link)),
        shape=(len(modules.link), len(problem.lines)),
    )
    owned, leased = np.flatnonzero(~modules.leased), np.flatnonzero(modules.leased)
    bought = (until.T @ n[:, owned]) @ on_line[owned]  # (Y, L)
    if len(leased):
        bought += n[:, leased] @ on_line[leased]
    carried = _product(load, flows, f, x, shed) - bought[:, arcs.row_line][:, None, :] * up
    m.constrain("capacity", carried, upper=problem.installed_mbps[arcs.row_line] * up)
    cut = (problem.rate_mbps * problem.cut_off[0]).sum(axis=1)[:, None]
    m.constrain("unserved", shed.sum(axis=2), upper=np.maximum(must - cut, 0.0))
    m.constrain("limits", n[:, owned].sum(axis=0), upper=limits[owned])
    if problem.one_module:
        _allow_one_module(m, problem, n)
    position = np.full(len(problem.lines), -1)
    position[fees] = np.arange(len(fees))
    paid = np.flatnonzero(position[modules.link] >= 0)
    m.constrain(
        "setup", n[:, paid] - (until.T @ z)[:, position[modules.link[paid]]] * limits[paid], upper=0.0
    )
    return m.build()


def _allow_one_module(m: ProgramBuilder, problem: CapacityPlanning, n: Expression) -> None:
    """Add the rows that leave each link at most one module, owned or leased, in each year."""
    modules, lines = problem.options, len(problem.lines)
    owned, leased = np.flatnonzero(~modules.leased), np.flatnonzero(modules.leased)
    on_links = n[:, owned].sum(axis=0).sum_by(modules.link[owned], lines)
    if not len(leased):
        m.constrain("one module", on_links, upper=1.0)
    for year in range(len(problem.year_numbers) if len(leased) else 0):
        on_lease = n[year, leased].sum_by(modules.link[leased], lines)
        m.constrain(f"one module {year}", on_links + on_lease, upper=1.0)


def _product(
    matrix: sp.csr_array, flows: FlowProgram, f: Expression, x: Expression, shed: Expression
) -> Expression:
    """Return rows (Y, 1 + S, R) of a matrix (R, columns) over flows on arcs, in tunnels, and shed demand."""
    ends = np.cumsum([0, flows.arc_columns, flows.flow_columns - flows.arc_columns, shed.shape[-1]])
    parts = [
        block @ sp.csr_array(matrix[:, first:last]).T
        for block, first, last in zip((f, x, shed), ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]
    total: Expression = parts[0] + parts[1] + parts[2]
    return total


def _read_flows(
    problem: CapacityPlanning, flows: FlowProgram, program: LinearProgram, x: Floats, year: int
) -> Flows:
    """Return the flows without failures in a year, Mbit/s, with the demand that is left out."""
    on_arcs, tunnels, shed = (
        np.maximum(program.values(name, x)[year, 0], 0.0) for name in ("flow", "tunnel", "shed")
    )
    lost = problem.rate_mbps[year] - _required(problem)[year, 0]
    rounding = problem.rounding_share * float(problem.rate_mbps[year].sum())
    shed = shed if shed.sum() > rounding else np.zeros_like(shed)
    return Flows(on_arcs.reshape(len(flows.targets), -1), tunnels, shed + lost)


def _list_members(problem: CapacityPlanning, flows: FlowProgram) -> Mapping[str, Callable[[], pd.DataFrame]]:
    """Return the tables of members of each block of variables."""
    years = np.array([int(year) for year in problem.year_numbers])
    states = np.array([NO_FAILURE, *problem.states.names], dtype=object)
    links = pd.Index(problem.names)
    nodes = pd.Index(problem.nodes["node"].astype(str))
    options, arcs = problem.options, flows.arcs

    def link(rows: Ints) -> Any:
        return pd.Categorical.from_codes(rows, links)

    def node(rows: Ints) -> Any:
        return pd.Categorical.from_codes(rows, nodes)

    def by_year(rows: int, **columns: Callable[[Ints], object]) -> pd.DataFrame:
        row = np.tile(np.arange(rows), len(years))
        made = {name: make(row) for name, make in columns.items()}
        return pd.DataFrame({**made, "year": np.repeat(years, rows)})

    def by_state(rows: int, **columns: Callable[[Ints], object]) -> pd.DataFrame:
        frame = by_year(
            len(states) * rows,
            **{name: lambda row, make=make: make(row % rows) for name, make in columns.items()},
        )
        state = np.tile(np.repeat(np.arange(len(states)), rows), len(years))
        return pd.DataFrame({"state": pd.Categorical.from_codes(state, pd.Index(states)), **frame})

    fees = np.flatnonzero(problem.setup_cost > 0)
    count = len(arcs.line)
    kinds = np.array(flows.targets, dtype=np.int64)
    names = np.array(options.name, dtype=object)
    members: dict[str, Callable[[], pd.DataFrame]] = {
        "modules": lambda: by_year(
            len(names), link=lambda row: link(options.link[row]), module=lambda row: names[row]
        ),
        "flow": lambda: by_state(
            flows.arc_columns,
            target=lambda row: node(kinds[row // count]),
            link=lambda row: link(arcs.line[row % count]),
            tail=lambda row: node(arcs.start[row % count]),
            head=lambda row: node(arcs.end[row % count]),
        ),
        "shed": lambda: by_state(
            len(problem.demands),
            source=lambda row: node(problem.source[row]),
            target=lambda row: node(problem.target[row]),
        ),
    }
    if len(fees):
        members["setup"] = lambda: by_year(len(fees), link=lambda row: link(fees[row]))
    if flows.tunnels is not None:
        tunnels = np.array(flows.tunnels.names, dtype=object)
        members["tunnel"] = lambda: by_state(len(tunnels), tunnel=lambda row: tunnels[row])
    return members


def _make_goals(problem: CapacityPlanning, flows: FlowProgram) -> dict[str, Goal]:
    """Return the aims by which plans near the least cost may differ."""
    modules, limits = problem.options, np.floor(largest_counts(problem))

    def upgrade_fewest(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        upgraded = m.variables(
            "upgraded", len(problem.lines), upper=1.0, integer=True, labels=lambda: list(problem.names)
        )
        bought = m["modules"].sum(axis=0) - upgraded[modules.link] * limits
        m.constrain("modules of upgraded", bought, upper=0.0)
        return upgraded.sum()

    def buy_fewest(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return m["modules"].sum()

    def buy_least_on(m: ProgramBuilder, name: str, _optimum: Floats) -> Expression:
        if name not in problem.names:
            raise InputError(f"least_on: '{name}' is no link{did_you_mean(name, problem.names)}")
        columns = np.flatnonzero(modules.link == list(problem.names).index(name))
        return (m["modules"][:, columns] * modules.size[columns]).sum()

    def carry_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        on_links: Expression = m["flow"][:, 0].sum()
        if flows.tunnels is None:
            return on_links
        on_links += (m["tunnel"][:, 0] * flows.tunnels.arcs.sum(axis=1)).sum()
        return on_links

    return {
        "fewest_links": Goal(about="links that are upgraded", build=upgrade_fewest),
        "fewest_modules": Goal(about="modules that are bought", build=buy_fewest),
        "least_traffic": Goal(
            about="traffic on all links together, without failures", unit="Mbit/s", build=carry_least
        ),
        "least_on": Goal(
            about="capacity that is bought on a link", unit="Mbit/s", build=buy_least_on, value="link"
        ),
    }
