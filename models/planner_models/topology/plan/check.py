"""Check that tables are a plan, and find the limits that it violates, without the method that made it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.networks.nodes import find_names
from planner_models.topology.plan.plan import Topology, read_links, require_rows
from planner_models.topology.plan.steps import carried_scale, required_scale
from planner_models.topology.problem.problem import TARGETS, Fabric


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """The content of a plan's tables, re-derived row by row.

    links    (n, n) links
    routed   (n, n) share of each demand that has a path; 1 where there is no demand
    load     (n, n) load of the links from row to column, Mbit/s, where all demand is sent
    transit  (n, n) share of each demand by a transit block
    changes  (n, n) change of links in each step; None without links of today
    """

    problem: Fabric
    links: Ints
    routed: Floats
    load: Floats
    transit: Floats
    changes: list[Ints] | None

    @cached_property
    def capacity(self) -> Floats:
        """(n, n) capacity of the links from row to column, Mbit/s."""
        return self.links * self.problem.link_mbps

    @cached_property
    def scale(self) -> float:
        """The largest factor by which all demand may be multiplied on these paths; 0 where one has none.

        Demand that no plan has a path for does not count.
        """
        lacking = falls_short(self.routed, 1.0) & (self.problem.servable_mbps > 0)
        if lacking.any() or not self.problem.servable_mbps.any():
            return 0.0
        return self.scale_of_routed

    @cached_property
    def scale_of_routed(self) -> float:
        """The largest factor by which the demand that has paths may be multiplied; inf for none."""
        used = self.load > 0
        return float((self.capacity[used] / self.load[used]).min(initial=np.inf))

    @property
    def delivered_mbps(self) -> float:
        """Demand that fits, where all demands with a path are reduced alike."""
        routed = self.routed * self.problem.demand_mbps
        return float(routed.sum()) * min(1.0, self.scale_of_routed)

    @property
    def unserved_mbps(self) -> Floats:
        """(n,) demand of each sending block without a path, or that does not fit."""
        fitting = self.routed * self.problem.demand_mbps * min(1.0, self.scale_of_routed)
        unserved = (self.problem.demand_mbps - fitting).sum(axis=1)
        return np.where(falls_short(0.0, unserved, self.problem.demand_mbps.sum(axis=1)), unserved, 0.0)

    @property
    def transit_share(self) -> float | None:
        """Share of all demand by transit blocks; None where a demand has no path."""
        sent = self.problem.servable_mbps
        return float((self.transit * sent).sum() / sent.sum()) if self.scale > 0 else None

    @property
    def stretch(self) -> float | None:
        """Mean number of links that traffic takes; None where a demand has no path."""
        return None if self.transit_share is None else 1 + self.transit_share

    @cached_property
    def step_scales(self) -> list[float]:
        """Demand scale that the links carry that stay in service in each step; not above 1."""
        present, servable, scales = self.problem.present, self.problem.servable, []
        if present is None or self.changes is None:
            return []
        now = present.copy()
        for change in self.changes:
            remaining = now + np.minimum(change, 0)
            scales.append(1.0 if servable is None else min(1.0, carried_scale(servable, remaining)))
            now = now + change
        return scales

    @cached_property
    def fits_before_and_after(self) -> bool:
        """True where all demand fits on the links of today, and on those of the plan."""
        present, servable = self.problem.present, self.problem.servable
        assert present is not None
        return servable is None or required_scale(servable, present, self.links) >= 1


def derive_scale(problem: Fabric, plan: Topology) -> float:
    """Return the demand scale of the plan's paths over its links."""
    return evaluate(problem, plan).scale


def evaluate(problem: Fabric, plan: Topology) -> Evaluation:
    """Return the arrays of the plan; raises PlanRejected if it is none.

    That is where a table names a block that is none, has links that are no whole numbers at least 0 or shares
    that are no shares, or where the steps do not lead from today's links to those of the plan.
    """
    links = read_links(problem, plan.topology, "topology")
    if (links < 0).any():
        raise PlanRejected("topology: links must be at least 0")
    routes = plan.routes
    source, target = require_rows(problem, routes, "routes", TARGETS)
    share = routes["share"].to_numpy(float)
    if not (np.isfinite(share) & (share > 0) & ~exceeds(share, 1.0)).all():
        raise PlanRejected("routes: share must be greater than 0 and at most 1")
    blank = np.array([not isinstance(name, str) or not name for name in routes["via"]], dtype=bool)
    via = find_names(problem.block_index, routes["via"])
    wrong = ~blank & ((via < 0) | (via == source) | (via == target))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise PlanRejected(f"routes row {row + 1}: via '{routes['via'].iloc[row]}' is no transit block")
    count = len(problem.blocks)
    routed, transit, load = (np.zeros((count, count)) for _ in range(3))
    np.add.at(routed, (source, target), share)
    idle = (problem.demand_mbps <= 0) & (routed > 0)
    if idle.any():
        row = int(np.argmax(idle[source, target]))
        names = routes["source"].iloc[row], routes["target"].iloc[row]
        raise PlanRejected(f"routes row {row + 1}: there is no demand from '{names[0]}' to '{names[1]}'")
    np.add.at(transit, (source[~blank], target[~blank]), share[~blank])
    sent = share * problem.demand_mbps[source, target]
    np.add.at(load, (source[blank], target[blank]), sent[blank])
    np.add.at(load, (source[~blank], via[~blank]), sent[~blank])
    np.add.at(load, (via[~blank], target[~blank]), sent[~blank])
    if exceeds(routed, 1.0).any():
        i, j = (int(cell[0]) for cell in np.nonzero(exceeds(routed, 1.0)))
        raise PlanRejected(
            f"routes: shares from '{problem.names[i]}' to '{problem.names[j]}' add up to {routed[i, j]:.9g}, "
            "must be at most 1"
        )
    routed = np.where(problem.demand_mbps > 0, routed, 1.0)
    return Evaluation(
        problem=problem,
        links=links,
        routed=routed,
        load=load,
        transit=transit,
        changes=_read_steps(problem, plan, links),
    )


