"""Time and memory to build a model, until it is in the solver.

One multicommodity flow problem (each node sends to all others, at least cost, within capacities) is
built four ways and handed to HiGHS, which is not run: arrays written by hand for this one model,
`LinearProgram`, linopy with whole-array expressions, and Pyomo. Each measurement has a process of
its own; times are medians. On a small network every way is also solved, and the optima must agree.

    python -m benchmarks.model_building [--sizes 50000,400000] [--repeats 5] [--quick]
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.common import machine, parser_of

DEGREE = 4
SMALL_VARIABLES = 400
"""Variables of the network on which the optima are compared."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Links `tail` -> `head` (E,) with `cost` and `capacity` (E,); `net` (V, V) is the supply of source k
    into node v: all its demand at itself, minus each demand at its target."""

    nodes: int
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    cost: NDArray[np.float64]
    capacity: NDArray[np.float64]
    net: NDArray[np.float64]


def network(variables: int, seed: int = 1) -> Network:
    """Return a ring with chords, where sources times links is about `variables`."""
    rng = np.random.default_rng(seed)
    nodes = max(DEGREE + 2, round((variables / DEGREE) ** 0.5))
    steps = np.array([1, -1, 3, -3])[:DEGREE]
    tail = np.repeat(np.arange(nodes), DEGREE)
    head = (tail + np.tile(steps, nodes)) % nodes
    demand = rng.lognormal(0.0, 1.0, (nodes, nodes))
    np.fill_diagonal(demand, 0.0)
    net = -demand
    np.fill_diagonal(net, demand.sum(axis=1))
    return Network(
        nodes=nodes,
        tail=tail,
        head=head,
        cost=rng.uniform(1.0, 2.0, tail.size),
        capacity=np.full(tail.size, float(demand.sum())) * rng.uniform(0.5, 1.0, tail.size) / 2,
        net=net,
    )


def build_arrays(instance: Network) -> highspy.Highs:
    """Build the arrays directly: each flow leaves its tail, enters its head, and loads its link."""
    nodes, links = instance.nodes, instance.tail.size
    count, rows = nodes * links, nodes * nodes + links
    source = np.repeat(np.arange(nodes, dtype=np.int32), links)
    link = np.tile(np.arange(links, dtype=np.int32), nodes)
    indices = np.empty((count, 3), dtype=np.int32)
    indices[:, 0] = source * nodes + instance.tail[link]
    indices[:, 1] = source * nodes + instance.head[link]
    indices[:, 2] = nodes * nodes + link
    highs = _silent_highs()
    highs.passModel(
        count,
        rows,
        3 * count,
        int(highspy.MatrixFormat.kColwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        np.tile(instance.cost, nodes),
        np.zeros(count),
        np.full(count, np.inf),
        np.concatenate([instance.net.ravel(), np.full(links, -np.inf)]),
        np.concatenate([instance.net.ravel(), instance.capacity]),
        np.arange(0, 3 * count + 1, 3, dtype=np.int32),
        indices.ravel(),
        np.tile([1.0, -1.0, 1.0], count),
        np.zeros(count, dtype=np.int32),
    )
    return highs


def build_linear_program(instance: Network) -> highspy.Highs:
    """Build a LinearProgram, as the formulations of planner do."""
    import scipy.sparse as sp

    from planner.backends.highs import load
    from planner.backends.linear_program import LinearProgram, Rows

    nodes, links = instance.nodes, instance.tail.size
    ones, every = np.ones(links), np.arange(links)
    incidence = sp.csr_array(
        (np.concatenate([ones, -ones]), (np.concatenate([instance.tail, instance.head]), np.tile(every, 2))),
        shape=(nodes, links),
    )
    model = LinearProgram.build(
        cost=np.tile(instance.cost, nodes),
        rows=[
            Rows(
                "conserve",
                sp.kron(sp.eye_array(nodes), incidence, format="csr"),
                lower=instance.net.ravel(),
                upper=instance.net.ravel(),
            ),
            Rows(
                "capacity",
                sp.kron(np.ones((1, nodes)), sp.eye_array(links), format="csr"),
                upper=instance.capacity,
            ),
        ],
    )
    return load(model)


def build_linopy(instance: Network) -> highspy.Highs:
    """Build linopy's array expressions, grouped by the ends of links."""
    import linopy
    import pandas as pd
    import xarray as xr

    nodes, links = instance.nodes, instance.tail.size
    model = linopy.Model()
    source, link = pd.RangeIndex(nodes, name="source"), pd.RangeIndex(links, name="link")
    flow = model.add_variables(lower=0.0, coords=[source, link], name="flow")
    leaving = (1 * flow).groupby(pd.Series(instance.tail, index=link, name="node")).sum()
    entering = (1 * flow).groupby(pd.Series(instance.head, index=link, name="node")).sum()
    net = xr.DataArray(instance.net, coords=[source, pd.RangeIndex(nodes, name="node")])
    model.add_constraints(leaving - entering == net, name="conserve")
    capacity = xr.DataArray(instance.capacity, coords=[link])
    model.add_constraints(flow.sum("source") <= capacity, name="capacity")
    model.add_objective((flow * xr.DataArray(instance.cost, coords=[link])).sum())
    highs: highspy.Highs = model.to_highspy()
    return highs


