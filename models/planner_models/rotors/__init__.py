r"""Rotors: how much traffic, and with what wait, can circuit switches carry that rotate whatever the demand?

Racks have a link to each of several circuit switches. A rotor switch repeats a fixed rotation of
matchings: each is up for a day, after a night in which the switch is dark. The same switches may also be
scheduled for the demand, as system `circuits` does, with the longer night of a switch that takes any
matching. The demand is steady: a plan says what is delivered period after period.

Formulation, for demand $D_{ij}$ and mean capacities $c_{ij}$, a circuit's rate times the share of the cycle
in which it is up; traffic goes direct, $x_{ij}$, or by one other rack that keeps it until the next circuit,
$y_{ikj}$:

$$\max \sum_{ij} x_{ij} + \sum_{ikj} y_{ikj} \quad\text{s.t.}\quad
x_{ij} + \sum_k y_{ikj} \le D_{ij},\quad
x_{ij} + \sum_d y_{ijd} + \sum_s y_{sij} \le c_{ij}$$

`formulation` is the same problem in time, with queues at racks, in Pyomo. Both have the same optimum, as
the traffic of a period that repeats may wait for any of its circuits (`designs.path_program`). `two_hop`
solves it by column generation; its bound holds for routes of any number of links over the rotation.
`valiant` spreads traffic over all racks whatever the demand, `direct` uses no other rack. `expander` sends
urgent traffic at once over the circuits that are up, in several hops. `solstice`, `eclipse` and `scheduled`
make circuits for the demand, with direct traffic; `scheduled` is the best of all such schedules, or has a
bound on them; `indirect` sends over such circuits what they do not connect by one other rack. Schedules
repeat: a switch that keeps one matching is never dark, one that changes has a night before each day.

Waits are those for circuits, of data that comes at any time alike, without queues and without the time in
which a schedule is made.

Tables: `racks(rack, circuit_mbps, failed?)`, `demands(source_rack, target_rack, rate_mbps, urgent_mbps?)`,
`switches(count, day_us, night_us, schedule_night_us?, week_us?, order_seed?)`. A plan is
`period(kind, period_us)`, `circuits(switch, start_us, end_us, source_rack, target_rack)`,
`routes(source_rack, target_rack, via?, rate_mbps)`, `expander(source_rack, target_rack, rate_mbps)` and
`unserved(source_rack, target_rack, rate_mbps)`.

>>> from planner_models import rotors
>>> problem = rotors.problem.generators.skewed(racks=8, skew=1.0, load=0.8)
>>> for design in rotors.designs.DESIGNS[:3]:
...     print(design.name, round(design.decide(problem).proof.objective / problem.offered_mbps.sum(), 3))
two_hop 0.5
valiant 0.438
direct 0.125
"""

from __future__ import annotations

from planner.contract.plausibility import Proportion
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.rotors import designs, information, plan, problem
from planner_models.rotors.designs import DESIGNS
from planner_models.rotors.designs.formulation import formulation
from planner_models.rotors.designs.what_if import explain
from planner_models.rotors.plan.check import check
from planner_models.rotors.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.rotors.plan.plan import PLAN_TABLES, Routing, from_tables
from planner_models.rotors.plan.presentation import ELEMENTS, draw, draw_demand
from planner_models.rotors.problem.adjustments import adjust
from planner_models.rotors.problem.generators import PRESETS, small
from planner_models.rotors.problem.problem import TABLES, RotorNetwork

SYSTEM = System(
    name="rotors",
    title="Rotor switches",
    area="datacenter",
    question="How much traffic can circuit switches carry that rotate whatever the demand?",
    source="Mellette et al. 2017 (RotorNet); Mellette et al. 2020 (Opera); Ballani et al. 2020 (Sirius)",
    problem=ProblemType(
        type=RotorNetwork,
        tables=TABLES,
        from_tables=RotorNetwork.from_tables,
        proportions=(Proportion(column="demands.rate_mbps", to="racks.circuit_mbps", at_most=1e6),),
        presets=PRESETS,
        adjust=adjust,
        draw=draw_demand,
        elements=ELEMENTS,
        sample=small,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        draw=draw,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    best=("scheduled", "two_hop", "expander"),
    formulation=formulation,
    studies=Studies(
        what_if=explain,
        practice="direct",
        practice_name="direct circuits of the rotation",
        trade_off=("mean_wait_us", "delivered_mbps"),
    ),
)

__all__ = [
    "SYSTEM",
    "RotorNetwork",
    "Routing",
    "check",
    "designs",
    "formulation",
    "information",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
