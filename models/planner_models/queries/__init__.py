r"""Traffic queries: which rules, counters, polls and controller packets answer queries, and how fresh?

Queries select packets, or bytes or counts of packets, of those that satisfy a predicate, for each group of
header values (Foster et al. 2013, Frenetic: `Select`, `Where`, `GroupBy`, `SplitWhen`, `Limit`, `Every`). A
switch answers one by rules that are installed ahead, whose counters are polled; by a rule with wildcards
for each group, or one of whole headers for each header, which the first packet installs by way of the
controller; or by all packets, which go to the controller. Switches have limits on rules of both kinds,
packets to the controller, and polls.

Formulation, for queries $q$ of weight $w_q$, periods $p$ of their answers, methods $m$ on switches $s$:

$$\max \sum_{qp} w_q \frac{e_q}{p} z_{qp} \quad\text{s.t.}\quad
\sum_p z_{qp} \le 1,\quad \sum_m x_{qsmp} = z_{qp},\quad
\sum_{qmp} \frac{n_{qsm}}{p} x_{qsmp} \le P_s,\quad
R_s(x) \le T_s,\quad E_s(x) \le X_s,\quad D_s(x) \le C_s$$

$e_q$ is the period that a query asks for: answers of a period twice as long are half as many. $n_{qsm}$
counters are read in each period. $R_s$ and $E_s$ are rules with wildcards and of whole headers, $D_s$
packets to the controller. Rules of all queries and of the program are in one table, where combinations of
entries that meet are a rule each, or each query has a table of its own. `optimum` solves the integer
program of the limits that add up, and adds a cut for each smallest set of methods that exceeds a switch: no
use falls where a query is added, so that its bound holds for all plans. `formulation` is the model in Pyomo
with a variable for each combination of methods of a switch.

A check emulates switches and controller packet by packet from the rules of a plan, and compares its answers
with the queries interpreted on the packets.

Tables: `queries(query, select, where?, group_by?, split_when?, limit?, every_s?, longest_s?, weight?,
switch?)`, `switches(switch, rules, exact_rules?, packets_per_s?, polls_per_s?, matching?, pipeline?)`,
`flows(switch, header, packets?, packet_bytes?, start_s?, length_s?)`, and optionally
`controller(round_trip_ms?, duration_s?)`, `fields` and the program of all switches, as `rules`, or
`modules` and `policies`, as in system `flowtables`. A plan is `answers(query, period_s?)`, `methods(query,
switch, method)`, `rules(switch, table, priority, match, action)` and `uses(switch, table, priority, query,
use)`. Source `flow_records` reads `flows` from flow records of routers (NetFlow, sFlow) and captures.

>>> from planner_models import queries
>>> problem = queries.problem.generators.frenetic()
>>> decision = queries.SYSTEM.design("specialization").run(problem)
>>> decision.plan.methods[["query", "method"]].to_string(header=False, index=False).split("\n")[1].split()
['traffic', 'histogram', 'unfold']
>>> sorted(decision.plan.rules["match"])[:2]
['', 'in_port=1']
"""

from __future__ import annotations

from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.queries import designs, information, plan, problem
from planner_models.queries.designs import DESIGNS
from planner_models.queries.designs.formulation import formulation
from planner_models.queries.designs.what_if import explain
from planner_models.queries.plan.check import check
from planner_models.queries.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.queries.plan.openflow_rules import write_rules
from planner_models.queries.plan.plan import PLAN_TABLES, Answers, from_tables
from planner_models.queries.plan.presentation import draw
from planner_models.queries.problem.adjustments import adjust
from planner_models.queries.problem.flow_records import read_records
from planner_models.queries.problem.generators import PRESETS, small
from planner_models.queries.problem.problem import Monitoring
from planner_models.queries.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.queries.published import TARGETS

SYSTEM = System(
    name="queries",
    title="Traffic queries",
    area="storage and switches",
    question="Which rules, counters, polls and controller packets answer queries on traffic, and how fresh?",
    source="Foster et al. 2013 (Frenetic)",
    problem=ProblemType(
        type=Monitoring,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Monitoring.from_tables,
        presets=PRESETS,
        sources={"flow_records": read_records},
        adjust=adjust,
        sample=small,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        write_rules=write_rules,
        draw=draw,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    formulation=formulation,
    closed="rules of one table multiply: their number is found by cuts, and no program has it",
    studies=Studies(
        what_if=explain,
        practice="specialization",
        practice_name="rules ahead, and rules for arriving packets",
        trade_off=("controller_packets_per_s", "answered"),
        targets=TARGETS,
    ),
)

__all__ = [
    "SYSTEM",
    "Answers",
    "Monitoring",
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