def build_pyomo(instance: Network) -> highspy.Highs:
    """Build a Pyomo model by rules, and pass it through Pyomo's own interface to HiGHS."""
    import pyomo.environ as pyo
    from pyomo.contrib.appsi.solvers import Highs

    nodes, links = instance.nodes, instance.tail.size
    tail, head = instance.tail.tolist(), instance.head.tolist()
    leaving: list[list[int]] = [[] for _ in range(nodes)]
    entering: list[list[int]] = [[] for _ in range(nodes)]
    for e in range(links):
        leaving[tail[e]].append(e)
        entering[head[e]].append(e)
    net, cost, capacity = instance.net.tolist(), instance.cost.tolist(), instance.capacity.tolist()

    m = pyo.ConcreteModel()
    m.K, m.V, m.E = pyo.RangeSet(0, nodes - 1), pyo.RangeSet(0, nodes - 1), pyo.RangeSet(0, links - 1)
    m.flow = pyo.Var(m.K, m.E, domain=pyo.NonNegativeReals)
    m.conserve = pyo.Constraint(
        m.K,
        m.V,
        rule=lambda m, k, v: (
            sum(m.flow[k, e] for e in leaving[v]) - sum(m.flow[k, e] for e in entering[v]) == net[k][v]
        ),
    )
    m.capacity = pyo.Constraint(m.E, rule=lambda m, e: sum(m.flow[k, e] for k in m.K) <= capacity[e])
    m.cost = pyo.Objective(expr=pyo.quicksum(cost[e] * m.flow[k, e] for k in m.K for e in m.E))
    solver = Highs()
    solver.set_instance(m)
    highs: highspy.Highs = solver._solver_model
    _live_models.append(m)  # the solver refers to it weakly
    return highs


_live_models: list[Any] = []

WAYS: dict[str, Callable[[Network], highspy.Highs]] = {
    "arrays by hand": build_arrays,
    "LinearProgram": build_linear_program,
    "linopy": build_linopy,
    "Pyomo": build_pyomo,
}


def _silent_highs() -> highspy.Highs:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return highs


def measure(way: str, variables: int) -> dict[str, Any]:
    """Measure seconds and added peak memory of one build, in MB, after a tiny one that imports."""
    WAYS[way](network(SMALL_VARIABLES))
    instance = network(variables)
    gc.collect()
    _reset_peak()
    before = _peak_mb()
    started = time.perf_counter()
    highs = WAYS[way](instance)
    seconds = time.perf_counter() - started
    return {"variables": highs.getNumCol(), "way": way, "seconds": seconds, "mb": _peak_mb() - before}


def _reset_peak() -> None:
    with contextlib.suppress(OSError):  # then the peak of what came before hides a lower one
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    try:
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return float(fields["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def optimum(way: str) -> float:
    """Return the least cost on the small network."""
    highs = WAYS[way](network(SMALL_VARIABLES))
    highs.setOptionValue("output_flag", False)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal, f"{way}: {highs.getModelStatus()}"
    return float(highs.getInfo().objective_function_value)


def compare(sizes: list[int], repeats: int) -> pd.DataFrame:
    """Return medians by size and way; raise AssertionError where the optima of the small network differ."""
    cases = [(way, size) for size in sizes for way in WAYS for _ in range(repeats)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        optima = dict(zip(WAYS, pool.map(optimum, WAYS), strict=True))
        table = pd.DataFrame(pool.map(measure, *zip(*cases, strict=True)))
    reference = optima["arrays by hand"]
    for way, value in optima.items():
        assert abs(value - reference) <= 1e-6 * abs(reference), f"{way}: {value}, by hand {reference}"
    medians = table.groupby(["variables", "way"], sort=False).median()
    by_hand = medians["seconds"].xs("arrays by hand", level="way")
    return medians.assign(ratio=medians["seconds"].div(by_hand, level="variables")).reset_index()


def main(arguments: list[str] | None = None) -> int:
    parser = parser_of(__doc__, "one small size, one repeat")
    parser.add_argument("--sizes", default="50000,400000", help="numbers of variables, by commas")
    parser.add_argument("--repeats", type=int, default=5)
    arguments_ = parser.parse_args(arguments)
    sizes = [2000] if arguments_.quick else [int(size) for size in arguments_.sizes.split(",")]
    repeats = 1 if arguments_.quick else arguments_.repeats
    table = compare(sizes, repeats)
    print(f"{repeats} runs each, medians; {machine()}; optima agree on {SMALL_VARIABLES} variables")
    print(f"{'variables':>10}  {'way':<15}{'seconds':>9}{'times by hand':>15}{'MB added':>10}")
    for row in table.itertuples():
        print(f"{row.variables:>10,}  {row.way:<15}{row.seconds:>9.3f}{row.ratio:>15.1f}{row.mb:>10.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