def _read_steps(problem: Fabric, plan: Topology, links: Ints) -> list[Ints] | None:
    """Return the (n, n) change of each step; None without links of today."""
    present, frame = problem.present, plan.steps
    if present is None:
        if frame is not None and len(frame):
            raise PlanRejected("steps: the problem has no links of today that could be changed")
        return None
    if frame is None:
        raise PlanRejected("plan: has no table 'steps'")
    numbers = frame["step"].to_numpy(float)
    expected = np.unique(numbers)
    if not np.array_equal(expected, np.arange(1, len(expected) + 1)):
        raise PlanRejected("steps: step must be 1, 2, 3 and so on, without a gap")
    changes = [read_links(problem, frame[numbers == number], "steps") for number in expected]
    now = present.copy()
    for number, change in enumerate(changes, start=1):
        now = now + change
        if (now < 0).any():
            i, j = (int(cell[0]) for cell in np.nonzero(now < 0))
            raise PlanRejected(
                f"steps: step {number} removes more links of '{problem.names[i]}' and '{problem.names[j]}' "
                "than there are"
            )
    if (now != links).any():
        i, j = (int(cell[0]) for cell in np.nonzero(now != links))
        raise PlanRejected(
            f"steps: lead to {now[i, j]} links of '{problem.names[i]}' and '{problem.names[j]}', topology "
            f"has {links[i, j]}"
        )
    return changes


def check(problem: Fabric, plan: Topology) -> Violations:
    """Return the constraint violations of the plan, by name.

    ports   a block has more links than ports, in the plan or after a step
    moves   more links are made anew than the limit on moves allows
    routes  a demand is routed in part only, or not at all although some plan has a path for it
    steps   a step takes more links out of service, or makes more, than its limit allows
    drain   a step leaves links that do not carry all demand, where those of today and of the plan do

    PlanRejected where it is no plan: see `evaluate`.
    """
    evaluation = evaluate(problem, plan)
    violations = _check_ports(problem, "", evaluation.links)
    present = problem.present
    if present is not None and problem.move_limit is not None:
        made = int(np.maximum(evaluation.links - present, 0).sum()) // 2
        if made > problem.move_limit:
            violations += Violations.of(
                "moves", where=["links made anew"], amount=[made], allowed=problem.move_limit, unit="links"
            )
    source, target = np.nonzero(falls_short(evaluation.routed, 1.0) & (problem.servable_mbps > 0))
    violations += Violations.of(
        "routes",
        where=[f"{problem.names[i]}->{problem.names[j]}" for i, j in zip(source, target, strict=True)],
        amount=evaluation.routed[source, target],
        allowed=1.0,
        unit="of the demand",
    )
    return violations + _check_steps(problem, evaluation)


def _check_ports(problem: Fabric, when: str, links: Ints) -> Violations:
    """Return the blocks with more links than ports."""
    used = links.sum(axis=1)
    over = np.flatnonzero(used > problem.ports)
    return Violations.of(
        "ports",
        where=[problem.names[row] + when for row in over],
        amount=used[over],
        allowed=problem.ports[over],
        unit="links",
    )


def _check_steps(problem: Fabric, evaluation: Evaluation) -> Violations:
    """Return the steps that move too many links, need too many ports, or do not carry the demand."""
    violations, present = Violations(), problem.present
    if present is None or not evaluation.changes:
        return violations
    now, limit = present.copy(), problem.step_limit
    for number, change in enumerate(evaluation.changes, start=1):
        now = now + change
        if number < len(evaluation.changes):
            violations += _check_ports(problem, f" after step {number}", now)
        moved = max(int(np.maximum(change, 0).sum()), int(np.maximum(-change, 0).sum())) // 2
        if limit is not None and moved > limit:
            violations += Violations.of(
                "steps", where=[f"step {number}"], amount=[moved], allowed=limit, unit="links"
            )
    if not evaluation.fits_before_and_after:  # then no order of steps carries all demand
        return violations
    scales = np.array(evaluation.step_scales)
    short = np.flatnonzero(falls_short(scales, 1.0))
    return violations + Violations.of(
        "drain",
        where=[f"step {index + 1}" for index in short],
        amount=scales[short],
        allowed=1.0,
        unit="times the demand",
    )
