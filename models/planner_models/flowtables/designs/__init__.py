"""The designs of system `flowtables`: caches filled by misses, and pools of masks."""

from __future__ import annotations

from functools import partial
from typing import Final

from planner.contract.design import Design, Mechanism
from planner_models.flowtables.designs import fewest_misses, merged, reactive, replanned
from planner_models.flowtables.information import count_installs, observe_trace

PAPER: Final = "Pfaff et al. 2015 (Open vSwitch)"
_reacts = partial(
    Design,
    signalling=count_installs,
    mechanism=Mechanism.REACTION,
    messages="the datapath sends packets that miss; userspace installs an entry for each",
)
DESIGNS: Final = (
    Design(
        name="merged",
        title="Entry merging",
        decide=merged.plan_pool,
        observe=observe_trace,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        signalling=count_installs,
        messages="userspace finds masks for a trace; then each miss installs an entry with one of them",
        source=f"{PAPER}, 5.1: the open problem of least specific entries, with the cost of masks",
    ),
    Design(
        name="pool",
        title="Best of a pool",
        decide=reactive.serve_from_pool,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        signalling=count_installs,
        messages="the datapath sends packets that miss, and hits of masks; userspace installs entries",
        source=f"{PAPER}, 5.1, with masks in use taken again",
    ),
    Design(
        name="replanned",
        title="Entry replanning",
        decide=replanned.plan_again,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        signalling=count_installs,
        messages="userspace plans masks for connections so far; then each miss installs an entry with one",
        source=f"{PAPER}, 5.1, with masks planned for the past",
    ),
    Design(
        name="least_specific",
        title="Least specific mask",
        decide=reactive.match_least,
        mechanism=Mechanism.TRANSPARENCY,
        signalling=count_installs,
        messages="userspace knows the actions of all rules; each miss installs an entry",
        source=f"{PAPER}, 5.1: the open problem of least specific entries",
    ),
    Design(
        name="fewest_misses",
        title="Miss minimization",
        decide=fewest_misses.cover_trace,
        mechanism=Mechanism.TRANSPARENCY,
        signalling=count_installs,
        messages="userspace knows the actions of all rules and all connections to come",
        source=f"{PAPER}, 5.1: the open problem of least specific entries, for a trace",
    ),
    _reacts(
        name="all",
        title="Open vSwitch, all optimizations",
        decide=reactive.combine_all,
        source=f"{PAPER}, 5.2 to 5.4",
    ),
    _reacts(name="prefix", title="Prefix tracking", decide=reactive.track_prefixes, source=f"{PAPER}, 5.4"),
    _reacts(name="staged", title="Staged lookup", decide=reactive.look_up_in_stages, source=f"{PAPER}, 5.3"),
    _reacts(
        name="priority", title="Sorted by priority", decide=reactive.sort_by_priority, source=f"{PAPER}, 5.2"
    ),
    _reacts(
        name="tuple_search",
        title="Tuple space search",
        decide=reactive.search_tuples,
        source=f"{PAPER}, 3.2 and 4.2",
    ),
    Design(
        name="microflows",
        title="Microflow cache",
        decide=reactive.install_microflows,
        signalling=count_installs,
        messages="the datapath sends packets that miss; userspace installs an entry for each",
        source=f"{PAPER}, 4.1",
    ),
)
