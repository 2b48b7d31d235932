"""The designs of system `brokering`: messages between broker and CDNs, and who decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from planner.contract.design import Design, Mechanism, never
from planner_models.brokering import information
from planner_models.brokering.designs import (
    learning_bidders,
    reputation,
    several_brokers,
    split_control,
    without_broker,
)
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.designs.open_model import open_model as make_open_model


def _design(
    name: str,
    title: str,
    observation: Callable[..., Any],
    messages: str,
    source: str,
    mechanism: Mechanism = Mechanism.PRIORITY_RANKING,
    count: Callable[..., Any] = information.count_rounds,
    decide: Callable[..., Any] = assignment.assign,
    keeps_previous: Callable[[Mapping[str, Any]], bool] = never,
) -> Design[Any, Any]:
    """Return a design with brokers that decide on that observation; the formal model is of one broker's."""
    return Design(
        name=name,
        title=title,
        decide=decide,
        observe=observation,
        signalling=count,
        mechanism=mechanism,
        messages=messages,
        source=f"Mukerjee 2018, {source}",
        model=assignment.build_model if decide is assignment.assign else None,
        open_model=make_open_model if decide is assignment.assign else None,
        keeps_previous=keeps_previous,
    )


_split_control = partial(
    _design,
    observation=information.global_and_local,
    mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
    count=information.count_full_information,
    keeps_previous=lambda parameters: parameters.get("windows", 1) > 1,
)


DESIGNS: Final = (
    _design(
        "marketplace",
        "Marketplace",
        information.marketplace,
        "the broker shares its clients; CDNs bid several clusters for each, with performance, price and "
        "residual capacity; the broker says which bids it accepts",
        "3.4.2 (Marketplace)",
    ),
    _design(
        "omniscient",
        "Full information",
        information.omniscient,
        "CDNs announce every cluster, cost and capacity to the broker",
        "3.5.1 (Omniscient)",
        Mechanism.TRANSPARENCY,
        information.count_full_information,
    ),
    _design(
        "brokered",
        "Flat contract",
        information.brokered,
        "none; a contract's price is agreed on for months",
        "3.4.2 (Brokered)",
        Mechanism.REACTION,
    ),
    _design(
        "multicluster",
        "Multi-cluster matching",
        information.multicluster,
        "CDNs announce several clusters for each location",
        "3.4.2 (Multicluster)",
    ),
    _design(
        "dynamic_pricing",
        "Dynamic pricing",
        information.dynamic_pricing,
        "CDNs announce the cost of the cluster they would use for each location",
        "3.4.2 (DynamicPricing)",
    ),
    _design(
        "dynamic_multicluster",
        "Dynamic pricing, several clusters",
        information.dynamic_multicluster,
        "CDNs announce several clusters for each location, with their costs",
        "3.4.2 (DynamicMulticluster)",
    ),
    _design(
        "best_lookup",
        "Best lookup",
        information.best_lookup,
        "CDNs announce several clusters for each location, with costs and capacities",
        "3.4.2 (BestLookup)",
    ),
    _design(
        "protocol",
        "Own protocol",
        information.protocol,
        "any choice of what is shared, matched and announced",
        "Table 3.2",
    ),
    _design(
        "several_brokers",
        "Competition of brokers",
        information.marketplace,
        "as marketplace, with each of several brokers, none of which knows of the others",
        "3.4.2 (overbooking)",
        decide=several_brokers.assign_independently,
    ),
    _design(
        "marketplaces",
        "Regional marketplace",
        information.marketplace,
        "as marketplace, in each of several marketplaces; a CDN announces a part of its capacity to each",
        "3.6.3 (scalability) and 5.3 (hints or guarantees)",
        decide=several_brokers.assign_in_shares,
    ),
    _design(
        "transactions",
        "Transactional market",
        information.marketplace,
        "as marketplace; then CDNs commit to all brokers' mappings or all are withdrawn",
        "3.4.2 (Transactions)",
        count=information.count_transactions,
        decide=several_brokers.assign_in_transactions,
    ),
    _design(
        "learning_bidders",
        "Bid learning",
        information.marketplace,
        "as marketplace; CDNs change prices and promises by the bids that were accepted",
        "3.6.1 and 3.6.3 (Accept)",
        decide=learning_bidders.assign,
    ),
    _design(
        "reputation",
        "Market with reputations",
        information.marketplace,
        "as marketplace, with bids that claim too good a performance; clients measure, and the broker "
        "serves by the bids of a CDN with a bad reputation only whom no others can",
        "3.4.2 (Fraud)",
        decide=reputation.assign,
    ),
    _split_control(
        "c3",
        "Deviation by client",
        messages="as full information, to a controller that decides for all clients; a client then deviates "
        "from its decision where its cluster is lost or overloaded, or its performance has fallen",
        source="1.2.2 (C3)",
        decide=split_control.assign_by_client,
    ),
    _split_control(
        "pytheas",
        "Deviation by group",
        messages="as full information, to a controller that decides for all clients; a local controller of "
        "each country then adjusts its decision where a cluster is lost or overloaded, or performance has "
        "fallen",
        source="1.2.2 (Pytheas)",
        decide=split_control.assign_by_group,
    ),
    _design(
        "performance_only",
        "Performance only",
        information.brokered,
        "none",
        "Fig. 3.10 with wc = 0",
        Mechanism.REACTION,
        decide=assignment.assign_by_performance,
    ),
    _design(
        "without_broker",
        "Market without its broker",
        information.own_clusters,
        "none; each content provider asks one CDN",
        "3.6.3 (Failures)",
        Mechanism.REACTION,
        decide=without_broker.assign,
    ),
)
