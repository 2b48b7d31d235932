r"""Membership: sites of members, their failure detection, and the rule by which one leads.

A replicated service needs a quorum of its members. Sites fail with all that is in them: hosts, racks, zones,
regions, providers. Members suspect a leader after a silence: a short timeout raises false alarms, a long one
lets failures last. The system places members, sets timeouts, and proves what no other places reach.

Formulation, for $x_s$ members at site $s$, a leader $l$ and a timeout $T$:

$$\min\; M \cdot P\Bigl(\sum_s u_s < q\Bigr) + \lambda_l \bigl(T - \tfrac D2 + f\bigr)
+ f \sum_s (x_s - [s = l])\, a_{ls}(T)
\quad\text{s.t.}\quad \sum_s x_s = n,\quad x_l \ge 1,\quad t_l(x) \le \text{limit}$$

where $M$ is a month, $u_s$ the members at $s$ that are up, $q$ the quorum, $\lambda_l$ the failures of the
leader's site and of those above it, $D$ the interval of heartbeats, $f$ the time of a failover, $a_{ls}$ the
false alarms of a member at $s$, and $t_l$ the time from the leader to its quorum. $P$ is exact: live members
are convolved up the tree of sites, and failures that sites share are conditioned on. `planned` solves it by
branch and bound over leaders and timeouts, with dynamic programming over the numbers of members; then the
least price decides. `formulation` has every combination of failures as a scenario.

Designs: `raft` leaves members where they are, or spreads them over the zones of a region, with the usual
timeout; `phi_accrual` fits the timeout to the intervals of heartbeats. `leases`, `kill_host` and
`short_timeouts` have f+1 members only. With leases a majority of managers says who is up; `kill_host` stops
the host of a suspected member first, which a cut prevents; `fenced` blocks its traffic at switches first
(Albatross), with rules by process, application or epoch; `fenced_planned` searches places, granularities
and bits of epochs. With `short_timeouts` two members may lead, and the time is counted. `omniscient` places
none: it is a bound for all rules, with failures known as they happen.

`swim` declares members down by probes and gossip, and `kubernetes_nodes` starts a pod elsewhere after a grace
and an eviction; with both two may lead. `byzantine_psl`, `byzantine_bgp`, `byzantine_gm` and
`byzantine_early` agree in rounds beside members that lie: $n = 3t+1$ members at regions as near to each other
as can be, by an exact search, and $t+1$, $\min\{f+2, t+1\}$ or $\min\{f+5, t+1\}$ rounds of half the longest
round-trip time. `flooding`, `name_dropper`, `clusters` and `rendezvous` leave members where they are, and say
how fast the processes of a group find each other, in which messages.

Failures of hosts stop processes; those of larger sites cut them off. A service is down while no quorum is up,
until a failure of the leader is suspected, and until the next one has taken over. A cut of a rack takes an
epoch of names; where none is free ($B$ is Erlang's loss formula), the cut is not made and nobody takes over:

$$P(\text{no epoch}) = B\bigl(2^b - u,\; r L\,(\ln N - \psi(1 + r L))\bigr)$$

for $b$ bits, $u$ epochs a cut, $r$ cuts in a time, and $N$ processes with mean life $L$.

A site may be for witnesses, members that vote, store no data and never lead: `planned` takes fewer of them
than a quorum. `planner simulate` draws years of failures, or replays recorded `events`, member by member.
`planner roll` places members again each month of a trace of incidents (series `incidents`), with the rates
known by then.

Tables: `sites(site, kind, parent, fails_per_month, repair_s, price_per_month, hosts?, state?, witness?,
latitude?, longitude?)`, `services(service, protocol, faults, members?, managers?, failover_s,
down_cost_per_s, most_commit_ms?, most_price_per_month?, decisions_per_s?, value_bytes?, targets?)`, and
optionally `delays(from, to, rtt_ms, p99_ms?, loss?)`, `shared_risks(risk, site, fails_per_month,
repair_s)`, `pauses(site, per_month, mean_s)`, `watchers(kind, interval_ms, timeout_ms?, capacity_per_s?,
bytes)`, `current(service, site, role?, count?)`, the members of today, `ports(switch, port, to,
applications, epochs, processes, rule_capacity, rule_ms)` that fences are at, `naming(bits_of_epoch,
bits_of_app, bits_of_local, processes, life_days, partitions_per_month, ports_per_cut, retries)`,
`events(at_s, site, what)`, and `gossip(members, seeds, fan_out, interval_ms, retransmit, joins_per_s,
syncs_per_s, loss?, start?)` with `contacts(member, knows)` of a group. A plan is `members(service, site,
role, count)`, `protocol(service, name, n, quorum, rounds, commit_ms)` and `watch(service, kind,
interval_ms, timeout_ms, wait_ms?)`, with `cheaper(service, members, price, down_s)` where cheaper members
were searched, and `shed(service, targets)` where managers cannot watch all, and with `fences(switch, port,
by, rules)` and `naming(bits_of_epoch, bits_of_app, bits_of_local, epochs_per_cut)` where members are
fenced, and `seeds(site, count)` and `gossip(protocol, fan_out, interval_ms, retransmit, rounds, messages,
busiest)` for a group.

>>> from planner_models import membership
>>> problem = membership.problem.generators.small()
>>> decision = membership.designs.planned.plan(problem)
>>> decision.proof.status, round(decision.proof.objective, 1)
(<Status.OPTIMAL: 'optimal'>, 679.0)
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner.contract.units import DAY_S
from planner_models.membership import designs, plan, problem
from planner_models.membership.designs import DESIGNS
from planner_models.membership.designs.formulation import formulation
from planner_models.membership.designs.omniscient import SCOPE
from planner_models.membership.designs.what_if import explain
from planner_models.membership.plan.check import check
from planner_models.membership.plan.failures import FAILURES
from planner_models.membership.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.membership.plan.plan import PLAN_TABLES, MembershipPlan, from_tables
from planner_models.membership.plan.presentation import ELEMENTS, draw
from planner_models.membership.problem.adjustments import adjust
from planner_models.membership.problem.drawing import draw as draw_problem
from planner_models.membership.problem.generators import PRESETS, small
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.readers.sources import SOURCES
from planner_models.membership.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.membership.problem.series import SERIES
from planner_models.membership.published import TARGETS
from planner_models.membership.simulation.study import SIMULATION

COORDINATION = Coordination(
    scenario="membership/coordination",
    performance="down_s_per_month",
    cost="commit_ms",
    bound_scope=SCOPE,
    instances=({"problem.regions": 4}, {"problem.providers": 1, "problem.faults": 1}),
    degradations=(
        Degradation(
            kind="age",
            parameter="age_s",
            values=(0.0, DAY_S, 30 * DAY_S, 360 * DAY_S),
            unit="s",
            about="age of the measured rates of failures",
            seeds=5,
        ),
        Degradation(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.35, 0.7, 1.4),
            about="standard deviation of the logarithm of each measured rate of failures",
            seeds=5,
        ),
        Degradation(
            kind="granularity",
            parameter="coarse",
            values=(0.0, 1.0, 2.0),
            about="failures of each site, means of kinds of sites, failures of hosts alone",
        ),
    ),
)

SYSTEM = System(
    name="membership",
    title="Membership",
    area="storage and switches",
    question="How many members does a service need, where, and watched how?",
    source="Leners et al. 2015; Abraham and Dolev 2015; Haeupler and Malkhi 2015",
    problem=ProblemType(
        type=Membership,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Membership.from_tables,
        sources=SOURCES,
        series=SERIES,
        presets=PRESETS,
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
    ),
    designs=DESIGNS,
    best=("planned",),
    formulation=formulation,
    closed="its timeouts and places are searched together, with failures convolved up the tree",
    studies=Studies(
        what_if=explain,
        practice="raft",
        practice_name="members as they are",
        trade_off=("price", "down_s_per_month"),
        failures=FAILURES,
        targets=TARGETS,
        coordination=COORDINATION,
        simulation=SIMULATION,
    ),
)

__all__ = [
    "SYSTEM",
    "Membership",
    "MembershipPlan",
    "check",
    "designs",
    "formulation",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
