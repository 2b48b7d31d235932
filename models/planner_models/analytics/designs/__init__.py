"""The designs of system `analytics`: algorithm, observation and coordination mechanism."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.analytics import information
from planner_models.analytics.designs import archiving, backfill, optimum, priced, rules, site_values
from planner_models.analytics.designs.formulation import open_model
from planner_models.analytics.information import observe_bandwidth

PAPER: Final = "Rabkin et al. 2013"
_fixed = partial(Design, signalling=no_signalling, mechanism=Mechanism.NONE, messages="levels are set once")
_local = partial(
    Design,
    observe=observe_bandwidth,
    signalling=no_signalling,
    mechanism=Mechanism.REACTION,
    messages="a site measures the bandwidth of its own path",
)
DESIGNS: Final = (
    Design(
        name="optimum",
        title="Optimal choice of levels",
        decide=optimum.plan,
        observe=observe_bandwidth,
        signalling=information.count_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="uplinks report bandwidth, sites report volumes; the controller sends levels",
        source=f"{PAPER}, sections 3 and 4 (the problem); Geoffrion 1974 (Lagrangian relaxation)",
        model=optimum.build_model,
        open_model=open_model,
    ),
    _fixed(
        name="backhaul_all",
        title="Send everything",
        decide=rules.send_all,
        source=f"{PAPER}, section 1 (backhaul)",
    ),
    _fixed(
        name="static_policy",
        title="Static policy",
        decide=rules.choose_once,
        source=f"{PAPER}, section 1 (static policy)",
    ),
    _fixed(
        name="fixed_top_k",
        title="Fixed top-k",
        decide=rules.fix_level,
        source=f"{PAPER}, section 1 (top-k for some k > 100)",
    ),
    _local(
        name="adaptive_policy",
        title="Adaptation by site",
        decide=rules.adapt_locally,
        source=f"{PAPER}, section 4 (degradation policies)",
    ),
    _local(
        name="local_values",
        title="Value by site",
        decide=site_values.choose_by_own_value,
        source="the same problem, by site",
    ),
    Design(
        name="coarsest",
        title="Coarsest data",
        decide=site_values.choose_by_coarsest,
        observe=observe_bandwidth,
        signalling=information.count_coarsest,
        mechanism=Mechanism.TRANSPARENCY,
        messages="sites report the levels that they would send, and get the coarsest of others",
        source=f"{PAPER}, section 4 (optimizing across queries)",
    ),
    Design(
        name="priced",
        title="Bandwidth pricing",
        decide=priced.choose_by_prices,
        observe=observe_bandwidth,
        signalling=information.count_prices,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="uplinks send prices and get their loads; each query chooses its levels",
        source="Geoffrion 1974 (Lagrangian relaxation)",
    ),
    Design(
        name="backfill",
        title="Backfill",
        decide=backfill.send_later,
        observe=observe_bandwidth,
        signalling=information.count_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="uplinks report bandwidth, sites report volumes; the controller sends levels",
        source=f"{PAPER}, section 3 (backfill to improve data)",
    ),
    Design(
        name="storage",
        title="Place of storage",
        decide=archiving.store_data,
        observe=observe_bandwidth,
        signalling=information.count_reports,
        mechanism=Mechanism.TRANSPARENCY,
        messages="uplinks report bandwidth, sites report volumes; the controller sends levels and places",
        source=f"{PAPER}, sections 1 and 5 (storage at the site, the point of presence or the datacenter)",
        model=archiving.build_model,
    ),
)
