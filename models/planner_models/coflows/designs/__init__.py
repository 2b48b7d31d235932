"""The designs of system `coflows`: algorithm, coordination mechanism and signalling."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner_models.coflows.designs import aalo, deadlines, hybrid, optimum, sebf, sunflow, windows
from planner_models.coflows.information import (
    count_attained_service,
    count_reports,
    observe_arrivals,
    observe_coflows,
)

COFLOW_REPORTS: Final = "applications report the flows of each coflow with their sizes; "
CIRCUITS: Final = COFLOW_REPORTS + "the scheduler sends circuits to the circuit switches"
_on_coflows = partial(
    Design,
    observe=observe_coflows,
    mechanism=Mechanism.TRANSPARENCY,
    signalling=count_reports,
)
DESIGNS: Final = (
    _on_coflows(
        name="sunflow",
        title="Sunflow",
        decide=sunflow.schedule,
        messages=CIRCUITS,
        source="Huang et al. 2016 (Sunflow)",
    ),
    _on_coflows(
        name="sebf",
        title="Smallest bottleneck first",
        decide=sebf.schedule,
        messages=COFLOW_REPORTS + "the scheduler sends priorities to racks",
        source="Chowdhury et al. 2014 (Varys)",
    ),
    Design(
        name="aalo",
        title="Aalo",
        decide=aalo.schedule,
        observe=observe_arrivals,
        mechanism=Mechanism.REACTION,
        signalling=count_attained_service,
        messages="racks report what coflows have sent; the scheduler sends priorities to racks",
        source="Chowdhury and Stoica 2015 (Aalo)",
    ),
    _on_coflows(
        name="solstice",
        title="Solstice",
        decide=windows.schedule_solstice,
        messages=CIRCUITS,
        source="Liu et al. 2015 (Solstice), window by window",
    ),
    _on_coflows(
        name="eclipse",
        title="Eclipse",
        decide=windows.schedule_eclipse,
        messages=CIRCUITS,
        source="Venkatakrishnan et al. 2016 (Eclipse), window by window",
    ),
    _on_coflows(
        name="most_served",
        title="Most data served",
        decide=windows.schedule_most_served,
        messages=CIRCUITS,
        source="Venkatakrishnan et al. 2016 (Eclipse), the problem itself, window by window",
    ),
    _on_coflows(
        name="hybrid",
        title="Hybrid switching",
        decide=hybrid.schedule,
        messages=CIRCUITS + ", and priorities to racks",
        source="Huang et al. 2016 (Sunflow) beside Chowdhury et al. 2014 (Varys)",
    ),
    _on_coflows(
        name="edf",
        title="Earliest deadline first",
        decide=deadlines.send_by_deadline,
        messages=COFLOW_REPORTS + "the scheduler sends priorities to racks",
        source="Liu and Layland 1973 (earliest deadline first)",
    ),
    _on_coflows(
        name="admission",
        title="Admission by deadline",
        decide=deadlines.admit,
        messages=COFLOW_REPORTS + "the scheduler sends priorities and rates to racks",
        source="Chowdhury et al. 2014 (Varys), deadline-sensitive coflows",
    ),
    _on_coflows(
        name="most_deadlines",
        title="Most deadlines met",
        decide=deadlines.meet_most,
        messages=COFLOW_REPORTS + "the scheduler sends priorities and rates to racks",
        source="Moore 1968 (late jobs); Horn 1974 (demand of intervals)",
    ),
    _on_coflows(
        name="optimum",
        title="Optimal schedule",
        decide=optimum.schedule,
        messages=CIRCUITS + ", and priorities to racks where the packet switch is used",
        source="Manne 1960 (ordering of jobs on machines)",
        model=optimum.build_model,
    ),
    _on_coflows(
        name="bound",
        title="Bound",
        decide=optimum.bound_schedules,
        messages=COFLOW_REPORTS + "no schedule is made",
        source="Goemans et al. 2002; Qiu, Stein, Zhong 2015",
        is_bound=True,
    ),
)
