"""Groups that find each other all at once: flooding, NameDropper, growing clusters, and a tree of seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.options import Options
from planner.search.judged import infeasible
from planner_models.membership.designs import raft
from planner_models.membership.designs.decision import SAFE, decide
from planner_models.membership.designs.groups import make_extras
from planner_models.membership.plan.joining import Joining
from planner_models.membership.plan.plan import MembershipPlan
from planner_models.membership.problem.problem import Membership
from planner_models.membership.protocols import clusters, discovery

MAX_SIMULATED: Final = 10_000
"""Processes of a group up to which protocols are simulated."""
Seed = Annotated[int, Field(ge=0, description="seed of random choices, and of whom processes know at first")]


def plan_flooding(
    problem: Membership, *, seed: Seed = 0, options: Options = Options()
) -> Decision[MembershipPlan]:
    """Let each process send all names that it knows to all of them, in each round.

    source  Haeupler and Malkhi 2015, 1.2
    """
    return _plan(problem, "flooding", lambda edges, _rng: discovery.flood(edges), seed, options)


def plan_name_dropper(
    problem: Membership, *, seed: Seed = 0, options: Options = Options()
) -> Decision[MembershipPlan]:
    """Let each process send all names that it knows to a random one of them, in each round.

    source  Harchol-Balter, Leighton and Lewin 1999; Haeupler and Malkhi 2015, 1.2
    """
    return _plan(problem, "name_dropper", discovery.name_dropper, seed, options)


def plan_clusters(
    problem: Membership,
    *,
    epsilon: Annotated[
        float, Field(gt=0, lt=1, description="clusters of size s discover s^(1 - epsilon) others")
    ] = 0.5,
    first_size: Annotated[
        float | None,
        Field(gt=0, le=16, description="exponent of log n that clusters begin with; default: 2 / epsilon"),
    ] = None,
    initial: Annotated[
        float, Field(gt=0, le=16, description="iterations of the initialization for each log log n")
    ] = 2.0,
    seed: Seed = 0,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Let clusters of processes grow: they merge at random, then into sampled centres of ever larger ones.

    source  Haeupler and Malkhi 2015, Algorithms 1 to 5
    """
    setting = clusters.Setting(epsilon=epsilon, first_size=first_size, initial=initial)

    def run(edges: Bools, rng: np.random.Generator) -> discovery.Discovery:
        return clusters.discover(edges, rng, setting)[0]

    return _plan(problem, "clusters", run, seed, options)


def plan_rendezvous(
    problem: Membership,
    *,
    degree: Annotated[
        int | None,
        Field(ge=2, le=1_000_000, description="processes below each seed; default: as many as it can serve"),
    ] = None,
    options: Options = Options(),
) -> Decision[MembershipPlan]:
    """Let names go up a tree of seeds, and the list of all come down.

    Each seed serves no more processes in a round than it has syncs, unless `degree` says otherwise.
    """
    group = problem.group
    served = max(int(group.syncs_per_s * group.interval_s), 2)
    width = min(degree or served, max(group.members - 1, 2))
    joining = Joining(
        protocol="rendezvous",
        fan_out=width,
        rounds=max(discovery.rendezvous_rounds(group.members, width), 1),
        messages=2.0 * (group.members - 1),
        busiest=float(width + 1),
    )
    return decide(problem, raft.place, guarantees=SAFE, extras=make_extras(problem, joining), options=options)


def _plan(
    problem: Membership,
    protocol: str,
    run: Callable[[Bools, np.random.Generator], discovery.Discovery],
    seed: int,
    options: Options,
) -> Decision[MembershipPlan]:
    """Return members as they are, with a group that finds each other by a protocol that is simulated."""
    group, rng = problem.group, np.random.default_rng(seed)
    if group.members > MAX_SIMULATED:
        return Decision(
            plan=None,
            proof=infeasible(
                f"gossip: the group has {group.members:,} processes; {protocol.replace('_', ' ')} is "
                f"simulated for at most {MAX_SIMULATED:,}"
            ),
        )
    try:
        result = run(first_contacts(problem, rng), rng)
    except ValueError as error:
        return Decision(plan=None, proof=infeasible(f"contacts: {error}"))
    joining = Joining(
        protocol=protocol,
        fan_out=1 if protocol == "name_dropper" else max(group.members - 1, 1),
        rounds=max(result.rounds, 1),
        messages=float(max(sum(result.messages), 1)),
        busiest=float(max(result.busiest, 1)),
    )
    return decide(problem, raft.place, guarantees=SAFE, extras=make_extras(problem, joining), options=options)


def first_contacts(problem: Membership, rng: np.random.Generator) -> Bools:
    """Return whom each process of the group knows at first, (n, n)."""
    frame = problem.contacts
    if frame is None or not len(frame):
        return discovery.start_graph(problem.group.members, problem.group.start, rng)
    names = {
        name: row
        for row, name in enumerate(dict.fromkeys([*frame["member"].astype(str), *frame["knows"].astype(str)]))
    }
    edges = np.zeros((len(names), len(names)), dtype=bool)
    for member, knows in zip(frame["member"].astype(str), frame["knows"].astype(str), strict=True):
        edges[names[member], names[knows]] = True
    return edges
