"""The designs of system `updates`."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner_models.updates.designs import (
    batches,
    congestion_free,
    in_place,
    intermediate_paths,
    least_loss,
    per_flow,
    two_phase,
)
from planner_models.updates.information import count_announcements, count_commands, observe_traffic

_centrally = partial(
    Design,
    mechanism=Mechanism.TRANSPARENCY,
    signalling=count_commands,
    messages="switches report their rules; the controller sends each switch its changes, step by step",
)
FOSTER: Final = "Foster et al. 2013, IV.A"
DESIGNS: Final = (
    _centrally(
        name="two_phase_changed",
        title="Two-phase update, changes only",
        decide=two_phase.update_changed,
        source=f"{FOSTER}, subset of the traffic",
    ),
    Design(
        name="one_shot",
        title="All at once",
        decide=two_phase.update_once,
        mechanism=Mechanism.NONE,
        signalling=count_commands,
        messages="the controller sends each switch its rules",
        source="practice without consistent updates",
    ),
    _centrally(name="two_phase", title="Two-phase update", decide=two_phase.update_all, source=FOSTER),
    _centrally(
        name="extension_first",
        title="Extensions first",
        decide=two_phase.update_few,
        source=f"{FOSTER}, extension, retraction, subset of switches",
    ),
    Design(
        name="per_flow",
        title="Flow by flow",
        decide=per_flow.update_with_flows,
        mechanism=Mechanism.REACTION,
        signalling=count_commands,
        messages="the controller sends rules; old ones expire at the ingresses without a message",
        source="Foster et al. 2013, IV.B",
    ),
    Design(
        name="ordered",
        title="Ordered update",
        decide=in_place.update_in_order,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        signalling=count_commands,
        messages="the controller orders each destination's switches into rounds",
        source="Foerster, Schmid and Vissicchio 2019, survey",
    ),
    Design(
        name="ordered_exact",
        title="Shortest ordered update",
        decide=in_place.update_in_few_rounds,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        signalling=count_commands,
        messages="the controller orders each destination's switches into rounds",
        source="Foerster, Schmid and Vissicchio 2019, survey",
    ),
    Design(
        name="decentral",
        title="Switch by switch",
        decide=in_place.update_by_neighbours,
        mechanism=Mechanism.REACTION,
        signalling=count_announcements,
        messages="a switch tells its neighbours when its new rule is ready",
        source="Nguyen, Chiesa and Canini 2017 (ez-Segway), in-band coordination",
    ),
    _centrally(
        name="batches",
        title="Batched update",
        decide=batches.update_in_batches,
        source="Katta, Rexford and Walker 2013",
        model=batches.build_model,
    ),
    _centrally(
        name="batches_exact",
        title="Shortest batched update",
        decide=batches.update_in_fewest_batches,
        source="Katta, Rexford and Walker 2013, exact",
    ),
    _centrally(
        name="congestion_free",
        title="Congestion-free update",
        decide=congestion_free.update_without_congestion,
        observe=observe_traffic,
        source="Hong et al. 2013 (SWAN), 4.2",
        model=congestion_free.build_model,
    ),
    _centrally(
        name="optimum",
        title="Optimal batched update",
        decide=batches.update_jointly,
        observe=observe_traffic,
        source="tables and links at once, by branch and bound",
    ),
    _centrally(
        name="intermediate",
        title="Staged update",
        decide=intermediate_paths.update_over_paths,
        observe=observe_traffic,
        source="Jin et al. 2014 (Dionysus), dependencies of moves; A*: Hart, Nilsson and Raphael 1968",
    ),
    _centrally(
        name="least_loss",
        title="Least loss",
        decide=least_loss.update_with_least_loss,
        observe=observe_traffic,
        source="the best of several designs",
    ),
)
