"""The designs of system `brokering`: messages between broker and CDNs, and who decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from planner.contract.design import Design, Mechanism
from planner_models.brokering.designs import learning_bidders, several_brokers
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.information import observe, signalling


def _broker(
    name: str,
    observation: Callable[..., Any],
    messages: str,
    source: str,
    mechanism: Mechanism = Mechanism.PRIORITY_RANKING,
    count: Callable[..., Any] = signalling.count_rounds,
) -> Design[Any, Any]:
    """Return the design of one broker that decides on that observation."""
    return Design(
        name=name,
        decide=assignment.assign,
        observe=observation,
        signalling=count,
        mechanism=mechanism,
        messages=messages,
        source=f"Mukerjee 2018, {source}",
        model=assignment.build_model,
    )


DESIGNS: Final = (
    _broker(
        "marketplace",
        observe.marketplace,
        "the broker shares its clients; CDNs bid several clusters for each, with performance, price and "
        "residual capacity; the broker says which bids it accepts",
        "3.4.2 (Marketplace)",
    ),
    _broker(
        "omniscient",
        observe.estimate,
        "CDNs announce every cluster, cost and capacity to the broker",
        "3.5.1 (Omniscient)",
        Mechanism.TRANSPARENCY,
        signalling.count_full_information,
    ),
    _broker(
        "brokered",
        observe.brokered,
        "none; a contract's price is agreed on for months",
        "3.4.2 (Brokered)",
        Mechanism.REACTION,
    ),
    _broker(
        "multicluster",
        observe.multicluster,
        "CDNs announce several clusters for each location",
        "3.4.2 (Multicluster)",
    ),
    _broker(
        "dynamic_pricing",
        observe.dynamic_pricing,
        "CDNs announce the cost of the cluster they would use for each location",
        "3.4.2 (DynamicPricing)",
    ),
    _broker(
        "dynamic_multicluster",
        observe.dynamic_multicluster,
        "CDNs announce several clusters for each location, with their costs",
        "3.4.2 (DynamicMulticluster)",
    ),
    _broker(
        "best_lookup",
        observe.best_lookup,
        "CDNs announce several clusters for each location, with costs and capacities",
        "3.4.2 (BestLookup)",
    ),
    _broker(
        "protocol",
        observe.protocol,
        "any choice of what is shared, matched and announced",
        "Table 3.2",
    ),
    Design(
        name="several_brokers",
        decide=several_brokers.assign_independently,
        observe=observe.marketplace,
        signalling=signalling.count_rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="as marketplace, with each of several brokers, none of which knows of the others",
        source="Mukerjee 2018, 3.4.2 (overbooking)",
    ),
    Design(
        name="transactions",
        decide=several_brokers.assign_in_transactions,
        observe=observe.marketplace,
        signalling=signalling.count_transactions,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="as marketplace; then CDNs commit to all brokers' mappings or all are withdrawn",
        source="Mukerjee 2018, 3.4.2 (Transactions)",
    ),
    Design(
        name="learning_bidders",
        decide=learning_bidders.assign,
        observe=observe.marketplace,
        signalling=signalling.count_rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="as marketplace; CDNs change prices and promises by the bids that were accepted",
        source="Mukerjee 2018, 3.6.1 and 3.6.3 (Accept)",
    ),
    Design(
        name="performance_only",
        decide=assignment.assign_by_performance,
        signalling=signalling.count_rounds,
        observe=observe.brokered,
        mechanism=Mechanism.REACTION,
        messages="none",
        source="Mukerjee 2018, Fig. 3.10 with wc = 0",
    ),
)
