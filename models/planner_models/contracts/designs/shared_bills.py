r"""Loads of regions with common bills, or bills of traffic in: bound, search and integer program.

Variables of each window w: the load $x_{wc}$ of a contract in its region; of each meter m, which counts
$u_{wm} = \sum_c k_{wc} x_{wc}$ of the contracts on its bill: the level $q_m$ up to which windows are
billed, the excess $s_{wm} \ge u_{wm} - q_m$, and in the integer program whether a window is free. The
volume of a bill is the largest of its meters' levels or means, at least the commitment, and costs what its
price steps say.

The relaxation limits the excess of all windows together: with F free windows and most samples $H_w$, the
sum of $s_w$ is at most the sum of the F largest $H_w$ less $F q$. That holds for every plan at its billed
level, so the optimum of the relaxation is a bound. Long months are averaged over groups of windows of
similar traffic, at the least factors $k$ of a group, which every plan's averages satisfy.

A plan starts from the windows of most excess in the relaxation, which become free. With these given, levels
and loads are a linear program. Its duals say which other windows would gain most by being free: they take
the place of free windows that are used least, as long as the bill falls. Where the month is small, an
integer program proves the optimum.

source Singh et al., NSDI 2021 (CASCARA), offline problem; bills of several ports by the percentile of their
sum
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Constraints, Expression, ProgramBuilder, Variables
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.contracts.designs.program import PRICE_STEPS, fit_loads
from planner_models.contracts.problem.bills import meter_factor
from planner_models.contracts.problem.problem import MEAN, Month

MOST_CELLS: Final = 30_000  # windows times contracts up to which programs over all windows are solved
GROUPS: Final = 480  # of windows, in the relaxation of longer months
MOST_BINARIES: Final = 2_000
FREE_SHARES: Final = (
    1.0,
    0.9,
    0.75,
)  # of the free windows that a relaxation may use, for plans that start there
SWAPS: Final = 30  # programs for other free windows, from each start
LEAST_EXCHANGED: Final = 1 / 64  # of the free windows, at a time
TIE: Final = 1e-9  # of the most samples: decides among windows of equal excess
LEAST_GAIN: Final = 1e-7  # of the bill


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """Regions that are planned together: W windows, R regions, N contracts, B bills, M meters.

    contracts    (N,) rows of the problem's contracts
    region       (N,) position of each contract's region in this part
    traffic      (W, R) traffic that can be carried, Mbit/s
    least, most  (W, N) limits of each contract
    bill         (N,) bill of each contract, as a position in this part
    meter_bill   (M,) bill of each meter
    factors      (M,) samples of a meter for each Mbit/s of the contracts on its bill, (W, contracts)
    free         (B,) windows of each bill that are not billed
    is_mean      (B,) True where the mean is billed
    commitment   (B,) Mbit/s
    steps        (B,) volumes from which prices apply, and the prices
    moved_share  (R,) share of the traffic that may change its CDN between consecutive windows; 1: no limit
    """

    contracts: Ints
    region: Ints
    traffic: Floats
    least: Floats
    most: Floats
    bill: Ints
    meter_bill: Ints
    factors: list[Floats]
    free: Ints
    is_mean: Bools
    commitment: Floats
    steps: list[tuple[Floats, Floats]]
    moved_share: Floats

    @classmethod
    def of(cls, problem: Month, regions: Ints, *, use_free_windows: bool = True) -> Part:
        """Return some regions of a problem."""
        rows = np.flatnonzero(np.isin(problem.region, regions))
        bills, first, position = np.unique(problem.bill[rows], return_index=True, return_inverse=True)
        head = rows[first]
        meters = [meter for meter in problem.meters if meter.bill in bills]
        meter_bill = np.searchsorted(bills, [meter.bill for meter in meters]).astype(np.int64)
        factors = [
            meter_factor(problem, meter.kind)[:, problem.region[rows[position == bill]]]
            for meter, bill in zip(meters, meter_bill.tolist(), strict=True)
        ]
        return cls(
            contracts=rows,
            region=np.searchsorted(regions, problem.region[rows]).astype(np.int64),
            traffic=problem.servable_mbps[:, regions],
            least=problem.least_mbps[:, rows],
            most=problem.most_mbps[:, rows],
            bill=position.astype(np.int64),
            meter_bill=meter_bill,
            factors=factors,
            free=problem.unbilled_windows[head] * use_free_windows,
            is_mean=np.array([problem.billing[row] == MEAN for row in head.tolist()], dtype=bool),
            commitment=problem.column("commitment_mbps")[head],
            steps=[problem.price_steps[row] for row in head.tolist()],
            moved_share=problem.moved_share[regions],
        )

    @cached_property
    def rated(self) -> Ints:
        """Meters of bills that are not billed by the mean."""
        return np.flatnonzero(~self.is_mean[self.meter_bill])

    @cached_property
    def meter_free(self) -> Ints:
        """(M,) windows of each meter that are not billed."""
        return self.free[self.meter_bill]

    @cached_property
    def most_sample(self) -> Floats:
        """(W, M) most that each meter may count in a window."""
        return self.samples(self.most)

    @cached_property
    def is_limited(self) -> bool:
        """Whether a region limits switching."""
        return bool((self.moved_share < 1).any()) and len(self.traffic) > 1

    def samples(self, load: Floats) -> Floats:
        """Return the samples of each meter, (W, M), of (W, N) loads."""
        counted = [
            (load[:, self.bill == bill] * factor).sum(axis=1)
            for bill, factor in zip(self.meter_bill.tolist(), self.factors, strict=True)
        ]
        return np.array(counted).reshape(len(counted), len(load)).T

    def volumes(self, load: Floats) -> Floats:
        """Return the volume of each bill, (B,), of (W, N) loads."""
        samples = self.samples(load)
        ordered = np.sort(samples, axis=0)
        meters = np.arange(samples.shape[1])
        level = ordered[len(ordered) - 1 - self.meter_free, meters]
        volume = np.zeros(len(self.free))
        np.maximum.at(
            volume, self.meter_bill, np.where(self.is_mean[self.meter_bill], samples.mean(axis=0), level)
        )
        return volume

    def cost(self, load: Floats) -> float:
        """Return the bills of (W, N) loads together."""
        return sum(self.amount(bill, volume) for bill, volume in enumerate(self.volumes(load).tolist()))

    def amount(self, bill: int, volume_mbps: float) -> float:
        """Return the cost of a bill for a volume, at least its commitment."""
        billed = max(volume_mbps, float(self.commitment[bill]))
        starts, prices = self.steps[bill]
        width = np.minimum(billed, np.append(starts[1:], np.inf)) - starts
        return float((np.maximum(width, 0.0) * prices).sum())


class PartProgram(NamedTuple):
    """The program of a part, its variables and the rows of levels.

    level   (M,) q
    load    (G, N) x
    excess  (G, rated meters) s
    group   (W,) group of each window
    above   rows that hold samples up to level and excess, (G,) for each rated meter
    """

    program: LinearProgram
    level: Variables
    load: Variables
    excess: Variables
    above: list[Constraints]
    group: Ints


class _Groups(NamedTuple):
    """Windows in groups: their number, and means, least and largest values of each group."""

    group: Ints
    size: Floats

    def mean(self, values: Floats) -> Floats:
        total = np.zeros((len(self.size), *values.shape[1:]))
        np.add.at(total, self.group, values)
        return np.asarray((total.T / self.size).T)

    def least(self, values: Floats) -> Floats:
        lowest = np.full((len(self.size), *values.shape[1:]), np.inf)
        np.minimum.at(lowest, self.group, values)
        return lowest


def group_similar(traffic: Floats, groups: int) -> Ints:
    """Return the group of each window, (W,): groups are halved along the column of the widest range in turn.

    traffic  (W, columns)
    """
    members = [np.arange(len(traffic))]
    spans = [float(np.ptp(traffic, axis=0).max(initial=0.0)) * len(traffic)]
    while len(members) < groups and max(spans) > 0:
        widest = int(np.argmax(spans))
        windows = members.pop(widest)
        spans.pop(widest)
        axis = int(np.ptp(traffic[windows], axis=0).argmax())
        ordered = windows[np.argsort(traffic[windows, axis], kind="stable")]
        for half in (ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]):
            members.append(half)
            spans.append(float(np.ptp(traffic[half], axis=0).max(initial=0.0)) * len(half))
    group = np.empty(len(traffic), dtype=np.int64)
    for number, windows in enumerate(members):
        group[windows] = number
    return group


def build(
    area: Part, *, exact: bool = False, free_share: float = 1.0, is_free: Bools | None = None
) -> PartProgram:
    """Build the program of a part: the relaxation, the integer program, or that for given free windows.

    exact       binary choice of free windows
    free_share  part of the free windows that the relaxation may use
    is_free     (W, M) windows that are free; None: the program chooses them
    """
    windows, count = area.most.shape
    in_order = exact or is_free is not None or windows * count <= MOST_CELLS
    group = np.arange(windows) if in_order else group_similar(np.hstack([area.traffic, area.most]), GROUPS)
    grouped = _Groups(group, np.bincount(group).astype(float))
    lower, upper, traffic = map(grouped.mean, (area.least, area.most, area.traffic))
    rated = area.rated
    upper_excess = np.where(area.meter_free[rated] > 0, np.inf, 0.0)
    if is_free is not None:
        upper_excess = np.where(is_free[:, rated], np.inf, 0.0)

    m = ProgramBuilder(name="contracts")
    q = m.variables("level", len(area.meter_bill), upper=area.most_sample.max(axis=0))
    x = m.variables("load", lower.shape, lower=lower, upper=np.maximum(upper, lower))
    s = m.variables("excess", (len(traffic), len(rated)), upper=upper_excess)
    for region in range(traffic.shape[1]):
        rows = np.flatnonzero(area.region == region)
        if len(rows):
            m.constrain(f"served {region}", x[:, rows].sum(axis=1), equal=traffic[:, region])
    samples = [
        (x[:, np.flatnonzero(area.bill == bill)] * grouped.least(factor)).sum(axis=1)
        for bill, factor in zip(area.meter_bill.tolist(), area.factors, strict=True)
    ]
    above = [
        m.constrain(f"billed level {meter}", samples[meter] - q[[meter]] - s[:, column], upper=0.0)
        for column, meter in enumerate(rated.tolist())
    ]
    if is_free is None:
        _choose_windows(m, area, grouped, free_share, exact=exact)
    if in_order and area.is_limited:
        _limit_moves(m, area)
    means = {
        meter: (samples[meter] * (grouped.size / windows)).sum()
        for meter in np.flatnonzero(area.is_mean[area.meter_bill]).tolist()
    }
    _buy_volumes(m, area, means)
    return PartProgram(m.build(), q, x, s, above, group)


def _choose_windows(
    m: ProgramBuilder, area: Part, grouped: _Groups, free_share: float, *, exact: bool
) -> None:
    """Limit the excess of free windows: of all together, and where exact, of each by a binary choice."""
    rated = area.rated
    free, q, s = area.meter_free[rated], m["level"], m["excess"]
    ordered = np.sort(area.most_sample[:, rated], axis=0)[::-1]
    largest = np.array([ordered[:count, row].sum() for row, count in enumerate(free.tolist())])
    m.constrain(
        "free windows",
        (s * grouped.size[:, None]).sum(axis=0) + q[rated] * (free_share * free),
        upper=free_share * largest,
    )
    if exact:
        b = m.variables("free window", s.shape, upper=1.0, integer=True)
        m.constrain("chosen windows", s - b * area.most_sample[:, rated], upper=0.0)
        m.constrain("chosen count", b.sum(axis=0), upper=free)


def _limit_moves(m: ProgramBuilder, area: Part) -> None:
    """Limit the traffic that contracts of a region lose to others from a window to the next."""
    x = m["load"]
    d = m.variables("lost traffic", (len(area.traffic) - 1, len(area.region)))
    m.constrain("lost traffic", x[:-1] - x[1:] - d, upper=0.0)
    for region in np.flatnonzero(area.moved_share < 1).tolist():
        now, after = area.traffic[:-1, region], area.traffic[1:, region]
        movable = np.maximum(now - after, 0.0) + area.moved_share[region] * np.minimum(now, after)
        rows = np.flatnonzero(area.region == region)
        if len(rows):
            m.constrain(f"moved traffic {region}", d[:, rows].sum(axis=1), upper=movable)


def _buy_volumes(m: ProgramBuilder, area: Part, means: dict[int, Expression]) -> None:
    """Buy at least the volume of each meter, and the commitment, at price steps that are filled in order.

    means  the mean samples of the meters whose bills are billed by it
    """
    count = np.array([len(prices) for _, prices in area.steps])
    owner = np.repeat(np.arange(len(count)), count)
    starts, prices = (np.concatenate(column) for column in zip(*area.steps, strict=True))
    width = np.concatenate([np.diff(np.append(volumes, np.inf)) for volumes, _ in area.steps])
    highest = area.commitment.copy()
    np.maximum.at(highest, area.meter_bill, area.most_sample.max(axis=0))
    volume = np.minimum(width, np.maximum(highest[owner] - starts, 0.0))
    falls = np.array([(np.diff(steps) < 0).any() for _, steps in area.steps])
    ordered = np.flatnonzero(falls[owner[:-1]] & (owner[:-1] == owner[1:]))
    z = m.variables(PRICE_STEPS, len(owner), upper=volume, cost=prices)
    o = m.variables("step order", len(ordered), upper=1.0, integer=True)
    bought, rated, q = z.sum_by(owner, len(count)), area.rated, m["level"]
    m.constrain("volume", bought[area.meter_bill[rated]] - q[rated], lower=0.0)
    for meter, mean in means.items():
        m.constrain(f"mean {meter}", bought[area.meter_bill[meter]] - mean, lower=0.0)
    m.constrain("commitment", bought, lower=area.commitment)
    m.constrain("step full", z[ordered] - o * volume[ordered], lower=0.0)
    m.constrain("step used", z[ordered + 1] - o * volume[ordered + 1], upper=0.0)


class PartDecision(NamedTuple):
    """Loads (W, N) of a part with their cost, and a bound on it; None where unknown."""

    load: Floats | None
    cost: float | None
    bound: float | None
    backend: str


def relax(area: Part, options: Options) -> float | None:
    """Return the bound of the relaxation; None where unknown."""
    return backends.solve(build(area).program, options).bound


class Limits(NamedTuple):
    """When a search ends.

    gap        relative, between a plan and its bound
    minimum_s  time limit of a program where less is left
    """

    options: Options
    gap: float
    deadline: Deadline
    minimum_s: float

    def solver(self) -> Options:
        """Return the options of the next program."""
        return self.deadline.options(self.options, minimum_s=self.minimum_s)

    def ends(self, best: PartDecision) -> bool:
        """Return whether the time is over or a plan is within the gap of its bound."""
        return self.deadline.is_over or (
            best.cost is not None and best.bound is not None and best.cost <= best.bound * (1 + self.gap)
        )


def plan_part(area: Part, *, method: str, limits: Limits) -> PartDecision:
    """Plan regions with common bills: the relaxation, plans near it, and the integer program where small.

    method  search, exact or auto
    """
    if not len(area.contracts):
        return PartDecision(np.zeros((len(area.traffic), 0)), 0.0, 0.0, "no contracts")
    best = PartDecision(None, None, None, "")
    if method != "exact":
        best = _search(area, limits._replace(deadline=limits.deadline.share(0.5)))
    if method == "exact" or (method == "auto" and not limits.ends(best)):
        return solve_exactly(area, best, limits, at_any_size=method == "exact")
    return best


def solve_exactly(
    area: Part, best: PartDecision, limits: Limits, *, at_any_size: bool = False
) -> PartDecision:
    """Return the plan and bound of the integer program, or those known where better or it is too large."""
    if len(area.traffic) * len(area.rated) > MOST_BINARIES and not at_any_size:
        return best
    built = build(area, exact=True)
    solution = backends.solve(built.program, replace(limits.solver(), gap=limits.gap))
    best = _with_bound(best, solution.bound, solution.backend)
    if solution.x is not None:
        best = _better(area, best, _fit(area, built.load.values(solution.x)))
    return best


def improve(area: Part, best: PartDecision, score: Floats, limits: Limits) -> PartDecision:
    """Return the best plan from the free windows of the largest scores (W, M), or the one that is known."""
    return _swap_windows(area, best, _largest(area, score + TIE * area.most_sample), limits)


def _with_bound(best: PartDecision, bound: float | None, backend: str | None) -> PartDecision:
    """Return a decision with a bound, where that is higher than its own."""
    bounds = [value for value in (best.bound, bound) if value is not None]
    return best._replace(bound=max(bounds, default=None), backend=backend or best.backend)


def _better(area: Part, best: PartDecision, load: Floats) -> PartDecision:
    """Return the decision with new loads (W, N), where these cost less."""
    cost = area.cost(load)
    return best._replace(load=load, cost=cost) if best.cost is None or cost < best.cost else best


def _search(area: Part, limits: Limits) -> PartDecision:
    """Return the best plan of starts from relaxations with fewer and fewer free windows, with the bound."""
    best = PartDecision(None, None, None, "")
    for free_share in FREE_SHARES:
        built = build(area, free_share=free_share)
        solution = backends.solve(built.program, limits.solver())
        if free_share == FREE_SHARES[0]:
            best = _with_bound(best, solution.bound, solution.backend)
        start = np.zeros(area.most_sample.shape)  # no window is better than another where nothing is known
        if solution.x is not None:
            start[:, area.rated] = built.excess.values(solution.x)[built.group]
        best = _swap_windows(area, best, _largest(area, start + TIE * area.most_sample), limits)
        if not area.meter_free.any() or limits.ends(best):
            break
    return best


def _largest(area: Part, score: Floats) -> Bools:
    """Return the windows of the largest scores (W, M) that each meter may leave unbilled."""
    is_free = np.zeros(score.shape, dtype=bool)
    for meter, count in enumerate(area.meter_free.tolist()):
        is_free[np.argsort(-score[:, meter], kind="stable")[:count], meter] = True
    return is_free


def _swap_windows(area: Part, best: PartDecision, is_free: Bools, limits: Limits) -> PartDecision:
    """Return the best plan from free windows (W, M), some of which are exchanged while the bill falls."""
    lowest, exchanged = np.inf, 1.0
    current, value = is_free, np.zeros(is_free.shape)
    for _ in range(SWAPS):
        built = build(area, is_free=is_free)
        solution = backends.solve(built.program, limits.solver())
        if solution.x is None:
            break
        load = _fit(area, built.load.values(solution.x))
        best, cost = _better(area, best, load), area.cost(load)
        if cost < lowest * (1 - LEAST_GAIN):
            lowest, current = cost, is_free
            value = _rate_windows(area, built, load, solution.row_duals, is_free)
        else:
            exchanged /= 2
        if exchanged < LEAST_EXCHANGED or limits.ends(best) or not area.meter_free.any():
            break
        is_free = _exchange(area, current, value, exchanged)
    return best


def _rate_windows(
    area: Part, built: PartProgram, load: Floats, duals: Floats | None, is_free: Bools
) -> Floats:
    """Return the approximate saving by a free window of each meter, (W, M).

    A window that is not free counts with its dual price times the samples that it may have above the
    level; one that is, with its excess times the mean dual price of the meter. Without duals, samples
    stand for them.
    """
    samples, value = area.samples(load), np.zeros(is_free.shape)
    ordered = np.sort(samples, axis=0)
    level = ordered[len(ordered) - 1 - area.meter_free, np.arange(samples.shape[1])]
    for row, meter in enumerate(area.rated.tolist()):
        price = np.ones(len(samples)) if duals is None else np.abs(built.above[row].values(duals))
        count = max(int((price > 0).sum()), 1)
        excess = np.maximum(samples[:, meter] - level[meter], 0.0) * (price.sum() / count)
        potential = price * np.maximum(area.most_sample[:, meter] - level[meter], 0.0)
        value[:, meter] = np.where(is_free[:, meter], excess, potential)
    return value


def _exchange(area: Part, is_free: Bools, value: Floats, share: float) -> Bools:
    """Return free windows of which up to a share is exchanged for others of more value."""
    changed = is_free.copy()
    for meter, count in enumerate(area.meter_free.tolist()):
        if not count:
            continue
        free, other = np.flatnonzero(is_free[:, meter]), np.flatnonzero(~is_free[:, meter])
        free = free[np.argsort(value[free, meter], kind="stable")]
        other = other[np.argsort(-value[other, meter], kind="stable")]
        limit = min(int(np.ceil(share * count)), len(other))
        gains = value[other[:limit], meter] > value[free[:limit], meter]
        changed[free[:limit][gains], meter] = False
        changed[other[:limit][gains], meter] = True
    return changed


def _fit(area: Part, load: Floats) -> Floats:
    """Return the loads (W, N) of a solution within all limits, without rounding errors."""
    fitted = load.copy()
    for region in range(area.traffic.shape[1]):
        rows = np.flatnonzero(area.region == region)
        fitted[:, rows] = fit_loads(
            load[:, rows], area.least[:, rows], area.most[:, rows], area.traffic[:, region]
        )
    return fitted
