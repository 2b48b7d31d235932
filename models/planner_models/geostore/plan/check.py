"""Check of a plan: rules of placement, survival, limits, consistency, order, and servers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from planner.arrays import Bools
from planner.contract.plan import Violations
from planner.contract.tolerances import differs, exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.geostore.plan.evaluation import Evaluation, evaluate, find_users, read_refused
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore


def check(problem: Geostore, plan: StorePlan) -> Violations:
    """Return the constraint violations of the plan, by name.

    rules     a group has no replica where it is pinned, or one where that is forbidden
    class     a group has a weaker consistency than it asks for
    survival  a group does not survive what it must
    limits    a page takes longer than the limit of its group, where some region keeps it
    stale     a write becomes visible later than the group may wait, somewhere
    order     a replica holds a group without one that it depends on, so that order cannot be checked there
    servers   a region has fewer servers than its load needs, or than it may have, or more than it may have,
              or refuses more operations than the plan states

    raises    PlanRejected where it is no plan, or states times of pages that it does not have
    """
    state = evaluate(problem, plan)
    _require_times(state)
    _require_attachments(state)
    return (
        _check_rules(state)
        + _check_goals(state)
        + _check_limits(state)
        + _check_order(state)
        + _check_servers(state)
    )


def _require_times(state: Evaluation) -> None:
    """Raise PlanRejected where the times of the routes are not those of their regions."""
    problem, frame = state.problem, state.plan.routes
    user = find_users(problem, frame)
    for column, times in (("read_ms", state.read_ms), ("write_ms", state.write_ms)):
        for row in np.flatnonzero(differs(frame[column].to_numpy(float), times[user]))[:1].tolist():
            raise PlanRejected(
                f"routes row {row + 1}: {column} is {frame[column].iloc[row]:.6g}, "
                f"must be {times[user[row]]:.6g}"
            )


def _require_attachments(state: Evaluation) -> None:
    """Raise PlanRejected where the table of attachments contradicts the routes."""
    problem, frame = state.problem, state.plan.attachments
    if frame is None:
        return
    regions, names = problem.region_index, problem.group_index
    expected: dict[tuple[str, str], str] = {}
    for members in problem.components:
        local = [group for group in members.tolist() if len(members) > 1 and state.checks[group] == "local"]
        for user in [user for group in local for user in problem.users_of[group].tolist()]:
            key = (str(regions[problem.user_region[user]]), str(names[members[0]]))
            expected[key] = str(regions[int(np.argmax(state.reads[user]))])
    stated = {
        (str(region), str(component)): str(datacenter)
        for region, component, datacenter in zip(
            frame["region"], frame["component"], frame["datacenter"], strict=True
        )
    }
    for region, component in sorted({*expected, *stated}):
        datacenter = expected.get((region, component))
        if stated.get((region, component)) != datacenter:
            raise PlanRejected(
                f"attachments: users of region '{region}' read component '{component}' in "
                + (f"region '{datacenter}' by the routes" if datacenter else "no region by the routes")
            )


def _violations(limit: str, where: Iterable[str]) -> Violations:
    """Return violations of something that must not be at all."""
    return Violations.of(limit, where=list(where), amount=1.0, allowed=0.0, unit="")


def _check_rules(state: Evaluation) -> Violations:
    problem, held = state.problem, state.copies > 0
    names = problem.group_index, problem.region_index
    missing = np.argwhere(problem.is_pinned & ~held).tolist()
    extra = np.argwhere(problem.is_forbidden & held).tolist()
    return _violations(
        "rules",
        [
            *(
                f"group '{names[0][g]}' has no replica in '{names[1][j]}', where it is pinned"
                for g, j in missing
            ),
            *(
                f"group '{names[0][g]}' has a replica in '{names[1][j]}', which is forbidden"
                for g, j in extra
            ),
        ],
    )


def _check_goals(state: Evaluation) -> Violations:
    names = state.problem.group_index
    limit = state.problem.limit_ms("stale_ms")
    late = np.flatnonzero(~state.stale_kept).tolist()
    return (
        _violations(
            "class",
            [
                f"group '{names[row]}' is {state.kind[row]}, asks for {state.problem.group_class[row]}"
                + (" and has an invariant" if state.problem.has_invariant[row] else "")
                for row in np.flatnonzero(~state.class_kept).tolist()
            ],
        )
        + _violations(
            "survival",
            [f"group '{names[row]}'" for row in np.flatnonzero(~state.survived).tolist()],
        )
        + Violations.of(
            "stale",
            where=[f"group '{names[row]}'" for row in late],
            amount=state.stale_ms[late],
            allowed=limit[late],
            unit="ms",
        )
    )


def can_keep_limits(problem: Geostore) -> Bools:
    """Return whether a region that may hold a user's group keeps its limits, (A,)."""
    group = problem.user_group
    latency = np.where(problem.is_forbidden[group], np.inf, problem.latency_ms)
    return np.asarray((latency <= problem.page_limit_ms[:, None]).any(axis=1))


def _check_limits(state: Evaluation) -> Violations:
    problem = state.problem
    read, write = state.in_limits
    possible = can_keep_limits(problem)
    violations = Violations()
    for is_kept, column, times, rate in (
        (read, "read_ms", state.read_ms, problem.use("reads_per_s")),
        (write, "write_ms", state.write_ms, problem.use("writes_per_s")),
    ):
        rows = np.flatnonzero(possible & ~is_kept & (rate > 0))
        frame = problem.access.iloc[rows]
        violations += Violations.of(
            "limits",
            where=[
                f"{column[:-3]}s of group '{group}' from region '{region}'"
                for group, region in zip(frame["group"], frame["region"], strict=True)
            ],
            amount=times[rows],
            allowed=problem.limit_ms(column)[problem.user_group[rows]],
            unit="ms",
        )
    return violations


def _check_order(state: Evaluation) -> Violations:
    problem = state.problem
    names = problem.group_index
    return _violations(
        "order",
        [
            f"group '{names[group]}' is in region '{problem.region_index[region]}' without group "
            f"'{names[on]}', "
            "which it depends on"
            for group, on, region in state.unchecked
        ]
        + [
            f"group '{names[gap.group]}', checked for region '{problem.region_index[gap.datacenter]}' in "
            f"'{problem.region_index[gap.checked_at]}', was checked there against another replica of group "
            f"'{names[gap.on]}' than serves that region"
            for gap in state.gaps
        ],
    )


def _check_servers(state: Evaluation) -> Violations:
    problem = state.problem
    if not (problem.price("server_usd_month").any() or problem.is_limited.any()):
        return Violations()
    needed = state.needed_servers
    largest = problem.capacity / (1000.0 * problem.price("server_kops"))
    violations = Violations()
    for wrong, allowed in (
        (falls_short(state.servers, needed, needed.sum()), needed),
        (exceeds(state.servers, largest), largest),
    ):
        rows = np.flatnonzero(wrong).tolist()
        violations += Violations.of(
            "servers",
            where=[f"region '{problem.region_index[row]}'" for row in rows],
            amount=state.servers[rows],
            allowed=allowed[rows],
            unit="servers",
        )
    return violations + _check_refused(state)


def _check_refused(state: Evaluation) -> Violations:
    """Return the regions that refuse more operations than the plan states."""
    problem, stated = state.problem, read_refused(state.problem, state.plan.servers)
    rows = np.flatnonzero(falls_short(stated, state.refused, state.load)).tolist()
    return Violations.of(
        "servers",
        where=[f"stated refusals of region '{problem.region_index[row]}'" for row in rows],
        amount=state.refused[rows],
        allowed=stated[rows],
        unit="operations/s",
    )
