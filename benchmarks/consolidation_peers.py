"""Fewest hosts of one NUMA node: planner beside VPSolver, CP-SAT, SCIP and best fit, in one run.

    python -m benchmarks.consolidation_peers [--quick]

The hosts have 48 threads, 256 GB and 12 Gbit/s, and no machine is split, so that the problem is vector bin
packing, which VPSolver solves by arc flow (Brandao and Pedroso 2016; its graph is solved by HiGHS here).
CP-SAT and SCIP get the direct model: machines of each shape on each of as many hosts as best fit uses, with
hosts in the order of their use. VPSolver is no dependency: its programs vbp2afg and afg2mps, which PyPI's
pyvpsolver contains as sources, are found on the path; where they are not, its row says so.

Asserted: VPSolver, where it is installed, needs as many hosts as planner proves; no peer needs fewer than
planner's bound, and no peer's bound is above planner's plan.
"""

from __future__ import annotations

import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import highspy
import numpy as np
import pandas as pd

from benchmarks.cdnrouting import timed
from benchmarks.common import machine, parser_of
from planner.arrays import Ints
from planner.backends import solve
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner_models.consolidation import Consolidation, measure
from planner_models.consolidation.designs import fit_rules, patterns
from planner_models.consolidation.problem.generators import awkward

LIMIT_S: Final = 60.0
QUICK_S: Final = 10.0
ROUNDING: Final = 1e-6
STEPS: Final = np.array([1.0, 0.25, 2.0])
"""Steps of a unit in which sizes are whole: of threads, GB and Gbit/s."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Hosts of a plan, and a bound; None for none."""

    hosts: float | None
    bound: float | None


def one_node(machines: int, shapes: int) -> Consolidation:
    """Return the awkward machines on hosts of one node with 12 Gbit/s."""
    tables = awkward(machines=machines, shapes=shapes).to_tables()
    assert tables["capacities"] is not None
    tables["nodes"] = tables["nodes"].head(1)
    tables["capacities"] = tables["capacities"].assign(amount=12.0)
    tables["machines"] = tables["machines"].assign(split="never")
    tables["hosts"] = pd.DataFrame({"host_type": ["c48"], "price_per_h": [1.0]})
    return Consolidation.from_tables(tables)


def sizes_of(problem: Consolidation) -> tuple[Ints, Ints, Ints]:
    """Return whole capacities, (3,), and sizes, (shapes, 3), of shapes with machines, and their numbers."""
    shape = problem.host_shapes[0]
    capacity = np.minimum(shape.node[0], shape.whole)
    used = problem.count > 0
    return (
        np.rint(capacity * STEPS).astype(np.int64),
        np.rint(problem.needs[used] * STEPS).astype(np.int64),
        problem.count[used],
    )


def by_planner(problem: Consolidation, limit_s: float) -> Answer:
    """Return the plan of column generation."""
    proof = patterns.plan(problem, options=Options(time_limit_s=limit_s, gap=0.0)).proof
    return Answer(hosts=proof.objective, bound=proof.bound)


def by_best_fit(problem: Consolidation, limit_s: float) -> Answer:  # noqa: ARG001 - as the others
    """Return the plan of best fit."""
    plan = fit_rules.plan_best_fit(problem).plan
    assert plan is not None
    return Answer(hosts=measure(problem, plan, None)["hosts"], bound=None)


def by_backend(backend: str, problem: Consolidation, limit_s: float) -> Answer:
    """Return the plan of the direct model by a backend."""
    capacity, sizes, count = sizes_of(problem)
    hosts = int(by_best_fit(problem, limit_s).hosts or 0)
    m = ProgramBuilder(name="machines on single hosts")
    used = m.variables("used", hosts, upper=1.0, cost=1.0, integer=True)
    placed = m.variables("placed", (len(count), hosts), upper=np.tile(count[:, None], hosts), integer=True)
    m.constrain("machines", placed.sum(axis=1), equal=count.astype(float))
    for column, limit in enumerate(capacity.tolist()):
        m.constrain(
            f"capacity {column}",
            (placed * sizes[:, column][:, None].astype(float)).sum(axis=0) - used * float(limit),
            upper=0.0,
        )
    m.constrain("order", used[1:] - used[:-1], upper=0.0)
    solution = solve(m.build(), Options(backend=backend, time_limit_s=limit_s, gap=0.0))
    bound = None if solution.bound is None else math.ceil(solution.bound - ROUNDING)
    return Answer(hosts=None if solution.x is None else solution.objective, bound=bound)


