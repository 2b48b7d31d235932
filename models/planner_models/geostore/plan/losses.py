"""Losses with each region in words: stopped groups, longer waits, and permanent losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.formatting import agree, counted, few, number
from planner_models.geostore.plan.evaluation import Evaluation, evaluate
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore

MAX_REGIONS: Final = 8
"""Regions that a verdict tells one by one; of more, the worst ones."""
FEW_REGIONS: Final = 3
MAX_NAMES: Final = 3
LEAST_SHARE: Final = 1e-9


def measure_losses(state: Evaluation) -> dict[str, Floats]:
    """Return the losses of users with each region, (N,) for each metric.

    A lost region loses the writes that it acknowledged and no other region has yet, and groups that only it
    holds. Users that read causal groups there go elsewhere without their causal past (Lloyd et al. 2013, 6).
    """
    problem, held = state.problem, state.copies > 0
    count = len(problem.regions)
    writes, group = problem.use("writes_per_s"), problem.user_group
    entering = np.zeros(held.shape)
    np.add.at(entering, (group, state.origin), writes)
    first = np.full(held.shape, np.inf)
    np.minimum.at(first, (state.edges[:, 0], state.edges[:, 1]), state.copy_ms)
    waits = np.where(state.is_strong[:, None] | ~held | ~np.isfinite(first), 0.0, first)
    alone = held & (state.copies.sum(axis=1)[:, None] - state.copies < state.pieces[:, None])
    causal = np.zeros(count)
    rows = state.is_causal[group]
    datacenter = np.argmax(state.reads, axis=1)
    np.add.at(causal, datacenter[rows], problem.requests_per_s[rows])
    return {
        "lost_writes": np.asarray((entering * waits / 1000.0).sum(axis=0)),
        "lost_groups": alone.sum(axis=0).astype(float),
        "causality_lost_per_s": causal,
        "blocked_per_s": _blocked(state),
    }


def _blocked(state: Evaluation) -> Floats:
    """Return the writes a second that no longer become visible somewhere without each region, (N,)."""
    checks, count = state.remote_checks, len(state.problem.regions)
    writes = np.bincount(
        state.problem.user_group, state.problem.use("writes_per_s"), len(state.problem.groups)
    )
    pairs = np.unique(np.column_stack([checks.nearest, checks.group]), axis=0).reshape(-1, 2)
    return np.asarray(np.bincount(pairs[:, 0], writes[pairs[:, 1]], count), dtype=float)


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionLoss:
    """Effects of the loss of a region.

    stopped     groups that cannot be used until it is back
    gone        groups without a replica, or enough pieces, elsewhere: lost for good, if the region is
    elected     groups whose leader was there, and that elect another
    moved_per_s, before_ms, after_ms  requests that other regions serve, and the mean time of their pages
    late_per_s  those of them that miss a limit until it is back
    lost_writes, window_ms  acknowledged writes that are nowhere else, and the time in which they were made
    """

    region: int
    stopped: Ints
    gone: Ints
    elected: Ints
    moved_per_s: float
    before_ms: float
    after_ms: float
    late_per_s: float
    lost_writes: float
    window_ms: float

    @property
    def is_quiet(self) -> bool:
        """Whether nobody notices the loss."""
        unusable = len(self.gone) + len(self.stopped) + len(self.elected)
        return not unusable and self.moved_per_s == 0 and self.lost_writes == 0

    @property
    def rank(self) -> tuple[float, ...]:
        """Order of losses, the worst first."""
        return (-float(len(self.gone)), -float(len(self.stopped)), -self.late_per_s, -self.lost_writes)


def find_losses(state: Evaluation) -> list[RegionLoss]:
    """Return the losses with each region that has a replica, the worst first."""
    held = state.copies > 0
    losses = [_lose(state, region) for region in np.flatnonzero(held.any(axis=0)).tolist()]
    return sorted(losses, key=lambda loss: (*loss.rank, loss.region))


def _lose(state: Evaluation, region: int) -> RegionLoss:
    """Return the losses with one region."""
    here = state.copies[:, region] > 0
    gone = here & (state.copies.sum(axis=1) - state.copies[:, region] < state.pieces)
    votes = state.votes.sum(axis=1) - state.votes[:, region]
    needed = np.where(state.leader >= 0, state.quorums[:, 1], state.needed)
    stopped = here & state.is_strong & (votes < needed)
    led = state.leader == region
    rate, before, after, late = _redirect(state, region, gone | stopped)
    total = float(rate.sum())
    waits = _windows(state)[:, region]
    return RegionLoss(
        region=region,
        stopped=np.flatnonzero(stopped & ~gone),
        gone=np.flatnonzero(gone),
        elected=np.flatnonzero(led & ~stopped & ~gone),
        moved_per_s=total,
        before_ms=float(rate @ before) / total if total > 0 else 0.0,
        after_ms=float(rate @ after) / total if total > 0 else 0.0,
        late_per_s=float(rate[late].sum()),
        lost_writes=float(measure_losses(state)["lost_writes"][region]),
        window_ms=float(waits.max(initial=0.0)),
    )


def _windows(state: Evaluation) -> Floats:
    """Return the time until a write that enters in a region is elsewhere, (G, N), ms; 0 where none enters."""
    entering = np.zeros(state.copies.shape, dtype=bool)
    writing = state.problem.use("writes_per_s") > 0
    entering[state.problem.user_group[writing], state.origin[writing]] = True
    first = np.full(state.copies.shape, np.inf)
    np.minimum.at(first, (state.edges[:, 0], state.edges[:, 1]), state.copy_ms)
    return np.where(entering & np.isfinite(first) & ~state.is_strong[:, None], first, 0.0)


def _redirect(state: Evaluation, region: int, is_unusable: Bools) -> tuple[Floats, Floats, Floats, Bools]:
    """Return the requests that leave a region: rate, time of a page before and after, whether it is late.

    Users go to the nearest remaining replica, or as many as their reads wait for; those of a leader to the
    voter nearest to it.
    """
    problem, group = state.problem, state.problem.user_group
    rows = np.flatnonzero(state.reads[:, region] & ~is_unusable[group] & (problem.requests_per_s > 0))
    others = state.copies[group[rows]] > 0
    others[:, region] = False
    near = np.where(others, problem.latency_ms[rows], np.inf)
    after = near.min(axis=1)
    for position in np.flatnonzero(state.is_strong[group[rows]] & (state.leader[group[rows]] < 0)).tolist():
        after[position] = _quorum_ms(state, rows[position], region)
    led = np.flatnonzero(state.leader[group[rows]] == region)
    for position in led.tolist():
        voters = (state.votes[group[rows[position]]] > 0) & (np.arange(others.shape[1]) != region)
        successor = int(np.where(voters, problem.rtt_ms[region], np.inf).argmin())
        trip = problem.rtt_ms[problem.user_region[rows[position]], successor] + problem.service_ms
        after[position] = problem.use("operations_per_page")[rows[position]] * trip
    limit = problem.page_limit_ms[rows]
    after = np.where(np.isfinite(after), after, state.read_ms[rows])
    return problem.requests_per_s[rows], state.read_ms[rows], after, after > limit * (1 + 1e-9)


def _quorum_ms(state: Evaluation, user: int, region: int) -> float:
    """Return the time of a page's reads of a user that waits for the nearest replicas without a region."""
    problem, group = state.problem, state.problem.user_group[user]
    trip = problem.rtt_ms[problem.user_region[user]] + problem.service_ms
    votes = state.votes[group].copy()
    votes[region] = 0
    times = np.sort(np.repeat(trip, votes))
    first = float(times[state.query[group] - 1]) if state.query[group] else 0.0
    return float(problem.use("operations_per_page")[user] * (first + times[state.quorums[group, 0] - 1]))


