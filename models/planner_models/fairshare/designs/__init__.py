"""The designs of system `fairshare`: from an unmodified store to all mechanisms, and the optimum."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.fairshare.designs import fair_rates, least_moves, mechanisms, moves, optimum
from planner_models.fairshare.designs.formulation import open_model
from planner_models.fairshare.information import (
    count_everything,
    count_flow_weights,
    count_placement,
    count_weights,
    observe_demand,
)

PISCES: Final = "Shue, Freedman, Shaikh 2013 (Pisces)"
_of_store = partial(Design, keeps_previous=lambda parameters: True)  # noqa: ARG005 - data stays where it is
_alone = partial(_of_store, signalling=no_signalling)
_placed = partial(
    _of_store,
    observe=observe_demand,
    mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
    messages="nodes report demand; the controller sends them the placement",
)
DESIGNS: Final = (
    _of_store(
        name="optimum",
        title="Optimal sharing",
        decide=optimum.share,
        observe=observe_demand,
        mechanism=Mechanism.TRANSPARENCY,
        messages="nodes report demand; the controller sends placement, weights and splits",
        source=f"{PISCES}, Table 1; Megiddo 1974, Fujishige 1980",
        signalling=count_everything,
        model=fair_rates.build_model,
        open_model=open_model,
    ),
    _alone(
        name="unmodified",
        title="Unmodified store",
        decide=mechanisms.serve_first_come,
        source=f"{PISCES}, 4.1 (Membase)",
    ),
    _alone(
        name="static_rates",
        title="Static rate limiting",
        decide=mechanisms.limit_rates,
        source=f"{PISCES}, 1 (rate limits as of DynamoDB)",
    ),
    _alone(
        name="per_node_fair",
        title="Fair on each node",
        decide=mechanisms.queue_by_weight,
        mechanism=Mechanism.REACTION,
        messages="nodes observe their own queues",
        source=f"{PISCES}, 3.4",
    ),
    _alone(
        name="fq",
        title="Fair queueing",
        decide=mechanisms.queue_fairly,
        mechanism=Mechanism.REACTION,
        messages="nodes observe their own queues",
        source=f"{PISCES}, 3.4 and 4.1",
    ),
    _placed(
        name="fq_pp",
        title="Fair queueing, placement",
        decide=mechanisms.place_fairly,
        source=f"{PISCES}, 3.1",
        signalling=count_placement,
    ),
    _placed(
        name="fq_pp_wa",
        title="Fair queueing, placement, weights",
        decide=mechanisms.swap,
        source=f"{PISCES}, 3.2, with its swap rule repaired",
        signalling=count_weights,
    ),
    _placed(
        name="fq_pp_wa_flow",
        title="Fair queueing, placement, weights by flow",
        decide=mechanisms.exchange_by_flow,
        source=f"{PISCES}, 3.2 (multilateral exchanges)",
        signalling=count_flow_weights,
    ),
    _placed(
        name="fq_pp_rs",
        title="Fair queueing, placement, replica selection",
        decide=mechanisms.select_replicas,
        outgrows=mechanisms.tell_window_time,
        source=f"{PISCES}, 3.3",
        signalling=count_placement,
    ),
    _placed(
        name="pisces",
        title="Pisces",
        decide=mechanisms.combine,
        outgrows=mechanisms.tell_window_time,
        source=PISCES,
        signalling=count_flow_weights,
    ),
    _of_store(
        name="least_moves",
        title="Least movement for fair shares",
        decide=least_moves.share,
        observe=observe_demand,
        mechanism=Mechanism.TRANSPARENCY,
        messages="nodes report demand; the controller sends moves, weights and splits",
        source=f"{PISCES}, 3.1; Fisher 1981 (relaxations)",
        signalling=count_everything,
    ),
    _of_store(
        name="rebalance",
        title="Rebalancing",
        decide=moves.rebalance,
        observe=observe_demand,
        mechanism=Mechanism.TRANSPARENCY,
        messages="nodes report demand; the controller sends moves, weights and splits",
        source=f"{PISCES}, 3.1; ROADEF/EURO challenge 2012 (machine reassignment)",
        signalling=count_everything,
    ),
)