def by_vpsolver(problem: Consolidation, limit_s: float) -> Answer:
    """Return the plan of VPSolver's arc flow."""
    capacity, sizes, count = sizes_of(problem)
    items = [[*size, number] for size, number in zip(sizes.tolist(), count.tolist(), strict=True)]
    lines = [[len(capacity)], capacity.tolist(), [len(items)], *items]
    with tempfile.TemporaryDirectory() as folder:
        instance, graph, model = (Path(folder) / name for name in ("fleet.vbp", "graph.afg", "model.mps"))
        instance.write_text("\n".join(" ".join(map(str, line)) for line in lines), encoding="utf-8")
        for command in (("vbp2afg", str(instance), str(graph)), ("afg2mps", str(graph), str(model))):
            subprocess.run(command, check=True, capture_output=True)
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("time_limit", limit_s)
        highs.setOptionValue("mip_rel_gap", 0.0)
        highs.readModel(str(model))
        highs.run()
    info = highs.getInfo()
    return Answer(hosts=info.objective_function_value, bound=math.ceil(info.mip_dual_bound - ROUNDING))


def peers(is_large: bool) -> Iterator[tuple[str, Callable[[Consolidation, float], Answer]]]:
    """Yield the peers by name; the direct model is only built for small fleets."""
    yield "best fit", by_best_fit
    if shutil.which("vbp2afg") is None or shutil.which("afg2mps") is None:
        print(f"{'':28s} {'VPSolver':10s} not installed")
    else:
        yield "VPSolver", by_vpsolver
    if not is_large:
        yield "CP-SAT", partial(by_backend, "ortools")
        yield "SCIP", partial(by_backend, "scip")


def show(name: str, label: str, answer: Answer, seconds: float) -> None:
    """Print a row."""
    hosts = "no plan" if answer.hosts is None else f"{answer.hosts:,.0f}"
    bound = "" if answer.bound is None else f"{answer.bound:,.0f}"
    print(f"{name:28s} {label:10s} {hosts:>9s} hosts, bound {bound:>8s}  {seconds:8.2f} s")


def compare(machines: int, shapes: int, limit_s: float) -> None:
    """Print plans and bounds of all peers for a fleet, and assert that they agree."""
    problem = one_node(machines, shapes)
    name = f"{machines:,} machines, {shapes} shapes"
    ours, seconds = timed(partial(by_planner, problem, limit_s))
    show(name, "planner", ours, seconds)
    assert ours.hosts is not None
    assert ours.bound is not None
    for label, run in peers(machines > 1_000):
        answer, seconds = timed(partial(run, problem, limit_s))
        show(name, label, answer, seconds)
        assert answer.hosts is None or answer.hosts >= ours.bound - ROUNDING
        assert answer.bound is None or answer.bound <= ours.hosts + ROUNDING
        if label == "VPSolver" and answer.hosts == answer.bound:
            assert ours.bound - ROUNDING <= (answer.hosts or 0.0) <= ours.hosts + ROUNDING


def main() -> None:
    """Print the rows, and assert the answers."""
    quick = parser_of(__doc__).parse_args().quick
    print(machine())
    patterns.plan(awkward(machines=50, shapes=4))  # loads the solver
    limit_s = QUICK_S if quick else LIMIT_S
    compare(60, 8, limit_s)
    compare(1_000, 37, limit_s)
    compare(100_000, 37, limit_s)


if __name__ == "__main__":
    main()
