r"""Updates: in which steps do switches change their rules from one configuration to the next?

While rules change, packets can meet a mixture of both configurations: they may loop, be lost, or miss a
waypoint; tables hold rules of both, and links carry both loads. A plan says which rule of which switch
changes in which step. The changes of one step take effect in any order: a plan is right if every mixture is.

Formulation of batches of two-phase updates, for classes $c$ of packets, switches $s$ and batches $k$:

$$\min K \quad\text{s.t.}\quad \sum_k x_{ck} = 1,\quad
r_{s,k-1} + \sum_c n_{cs} x_{ck} \le R_s,\quad
r_{sk} = r_{s,k-1} + \sum_c (n_{cs} - o_{cs}) x_{ck},\quad x_{ck} \in \{0, 1\}$$

with $o_{cs}$ and $n_{cs}$ rules of the class before and after, and a table of $R_s$ rules. A two-phase update
installs the next rules under a new version, flips the ingresses, which stamp packets, waits until old packets
have left, and deletes the present rules (Foster et al. 2013, IV.A). Changes in place need no version and no
space: rounds in which $u_{vk}$ says that switch $v$ has changed, with potentials that fall along every rule
that may be in use, $p_{vk} \ge p_{\mathrm{old}(v),k} + 1$ unless $u_{v,k-1}$ and $p_{vk} \ge
p_{\mathrm{new}(v),k} + 1$ if $u_{vk}$. Shares $y_{ck}$ of the next path move so that on each link the sum
over classes of the larger of the loads before and after each step is within its capacity. `formulation` has
the three models in Pyomo.

`one_shot` changes all at once. `two_phase` updates all classes, `two_phase_changed` those that change,
`extension_first` those only in two phases that no single change moves, `per_flow` waits for present flows to
end. `ordered`, `ordered_exact` and `decentral` change rules in place. `batches` and `batches_exact` keep
within tables, `congestion_free` within links, and `optimum` within both. `intermediate` moves classes over
other paths where `optimum` finds no batches. `least_loss` takes, of the plans of several designs, that with
the least lost traffic.

A plan is checked by replaying it: a search in the union of the states of each step, which finds every mixture
that packets can meet, as no packet needs to pass a switch twice to loop or to be lost.

Tables: `switches(switch, rule_capacity?, rule_ms?, matches_version?)`, `links(from, to, capacity_mbps?,
delay_ms?)`, `classes(class, ingress?, egress, traffic_mbps?, flow_life_s?, flows?, waypoints?, guarantee?)`,
`now(class, switch, next_hop, share?)`, `next(class, switch, next_hop, share?)` and optionally `rules(class,
switch, rules)`. A plan is `steps(step, kind, start_s, end_s, stage?)`, `operations(step, switch, class,
action)`, `tables(step, switch, rules)`, `shares(step, class, share)` and, over intermediate paths,
`paths(stage, class, switch, next_hop)`.

>>> from planner_models import updates
>>> problem = updates.problem.generators.zigzag(switches=6)
>>> for name in ("ordered", "two_phase_changed"):
...     decision = updates.SYSTEM.design(name).run(problem)
...     print(name, decision.plan.rounds, len(updates.check(problem, decision.plan)))
ordered 5 0
two_phase_changed 3 0
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.updates import designs, information, plan, problem
from planner_models.updates.designs import DESIGNS
from planner_models.updates.designs.formulation import formulation
from planner_models.updates.designs.what_if import explain
from planner_models.updates.information import realize
from planner_models.updates.plan import interruption
from planner_models.updates.plan.check import check
from planner_models.updates.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.updates.plan.plan import PLAN_TABLES, UpdatePlan, from_tables
from planner_models.updates.plan.presentation import ELEMENTS, draw, draw_problem
from planner_models.updates.problem import traffic_plans
from planner_models.updates.problem.adjustments import adjust
from planner_models.updates.problem.generators import PRESETS, small
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.updates.problem.series import week
from planner_models.updates.problem.splits import rebalance
from planner_models.updates.published import TARGETS
from planner_models.updates.simulation import SIMULATION

COORDINATION = Coordination(
    scenario="updates/coordination",
    performance="lost_traffic_mbit",
    cost="extra_rules_share",
    instances=({"problem.count": 300}, {"problem.headroom": 0.4}),
    degradations=(
        Degradation(
            kind="age",
            parameter="age_s",
            values=(0.0, 60.0, 300.0, 600.0),
            unit="s",
            about="age of the measured traffic; that of a class keeps half its deviation for 420 s",
            seeds=3,
        ),
        Degradation(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.1, 0.2, 0.4, 0.8),
            about="standard deviation of the logarithm of each class's traffic as measured",
            seeds=3,
        ),
    ),
)

SYSTEM = System(
    name="updates",
    title="Network updates",
    area="wide area",
    question="In which steps do switches change their rules from one configuration to the next?",
    source="Foster et al. 2013 (Frenetic), IV; Reitblatt et al. 2012",
    problem=ProblemType(
        type=Update,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Update.from_tables,
        sources={"traffic_plans": traffic_plans.read, "interrupted": interruption.read},
        series={"week": week},
        presets={**PRESETS, "rebalance": rebalance},
        adjust=adjust,
        draw=draw_problem,
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
        realize=realize,
    ),
    designs=DESIGNS,
    best=(
        "optimum",
        "batches_exact",
        "batches",
        "congestion_free",
        "least_loss",
        "per_flow",
        "ordered_exact",
    ),
    formulation=formulation,
    closed="its designs search for orders of steps, and solve a program of shares anew for "
    "each number of steps",
    studies=Studies(
        what_if=explain,
        practice="one_shot",
        practice_name="all changes at once",
        trade_off=("extra_rules_share", "rounds"),
        simulation=SIMULATION,
        coordination=COORDINATION,
        targets=TARGETS,
    ),
)

__all__ = [
    "SYSTEM",
    "Update",
    "UpdatePlan",
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