def say_losses(problem: Geostore, plan: StorePlan) -> list[str]:
    """Return sentences on the loss of each region that holds data, without a stop; the worst of many.

    Regions that may hold nothing, as they are lost, come first: their users are there still.
    """
    state = evaluate(problem, plan)
    losses = find_losses(state)
    shown = losses if len(losses) <= MAX_REGIONS else losses[:FEW_REGIONS]
    sentences = [*_say_lost(state)]
    sentences += [sentence for loss in shown if not loss.is_quiet for sentence in say_loss(problem, loss)]
    quiet = [str(problem.region_index[loss.region]) for loss in shown if loss.is_quiet]
    if quiet:
        *first, last = quiet
        names = f"{few(first)} or {last}" if first else last
        sentences.append(f"Without {names} nobody waits longer")
    if not any(len(loss.gone) or loss.lost_writes > 0 for loss in losses):
        sentences.append("No acknowledged write is lost with any one region")
    if len(shown) < len(losses):
        sentences.append(f"The other {counted(len(losses) - len(shown), 'regions')} with data lose no more")
    return sentences


def _say_lost(state: Evaluation) -> Iterator[str]:
    """Yield a sentence for each region, a few at most, that has users and may hold no group."""
    problem = state.problem
    rate = problem.requests_per_s
    for region in np.flatnonzero(problem.is_forbidden.all(axis=0))[:FEW_REGIONS].tolist():
        rows = np.flatnonzero((problem.user_region == region) & (rate > 0))
        if not len(rows):
            continue
        late = ~(state.in_limits[0] & state.in_limits[1])[rows]
        mean = float(rate[rows] @ state.read_ms[rows] / rate[rows].sum())
        total = float(rate[rows].sum())
        words = f"{problem.region_index[region]} holds nothing, and its {_rate(total)} take {number(mean)} ms"
        yield words + _say_late(float(rate[rows][late].sum()), total, "while it is lost")


