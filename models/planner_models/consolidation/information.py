"""Wrong, old or coarse observations of machines, realization of plans in truth, and messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.contract.degradation import AgeS, Seed, drift
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.consolidation.plan.plan import ConsolidationPlan, make_plan
from planner_models.consolidation.plan.reading import read_plan
from planner_models.consolidation.problem.packing import HostGroup, Packer, regroup
from planner_models.consolidation.problem.problem import Consolidation

MEMORY_S: Final = 86_400.0
"""Time in which the autocorrelation of the number of machines of a shape falls to 1/e, s."""
SWING: Final = 0.3
"""Standard deviation of the logarithm of the number of machines of a shape over time."""
STEP: Final = 2.0
"""Factor between two sizes that a coarse observation tells apart."""

Wrong = Annotated[
    float,
    Field(ge=0, le=0.9, description="largest share by which each observed request is wrong, either way"),
]
Coarse = Annotated[
    float,
    Field(
        ge=0,
        le=3,
        description="sizes: 0 exact, 1 rounded up to powers of two, 2 and more only the number of vCPUs",
    ),
]


def observe(
    problem: Consolidation, *, noise: Wrong = 0.0, age_s: AgeS = 0.0, coarse: Coarse = 0.0, seed: Seed = 0
) -> Consolidation:
    """Return the problem with machines as they are observed.

    noise   each request for vCPUs and memory is wrong by up to this share
    age     numbers of machines are those of `age_s` ago; each has drifted since then (Ornstein-Uhlenbeck)
    coarse  sizes are rounded up; a request is no larger than what the largest host has
    """
    if noise == 0 and age_s == 0 and coarse == 0:
        return problem
    machines = problem.machines
    vcpus, memory = problem.vcpus, problem.memory_gb
    if noise > 0:
        random = np.random.default_rng([seed, 0])
        factor = random.uniform(1 - noise, 1 + noise, (2, len(machines)))
        client = problem.client
        vcpus = np.maximum(np.rint(vcpus * factor[0] / client), 1.0) * client * (vcpus > 0)
        memory = memory * factor[1]
    if coarse >= 1:
        vcpus, memory = _round_up(vcpus), _round_up(memory)
        vcpus = np.ceil(vcpus / problem.client - 1e-9) * problem.client
    if coarse >= 2:
        per_vcpu = float(problem.memory_gb @ problem.count) / max(float(problem.vcpus @ problem.count), 1e-9)
        memory = vcpus * per_vcpu
    vcpus, memory = _fit_sizes(problem, vcpus, memory)
    count = problem.count.astype(float)
    if age_s > 0:
        random = np.random.default_rng([seed, 1])
        count = np.rint(drift(count, age=age_s, memory=MEMORY_S, spread=SWING, rng=random))
    changed = machines.assign(vcpus_min=vcpus, memory_gb=memory, count=count)
    if "vcpus_max" in machines:
        changed = changed.assign(vcpus_max=np.maximum(problem.vcpus_max, vcpus))
    return replace(problem, machines=changed)


def _round_up(values: Floats) -> Floats:
    """Return values rounded up to powers of two."""
    positive = np.maximum(values, 1e-9)
    return np.where(values > 0, np.power(STEP, np.ceil(np.log2(positive) - 1e-9)), 0.0)


def _fit_sizes(problem: Consolidation, vcpus: Floats, memory: Floats) -> tuple[Floats, Floats]:
    """Return observed sizes; those of shapes that would fit in no host are the true ones."""
    largest = np.zeros((len(vcpus), 2))
    for row, split in enumerate(problem.split):
        for host_type, shape in enumerate(problem.host_shapes):
            if problem.is_allowed[row, host_type]:
                node = shape.node[:, :2]
                capacity = node.max(axis=0) if split == "never" else node.min(axis=0)
                largest[row] = np.maximum(largest[row], np.minimum(capacity, shape.whole[:2]))
    fits = (vcpus <= largest[:, 0]) & (memory <= largest[:, 1])
    return np.where(fits, vcpus, problem.vcpus), np.where(fits, memory, problem.memory_gb)


def realize(truth: Consolidation, observed: Consolidation, plan: ConsolidationPlan) -> ConsolidationPlan:
    """Return the plan with the true machines: those that a host does not hold look for another one.

    Machines keep their host and nodes. Where their true size is too large there, or there are more of them
    than were observed, they are placed by best fit on the hosts of the plan, and refused where none holds
    them.
    """
    if truth is observed:
        return plan
    reading = read_plan(observed, plan)
    remaining = truth.count.copy()
    groups: list[HostGroup] = []
    for group in reading.groups():
        true_group = regroup(truth, group.supply, group.hosts, {})
        true_group.name = group.name
        groups += _settle(truth, group, true_group, remaining)
    packer = Packer(truth, groups=groups, may_open=False)
    for shape in np.flatnonzero(remaining > 0).tolist():
        packer.place(int(shape), int(remaining[shape]))
    return make_plan(truth, packer.groups, packer.refused, moves=plan.moves, keep_empty=True)


def _settle(
    truth: Consolidation, group: HostGroup, empty: HostGroup, remaining: np.ndarray
) -> list[HostGroup]:
    """Return the hosts of a group with as many of their machines as fit in truth, which leave `remaining`."""
    packer = Packer(truth, groups=[empty], may_open=False)
    for (shape, _, _), times in sorted(group.content.items()):
        wanted_total = min(int(remaining[shape]), times * group.hosts)
        missing = packer.place(shape, wanted_total)
        remaining[shape] -= wanted_total - missing
    for (shape, _, _), times in sorted(group.slots.items()):
        for item in packer.groups:
            for _ in range(times):
                way = packer.find_placing(item, shape)
                if way is not None:
                    item.add(
                        (shape, way.vcpus, 0 if sum(way.vcpus) <= 0 else _first(way.vcpus)), way, is_slot=True
                    )
    return packer.groups


def _first(vcpus: tuple[float, ...]) -> int:
    return next(index for index, amount in enumerate(vcpus) if amount > 0)


def _machines(problem: Consolidation) -> int:
    """Return the bytes of all machines: name, number, vCPUs, memory and other resources."""
    return len(problem.machines) * (NAME + (3 + len(problem.resources)) * FIGURE)


def _hosts(problem: Consolidation) -> int:
    """Return the bytes of all host types and their nodes."""
    return len(problem.hosts) * (NAME + 2 * FIGURE) + len(problem.nodes) * (2 * NAME + 2 * FIGURE)


def _placed(plan: ConsolidationPlan) -> int:
    """Return the bytes of a plan: machine, host, node, vCPUs and number of each row."""
    return len(plan.placement) * (3 * NAME + 2 * FIGURE)


def signal_all(problem: Consolidation, plan: ConsolidationPlan) -> Signalling:
    """Count all machines and hosts, sent to one controller, and its decision."""
    return Signalling(messages=3, bytes=_machines(problem) + _hosts(problem) + _placed(plan))


def signal_hosts(problem: Consolidation, plan: ConsolidationPlan) -> Signalling:
    """Count a request for each machine, and the free capacity of the host that takes it."""
    machines = int(problem.count.sum())
    per_machine = NAME + (2 + len(problem.resources)) * FIGURE
    return Signalling(messages=2 * machines, bytes=machines * 2 * per_machine + _placed(plan))
