"""The designs of system `circuits`: what each scheduler sees, and how it decides."""

from __future__ import annotations

from typing import Final

from planner.exchange import nothing
from planner.system import Design, Mechanism
from planner_models.circuits import bound, eclipse, exchange, optimum, search, simple, solstice
from planner_models.circuits.sees import data_units, queues, told

TOLD: Final = (
    "hosts tell the scheduler the sizes of the data units that applications send, racks' switches what has "
    "left; it tells both switches its schedule"
)
QUEUES: Final = "racks' switches report queue lengths to the scheduler; it tells both switches its schedule"
FIXED: Final = "the schedule is set once"
DESIGNS: Final = (
    Design(
        name="solstice",
        decide=solstice.schedule,
        sees=told,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Liu et al. 2015 (Solstice); Mukerjee 2018, 2.5",
    ),
    Design(
        name="solstice_queues",
        decide=solstice.schedule,
        sees=queues,
        exchange=exchange.queues,
        mechanism=Mechanism.REACTION,
        messages=QUEUES,
        source="Liu et al. 2015 (Solstice); Mukerjee 2018, 2.5.1",
    ),
    Design(
        name="eclipse",
        decide=eclipse.schedule,
        sees=told,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Venkatakrishnan et al. 2016 (Eclipse)",
    ),
    Design(
        name="eclipse_queues",
        decide=eclipse.schedule,
        sees=queues,
        exchange=exchange.queues,
        mechanism=Mechanism.REACTION,
        messages=QUEUES,
        source="Venkatakrishnan et al. 2016 (Eclipse)",
    ),
    Design(
        name="solstice_units",
        decide=solstice.schedule,
        sees=data_units,
        exchange=exchange.data_units,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Liu et al. 2015 (Solstice); Mukerjee 2018, 2.5.2",
    ),
    Design(
        name="eclipse_units",
        decide=eclipse.schedule,
        sees=data_units,
        exchange=exchange.data_units,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Venkatakrishnan et al. 2016 (Eclipse); Mukerjee 2018, 2.5.2",
    ),
    Design(
        name="search",
        decide=search.schedule,
        sees=told,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="local search over Venkatakrishnan et al. 2016 (Eclipse)",
    ),
    Design(
        name="bvn",
        decide=simple.schedule_bvn,
        sees=told,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Chang et al. 2000",
    ),
    Design(
        name="tms",
        decide=simple.schedule_tms,
        sees=told,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Porter et al. 2013 (Mordia)",
    ),
    Design(
        name="hotspot",
        decide=simple.schedule_hotspot,
        sees=told,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Wang et al. 2010 (c-Through); Farrington et al. 2010 (Helios)",
    ),
    Design(
        name="islip",
        decide=simple.schedule_islip,
        exchange=exchange.requests,
        mechanism=Mechanism.REACTION,
        messages="racks' switches request, grant and accept for each day",
        source="McKeown 1999 (iSLIP)",
    ),
    Design(
        name="strobe",
        decide=simple.schedule_strobe,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages=FIXED,
        source="Mukerjee 2018, 2.4.1",
    ),
    Design(
        name="fixed",
        decide=simple.schedule_fixed,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages=FIXED,
        source="Mukerjee 2018, 2.5.3",
    ),
    Design(
        name="packet_only",
        decide=simple.schedule_packet_only,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        messages="none",
        source="Mukerjee 2018, 2.5.4",
    ),
    Design(
        name="optimum",
        decide=optimum.schedule,
        sees=told,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="Venkatakrishnan et al. 2016 (Eclipse), the problem itself",
        model=optimum.model,
    ),
    Design(
        name="bound",
        decide=bound.limit,
        exchange=exchange.transfers,
        mechanism=Mechanism.TRANSPARENCY,
        messages=TOLD,
        source="linear relaxation of the schedule",
        model=bound.model,
    ),
)
