r"""Circuits: when should a reconfigurable datacenter connect which racks?

A packet switch connects all n racks at a low rate. A circuit switch connects pairs of racks at a
high rate, one circuit a rack each way: a matching. To change it takes a night, in which all circuits
are dark. Which matchings, for how long, serve the most demand within a week $W$, or all of it soonest?

Formulation, after Venkatakrishnan et al. 2016 (Eclipse), for demand $D$, circuit rates $u$, packet
rates $p$, night $\delta$, and days of length $t_M$ for matchings $M$ that are used ($z_M = 1$):

$$\max \sum_{ij} X_{ij} + Y_{ij} \quad\text{s.t.}\quad
X_{ij} \le u_{ij} \sum_{M \ni ij} t_M,\quad X + Y \le D,\quad
\sum_M t_M + \delta z_M \le W,\quad t_M \le W z_M,\quad
\sum_j Y_{ij} \le p_i W,\; \sum_i Y_{ij} \le p_j W$$

`formulation` is that model in Pyomo; `optimum.schedule` solves it by column generation where all
maximal matchings of the demand can be listed (`exact`), else by local search (`search`) with a proven
bound. The bound is for the week as a fluid: a packet switch works by day and by night. What a scheduler is
told may be cut by queues, old, badly measured or coarse (`sees`); its circuits serve what is truly there.

Tables: `racks(rack, circuit_mbps, packet_mbps)`, `demands(source_rack, target_rack, bits)`,
`switch(night_us, window_us?, shortest_day_us?, circuit_switches?, dark?)` and optionally
`coflows(coflow, source_rack, target_rack, bits)`; 1 Mbit/s is 1 bit/us. A plan is
`configurations(day, start_us, duration_us, source_rack, target_rack)` (with `switch` where there are
several), `packet(source_rack, target_rack, bits)` and, for the switches, the port map
`ports(switch, start_us, end_us, input_port, output_port)`.

>>> from planner_models import circuits
>>> problem = circuits.generate.rings(racks=8, count=2)
>>> decision = circuits.solstice.schedule(problem)
>>> decision.plan.configurations.groupby("day")["duration_us"].first().round().tolist()
[1000.0, 960.0]
>>> round(float(decision.proof.objective / problem.bits.sum()), 6)
1.0
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.system import Blur, Coordination, System
from planner_models.circuits import (
    assignment,
    bound,
    coflows,
    eclipse,
    exact,
    generate,
    matchings,
    optimum,
    packet,
    readers,
    search,
    simple,
    solstice,
)
from planner_models.circuits.check import check
from planner_models.circuits.designs import DESIGNS
from planner_models.circuits.draw import draw
from planner_models.circuits.explain import explain
from planner_models.circuits.formulation import formulation
from planner_models.circuits.measure import METRICS, measure
from planner_models.circuits.problem import MOST_SWITCHES, OPTIONAL_TABLES, TABLES, Circuits, Dark
from planner_models.circuits.published import TARGETS
from planner_models.circuits.racks import require_fit
from planner_models.circuits.schedule import PLAN_TABLES, Schedule, from_tables
from planner_models.circuits.sees import enact


def adjust(
    problem: Circuits,
    *,
    scale: Annotated[float, Field(ge=0, description="every demand is multiplied by this")] = 1.0,
    circuit_switches: Annotated[
        Annotated[int, Field(ge=1, le=MOST_SWITCHES)] | None,
        Field(description="how many circuit switches there are; each rack has a link to each"),
    ] = None,
    dark: Annotated[
        Dark | None, Field(description="circuits that are dark at night: all, or only those that change")
    ] = None,
    night_us: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
        Field(description="time to change circuits, us; none: as given"),
    ] = None,
    circuit_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every circuit's rate is multiplied by this")
    ] = 1.0,
    packet_scale: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="the packet switch's rates are multiplied by this; 0: it has failed",
        ),
    ] = 1.0,
) -> Circuits:
    """The problem with its demands scaled, over other switches.

    raises  InputError for a night that, with the shortest day, does not fit the week
    """
    if night_us is not None and problem.window_us is not None:
        require_fit(
            night_us=night_us,
            shortest_day_us=problem.shortest_day_us,
            week="window_us",
            week_us=problem.window_us,
        )
    return (
        problem.scaled(scale)
        .with_rates(circuit=circuit_scale, packet=packet_scale)
        .with_switch(circuit_switches=circuit_switches, dark=dark, night_us=night_us)
    )


COORDINATION = Coordination(
    scenario="circuits/coordination",
    performance="served_bits",
    cost="configurations",
    blurs=(
        Blur(
            kind="age",
            parameter="age_us",
            values=(0.0, 500.0, 2_000.0, 5_000.0, 15_000.0, 50_000.0),
            unit="us",
            about="what is told is of the demand so long ago; a demand lasts 15 ms in the mean",
            seeds=3,
        ),
        Blur(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.1, 0.3, 1.0, 2.0),
            about="standard deviation of the logarithm of each amount told",
            seeds=3,
        ),
        Blur(
            kind="grain",
            parameter="grain_bytes",
            values=(0.0, 100_000.0, 500_000.0, 1e6, 2e6, 5e6),
            unit="bytes",
            about="amounts are told in whole steps of this, rounded up",
        ),
    ),
)
SYSTEM = System(
    name="circuits",
    question="When should a reconfigurable datacenter connect which racks?",
    source="Mukerjee 2018, chapter 2 (Etalon)",
    tables=TABLES,
    plan_tables=PLAN_TABLES,
    from_tables=Circuits.from_tables,
    optional_tables=OPTIONAL_TABLES,
    sources={
        "matrix": readers.matrix,
        "edges": readers.edges,
        "flows": readers.flows,
        "coflow": readers.coflow,
    },
    series={"coflow_windows": readers.coflow_windows, "flow_windows": readers.flow_windows},
    presets={
        "skewed": generate.skewed,
        "rings": generate.rings,
        "all_to_all": generate.all_to_all,
        "hotspot": generate.hotspot,
        "hdfs": generate.hdfs,
        "mixed": generate.mixed,
    },
    adjust=adjust,
    designs=DESIGNS,
    metrics=METRICS,
    check=check,
    measure=measure,
    plan_from_tables=from_tables,
    enact=enact,
    formulation=formulation,
    explain=explain,
    coordination=COORDINATION,
    targets=TARGETS,
    draw=draw,
)

__all__ = [
    "SYSTEM",
    "Circuits",
    "Schedule",
    "assignment",
    "bound",
    "check",
    "coflows",
    "eclipse",
    "exact",
    "explain",
    "formulation",
    "generate",
    "matchings",
    "measure",
    "optimum",
    "packet",
    "readers",
    "search",
    "simple",
    "solstice",
]