def say_loss(problem: Geostore, loss: RegionLoss) -> list[str]:
    """Return sentences on the loss of a region: until it is back, and for good."""
    name = str(problem.region_index[loss.region])
    until = _say_until_back(problem, loss) or ["nobody waits longer"]  # but writes may be lost
    return [f"Without {name}, {', and '.join(until)}", *_say_for_good(problem, loss, name)]


def _say_until_back(problem: Geostore, loss: RegionLoss) -> list[str]:
    """Return the effects of a loss until the region is back."""
    parts = []
    unusable = [*loss.gone.tolist(), *loss.stopped.tolist()]
    if unusable:
        parts.append(f"{_groups(problem, unusable)} cannot be used until it is back")
    if len(loss.elected):
        elect = agree(len(loss.elected), "elect")
        parts.append(f"{_groups(problem, loss.elected.tolist())} {elect} another leader")
    if loss.moved_per_s > 0:
        times = f"{number(loss.after_ms)} ms elsewhere instead of {number(loss.before_ms)} ms"
        late = _say_late(loss.late_per_s, loss.moved_per_s, "until it is back")
        parts.append(f"{_rate(loss.moved_per_s)} take {times}{late}")
    return parts


def _rate(per_s: float) -> str:
    return f"{number(per_s)} requests/s"


def _say_late(late: float, total: float, until: str) -> str:
    """Return the share of late requests in words: `, beyond their limit until it is back`."""
    if late <= LEAST_SHARE * total:
        return ", within their limits"
    if late >= (1 - LEAST_SHARE) * total:
        return f", beyond their limit {until}"
    return f", {_rate(late)} of them beyond their limit {until}"


def _say_for_good(problem: Geostore, loss: RegionLoss, name: str) -> list[str]:
    """Return the permanent losses with a region."""
    gone = _groups(problem, loss.gone.tolist()) if len(loss.gone) else ""
    lead = f"If {name} never comes back, "
    if loss.lost_writes > 0:
        count = "less than one write"
        if loss.lost_writes >= 1:
            count = f"about {number(float(f'{loss.lost_writes:.2g}'))} writes"
        last = f"its last {number(loss.window_ms)} ms of writes, {count}"
        return [f"{lead}{gone}{', and ' if gone else ''}{last}, are lost"]
    return [f"{lead}{gone} {agree(len(loss.gone), 'are')} lost"] if gone else []


def _groups(problem: Geostore, rows: Sequence[int]) -> str:
    """Return the names of groups: `group stock`, `groups stock, orders`, `5 groups`."""
    if len(rows) > MAX_NAMES:
        return counted(len(rows), "groups")
    names = few([str(problem.group_index[row]) for row in rows])
    return f"group {names}" if len(rows) == 1 else f"groups {names}"
