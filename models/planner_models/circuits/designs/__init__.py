"""The designs of system `circuits`: observation, algorithm, coordination mechanism and signalling."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.circuits.designs import (
    birkhoff_decomposition,
    eclipse,
    equal_days,
    multicast_circuits,
    optimum,
    simulated_annealing,
    solstice,
    upper_bound,
)
from planner_models.circuits.information import (
    count_data_units,
    count_multicasts,
    count_queue_reports,
    count_transfers,
    observe_data_units,
    observe_demand,
    observe_multicasts,
    observe_queues,
)

HOST_REPORTS: Final = (
    "hosts report the sizes of the data units that applications send, racks' switches what has left; the "
    "scheduler sends its schedule to both switches"
)
QUEUE_REPORTS: Final = (
    "racks' switches report queue lengths; the scheduler sends its schedule to both switches"
)
SOLSTICE: Final = "Liu et al. 2015 (Solstice)"
ECLIPSE: Final = "Venkatakrishnan et al. 2016 (Eclipse)"
_on_transfers = partial(
    Design,
    observe=observe_demand,
    signalling=count_transfers,
    mechanism=Mechanism.TRANSPARENCY,
    messages=HOST_REPORTS,
)
_on_queues = partial(
    Design,
    observe=observe_queues,
    signalling=count_queue_reports,
    mechanism=Mechanism.REACTION,
    messages=QUEUE_REPORTS,
)
_on_data_units = partial(
    Design,
    observe=observe_data_units,
    signalling=count_data_units,
    mechanism=Mechanism.TRANSPARENCY,
    messages=HOST_REPORTS,
)
_on_multicasts = partial(
    Design,
    observe=observe_multicasts,
    signalling=count_multicasts,
    mechanism=Mechanism.TRANSPARENCY,
    messages=HOST_REPORTS,
)
_on_nothing = partial(Design, signalling=no_signalling, mechanism=Mechanism.NONE)
DESIGNS: Final = (
    _on_transfers(
        name="solstice", title="Solstice", decide=solstice.schedule, source=SOLSTICE + "; Mukerjee 2018, 2.5"
    ),
    _on_queues(
        name="solstice_queues",
        title="Solstice on queues",
        decide=solstice.schedule,
        source=SOLSTICE + "; Mukerjee 2018, 2.5.1",
    ),
    _on_transfers(name="eclipse", title="Eclipse", decide=eclipse.schedule, source=ECLIPSE),
    _on_queues(name="eclipse_queues", title="Eclipse on queues", decide=eclipse.schedule, source=ECLIPSE),
    _on_data_units(
        name="solstice_units",
        title="Solstice on data units",
        decide=solstice.schedule,
        source=SOLSTICE + "; Mukerjee 2018, 2.5.2",
    ),
    _on_data_units(
        name="eclipse_units",
        title="Eclipse on data units",
        decide=eclipse.schedule,
        source=ECLIPSE + "; Mukerjee 2018, 2.5.2",
    ),
    _on_transfers(
        name="search",
        title="Simulated annealing",
        decide=simulated_annealing.schedule,
        source="local search over " + ECLIPSE,
    ),
    _on_transfers(
        name="bvn",
        title="Birkhoff decomposition",
        decide=birkhoff_decomposition.schedule_bvn,
        source="Chang et al. 2000",
    ),
    _on_transfers(
        name="tms",
        title="Traffic matrix scheduling",
        decide=birkhoff_decomposition.schedule_tms,
        source="Porter et al. 2013 (Mordia)",
    ),
    _on_transfers(
        name="hotspot",
        title="Hotspot matching",
        decide=equal_days.schedule_hotspots,
        source="Wang et al. 2010 (c-Through); Farrington et al. 2010 (Helios)",
    ),
    Design(
        name="islip",
        title="iSLIP",
        decide=equal_days.schedule_islip,
        signalling=equal_days.count_requests,
        mechanism=Mechanism.REACTION,
        messages="racks' switches request, grant and accept for each day",
        source="McKeown 1999 (iSLIP)",
    ),
    _on_nothing(
        name="strobe",
        title="Strobe schedule",
        decide=equal_days.schedule_strobe,
        messages="the schedule is set once",
        source="Mukerjee 2018, 2.4.1",
    ),
    _on_nothing(
        name="fixed",
        title="Fixed schedule",
        decide=equal_days.schedule_fixed,
        messages="the schedule is set once",
        source="Mukerjee 2018, 2.5.3",
    ),
    _on_nothing(
        name="packet_only",
        title="Packet switch only",
        decide=equal_days.schedule_packet_only,
        messages="none",
        source="Mukerjee 2018, 2.5.4",
    ),
    _on_multicasts(
        name="multicast",
        title="Multicast schedule",
        decide=multicast_circuits.schedule,
        source="greedy over days of " + ECLIPSE + " with circuits to several racks (Xia et al. 2015, Blast)",
    ),
    _on_multicasts(
        name="optimum",
        title="Optimal schedule",
        decide=optimum.schedule,
        source=ECLIPSE + ", the problem itself",
        model=optimum.build_model,
    ),
    Design(
        name="bound",
        title="Bound",
        decide=upper_bound.bound_schedules,
        signalling=count_transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=HOST_REPORTS,
        source="linear relaxation of the schedule",
        model=upper_bound.describe_model,
        is_bound=True,
    ),
)
