"""The designs of system `multicast`: who decides which groups get entries, and which share one."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design, Mechanism
from planner_models.multicast import information
from planner_models.multicast.designs.full_tables import flood_without_entry, forward_by_processor
from planner_models.multicast.designs.joint_choice import choose_jointly, joint_program
from planner_models.multicast.designs.partitioned import (
    bound_host_traffic,
    partition_addresses,
    relaxation_model,
    selection_program,
    store_everywhere,
)
from planner_models.multicast.designs.partitioned_aggregated import choose_copies, partition_and_share
from planner_models.multicast.designs.source_routing import replicate_by_index, route_by_source

DESIGNS: Final = (
    Design(
        name="partitioned_aggregated",
        title="Partitioning with aggregation",
        decide=partition_and_share,
        observe=information.observe_groups,
        signalling=information.count_controller,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        keeps_previous=lambda parameters: parameters.get("most_changes") is not None,
        messages="as of partitioned; the controller also tells the switches above and the hosts or switches "
        "below those that share entries which addresses to rewrite",
        source="Scaling IP Multicast on Datacenter Topologies, sections 3.1 and 3.2",
    ),
    Design(
        name="partitioned",
        title="Partitioning",
        decide=partition_addresses,
        observe=information.observe_groups,
        signalling=information.count_controller,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="hosts tell a controller the groups they join and what they send; it gives each switch its "
        "part of the addresses once, each new group an address, and switches their entries",
        source="Scaling IP Multicast on Datacenter Topologies, section 3.1",
        model=selection_program,
    ),
    Design(
        name="per_switch",
        title="Entry on each switch",
        decide=store_everywhere,
        signalling=information.count_joins,
        mechanism=Mechanism.NONE,
        messages="switches forward joins and leaves up the tree",
        source="Scaling IP Multicast on Datacenter Topologies, section 2",
    ),
    Design(
        name="flooding",
        title="Flooding where full",
        decide=flood_without_entry,
        signalling=information.count_joins,
        mechanism=Mechanism.NONE,
        messages="switches forward joins and leaves up the tree",
        source="practice: RFC 4541, 2.1.2 (unregistered packets)",
    ),
    Design(
        name="slow_path",
        title="Slow path where full",
        decide=forward_by_processor,
        signalling=information.count_joins,
        mechanism=Mechanism.NONE,
        messages="switches forward joins and leaves up the tree",
        source="practice: forwarding by the processor of a switch whose table is full",
    ),
    Design(
        name="joint",
        title="Joint choice of cores",
        decide=choose_jointly,
        observe=information.observe_groups,
        signalling=information.count_controller,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="as of partitioned_aggregated",
        source="p-median of unions of port sets, and selection of groups: Cornuejols, Fisher, Nemhauser 1977",
        model=joint_program,
    ),
    Design(
        name="elmo",
        title="Elmo header",
        decide=route_by_source,
        observe=information.observe_groups,
        signalling=information.count_headers,
        mechanism=Mechanism.TRANSPARENCY,
        messages="hosts tell a controller the groups they join; it gives each source the header of its "
        "packets, and switches the entries that headers are too short for",
        source='Shahbaz et al., "Elmo: Source Routed Multicast for Public Clouds", SIGCOMM 2019',
    ),
    Design(
        name="bier",
        title="BIER header",
        decide=replicate_by_index,
        observe=information.observe_groups,
        signalling=information.count_headers,
        mechanism=Mechanism.TRANSPARENCY,
        messages="edge switches tell the edge switches of sources the groups that they have members of",
        source="RFC 8279, RFC 8296",
    ),
    Design(
        name="bound",
        title="Bound",
        decide=bound_host_traffic,
        observe=information.observe_groups,
        signalling=information.count_controller,
        mechanism=Mechanism.TRANSPARENCY,
        messages="all groups and their members",
        source="linear relaxation; port sets that a table has no room for",
        model=relaxation_model,
        is_bound=True,
    ),
    Design(
        name="chosen_copies",
        title="Given set of copies",
        decide=choose_copies,
        observe=information.observe_groups,
        signalling=information.count_controller,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="as of partitioned_aggregated; the controller partitions the addresses anew where groups "
        "need other numbers of copies",
        source="Scaling IP Multicast on Datacenter Topologies, section 3.1.2, step 1",
    ),
)
