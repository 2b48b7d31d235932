r"""Traffic: routing of demands over a network of directed links with capacities.

A plan says which routes the demands between nodes take, and in which shares: so that they serve the
most traffic, load links the least, or cost the least.

Formulation, Sen et al. 2013 ("Scalable, optimal flow routing in datacenters via local link
balancing"), equation (1), for the links $E$ with capacities $c_{uv}$ and commodities $(s, d)$:

$$\max \sum_i U_i(x_i) \quad\text{s.t.}\quad
\sum_{u:(u,v) \in E} f^{s,d}_{u,v} = \sum_{w:(v,w) \in E} f^{s,d}_{v,w} \;\forall v \neq s, d,\quad
\sum_{v:(s,v) \in E} f^{s,d}_{s,v} = \sum_{i: s \to d} x_i,\quad
\sum_{s,d} f^{s,d}_{u,v} \le c_{uv}$$

Objectives of `optimum`: `delivered` (the most traffic, then the smallest largest load over capacity $U$:
$\max \sum_i x_i - U \min_e c_e / 2$), `concurrent` (the largest $\lambda$ such that $\lambda$ times every
demand fits), `utilization` (the smallest largest load over capacity), `total` (the most traffic) and
`cost` (the cheapest); design `utility` takes concave $U_i$: it maximizes the product of the served shares, or
makes shares, rates or rates over `demands.weight` max-min fair, with a proof for every level. `formulation`
is that model in Pyomo; `optimum.route` solves it as sparse arrays, with one commodity for each target, or
over given paths.

What arrives is measured by one rule for all designs: each overloaded link drops its excess, the same
share of all traffic on it, so that with arriving traffic $y_e$ a link passes $p_e = \min(1, c_e / y_e)$;
$y$ follows from $p$ along the paths. With `overload = "priority"` links serve the classes of demands in
the order of their priorities, and by weight within one; with "max-min" TCP slows the senders down
instead. Demand that is not sent, for want of capacity or of a path, is shed and listed.

Tables: `nodes(node, latitude?, longitude?, x?, y?, group?)`, `links(tail, head, capacity_mbps, weight?,
cost?, latency_ms?, split_weight?, parallel?, upgrade_cost?, upgrade_mbps?)`, `demands(source, target,
rate_mbps, max_latency_ms?, weight?, class?)`, `classes(class, priority, weight?)`; what operators write down
of routes: `tunnels(source?, target?, path, parallel?, kind?, weight?, name?)` and `rules(source?, target?,
rule, node?, tail?, head?, path?)`; and what may fail together: `failures(failure, member, probability?)`.
Parallel links are rows with the same ends, and a link with capacity 0 is down. A plan is `flows(source,
target, tail, head, parallel, rate_mbps)`, `links(tail, head, parallel, load_mbps, utilization)`, over given
paths `routes(source, target, path, rate_mbps)`, of design `weights` `weights(tail, head, parallel, weight)`,
of design `fibbing` `lies(target, tail, head, parallel, fake_nodes)`, of design `weighted_ecmp` `groups(node,
target, head, parallel, entries, ideal_share)`, of design `segment_routing` `segments(source, target,
segments, share)`, of max-min fairness `levels(level, value, bound, demands)`, of design `drain`
`moved(source, target, rate_mbps)` and `windows(window, element)`, of designs that are safe against failures
`guarantees(source, target, rate_mbps, failures, at_once, restoration, availability?, probability?)`, with a
limit of rerouted traffic `rerouting(metric, most_moved, moved_share, value, gain_per_point?,
free_moved_share?, free_value?, loss?)`, of design `oblivious` `shares(source, target, tail, head, parallel,
share)` and `worst_matrices(matrix, source, target, rate_mbps)` and, where demand is left out, `shed(source,
target, rate_mbps)`. Where demands have classes, flows, routes, segments, moved, guarantees and shed have the
column `class`.

>>> import pandas as pd
>>> from planner_models import traffic
>>> problem = traffic.Traffic.from_tables({
...     "links": pd.DataFrame(
...         [("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 5.0), ("c", "d", 5.0)],
...         columns=["tail", "head", "capacity_mbps"],
...     ),
...     "demands": pd.DataFrame([("a", "d", 12.0)], columns=["source", "target", "rate_mbps"]),
... })
>>> decision = traffic.designs.optimum.route(problem, objective="concurrent")
>>> decision.proof.status, round(decision.proof.objective, 6)
(<Status.OPTIMAL: 'optimal'>, 1.25)
>>> decision.plan.links["utilization"].round(3).tolist()
[0.8, 0.8, 0.8, 0.8]
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.elements import PurchaseProblem
from planner.contract.plausibility import Proportion
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.traffic import designs, information, plan, problem, published, simulation
from planner_models.traffic.designs import DESIGNS, what_if
from planner_models.traffic.designs.failure_analysis import FAILURES
from planner_models.traffic.designs.formulation import formulation
from planner_models.traffic.designs.tunnel_lists import read_plan_file
from planner_models.traffic.information import realize, tomogravity
from planner_models.traffic.plan.check import check
from planner_models.traffic.plan.metrics import HEADLINE, LIMITS, METRICS, break_down, measure
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.presentation import ELEMENTS, add_load, draw
from planner_models.traffic.plan.purchase_tables import purchase_tables
from planner_models.traffic.plan.rerouting import read_routing
from planner_models.traffic.plan.schema import PLAN_TABLES
from planner_models.traffic.problem import generators, series
from planner_models.traffic.problem.adjustments import adjust, ask_directions
from planner_models.traffic.problem.drawing import draw as draw_problem
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import flow_records
from planner_models.traffic.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.traffic.problem.sources import SOURCES
from planner_models.traffic.simulation.run import SIMULATION

SYSTEM = System(
    name="traffic",
    title="Traffic routing",
    area="wide area",
    question="How should these demands be routed?",
    source="Sen, Shue, Ihm and Freedman 2013 (LocalFlow)",
    problem=ProblemType(
        type=Traffic,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Traffic.from_tables,
        proportions=(Proportion(column="demands.rate_mbps", to="links.capacity_mbps", at_most=20),),
        sources={**SOURCES, "link_loads": tomogravity.read},
        series={"matrices": series.read_matrices, "flow_record_series": flow_records.read_series},
        over_time={"demands": series.over_windows},
        presets=generators.PRESETS,
        sample=generators.sample,
        adjust=adjust,
        draw=draw_problem,
        elements=ELEMENTS,
        questions=ask_directions,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=read_routing,
        read_file=read_plan_file,
        check=check,
        metrics=METRICS,
        measure=measure,
        breakdown=break_down,
        realize=realize,
        draw=draw,
        to_networkx=add_load,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    best=("optimum", "utility", "fptas", "weights", "localflow", "packet_scatter"),
    usual=("optimum", "ecmp", "localflow", "mptcp"),
    formulation=formulation,
    studies=Studies(
        what_if=what_if.explain,
        practice="ecmp",
        practice_name="equal-cost multipath",
        trade_off=("mean_path_stretch", "max_utilization"),
        update=("updates", "traffic_plans"),
        purchases=PurchaseProblem(system="capacity", design="optimum", tables=purchase_tables),
        coordination=Coordination(
            scenario="traffic/coordination",
            performance="concurrent_flow",
            instances=(
                {"problem.demands": "gravity"},
                {"problem.demands": "gravity", "problem.name": "sndlib/abilene"},
            ),
            degradations=(
                Degradation(
                    kind="age",
                    parameter="age_s",
                    values=(0, 60, 300, 900, 3600, 14400),
                    unit="s",
                    about="age of reported rates; the autocorrelation of a demand falls to 1/e in an hour",
                    seeds=3,
                ),
                Degradation(
                    kind="noise",
                    parameter="noise",
                    values=(0, 0.1, 0.2, 0.5, 1, 2),
                    about="standard deviation of the logarithm of each measured or reported rate",
                    seeds=3,
                ),
                Degradation(
                    kind="granularity",
                    parameter="granularity",
                    values=(0, 2, 5, 10, 25, 50),
                    unit="nodes",
                    about="rates are reported between regions of so many nodes; gravity estimates the rest",
                ),
            ),
        ),
        failures=FAILURES,
        targets=published.TARGETS,
        simulation=SIMULATION,
    ),
)

__all__ = [
    "SYSTEM",
    "Routing",
    "Traffic",
    "check",
    "designs",
    "formulation",
    "information",
    "measure",
    "plan",
    "problem",
    "published",
    "simulation",
]


def __dir__() -> list[str]:
    return __all__
