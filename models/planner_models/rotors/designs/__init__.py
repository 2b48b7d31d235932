"""The designs of system `rotors`: over a fixed rotation, and schedules made for the demand."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.rotors.designs import demand_aware, rotor_routing
from planner_models.rotors.designs.formulation import open_model
from planner_models.rotors.information import count_reports

_rotates = partial(
    Design, signalling=no_signalling, mechanism=Mechanism.NONE, messages="the rotation is set once"
)
_schedules = partial(
    Design,
    signalling=count_reports,
    mechanism=Mechanism.TRANSPARENCY,
    messages="racks report their demand; the scheduler sends each switch its circuits",
)
DESIGNS: Final = (
    Design(
        name="two_hop",
        title="Two-hop routing",
        decide=rotor_routing.route_two_links,
        mechanism=Mechanism.REACTION,
        messages="racks offer and accept traffic over the circuits that are up",
        source="Mellette et al. 2017 (RotorNet)",
        model=rotor_routing.build_model,
        open_model=open_model,
    ),
    _rotates(
        name="valiant",
        title="Valiant routing",
        decide=rotor_routing.route_valiant,
        source="Ballani et al. 2020 (Sirius), Valiant's routing",
    ),
    _rotates(
        name="direct",
        title="Direct circuit",
        decide=rotor_routing.route_direct,
        source="Mellette et al. 2017 (RotorNet), direct",
    ),
    Design(
        name="expander",
        title="Expander",
        decide=rotor_routing.route_expander,
        mechanism=Mechanism.REACTION,
        messages="racks offer and accept traffic over the circuits that are up; routes are set once",
        source="Mellette et al. 2020 (Opera)",
    ),
    _schedules(
        name="solstice",
        title="Solstice",
        decide=demand_aware.schedule_solstice,
        source="Liu et al. 2015 (Solstice)",
    ),
    _schedules(
        name="eclipse",
        title="Eclipse",
        decide=demand_aware.schedule_eclipse,
        source="Venkatakrishnan et al. 2016 (Eclipse)",
    ),
    _schedules(
        name="scheduled",
        title="Best schedule",
        decide=demand_aware.schedule_best,
        source="Venkatakrishnan et al. 2016 (Eclipse), the problem itself",
        model=demand_aware.build_model,
    ),
    _schedules(
        name="indirect",
        title="Schedule with relays",
        decide=demand_aware.schedule_indirect,
        source="Mukerjee 2018, 2.7 (indirect routing of Albedo and Eclipse)",
    ),
)
