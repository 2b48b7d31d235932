"""What limits a routing: binding links, shadow prices, and which single change matters most.

A shadow price says what a little more capacity would be worth; what doubling a link or losing it
does is found by solving again. Since the best plan gets better ever more slowly as capacity grows,
price times growth is a bound on what an upgrade can gain: once the best one verified gains as much
as the next one could at most, it is proven best of all.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Annotated, Any, Final, Protocol

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.backends.linear import LinearProgram
from planner.errors import InputError, SolverFailure
from planner.options import Options
from planner.proof import Status
from planner.system import Decided, Explanation, Section
from planner_models.traffic import deploy, ecmp
from planner_models.traffic.check import carried
from planner_models.traffic.measure import METRICS, measure
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing

SHOWN: Final = 10  # rows of a table of links
SAME: Final = 3e-6  # relative; objectives that differ by less are the same: designs stop at gaps of 1e-6
ROUNDING: Final = 1e-9  # an objective this near to 0 is 0
LARGEST_PROGRAM: Final = 1_000_000  # variables, about; above, designs are run again instead
UNITS: Final = {metric.name: metric.unit for metric in METRICS}
MORE: Final = {metric.name for metric in METRICS if metric.better == "more"}


def explain(
    problem: Traffic,
    decided: Decided,
    *,
    candidates: Annotated[
        int, Field(ge=0, description="most upgrades, and most losses, that are solved for")
    ] = 10,
    upgrade: Annotated[
        float, Field(gt=0, description="what an upgrade adds, as a share of the link's capacity")
    ] = 1.0,
    both_ways: Annotated[
        bool, Field(description="a link and the one back are one line: upgraded and lost together")
    ] = True,
    previous: Routing | None = None,
    options: Options = Options(),
) -> Explanation:
    """Binding links, the upgrade that pays most, the loss that hurts most, and what is new in the plan.

    Designs with a linear program are asked through it: its duals rank the upgrades and bound what
    they gain, and one solver session, always from the same vertex, verifies them; a design that
    solves its program in a way of its own verifies them itself. Other designs are run again, on the
    busiest links. Losses are tried in the order of what the duals say they cost at
    least, those that cut off a demand first; links that carry nothing cost nothing. Over given
    paths, the paths stay what they were.

    previous  the plan to compare to; default: equal-cost multipath by the link weights, as today
    source    shadow prices and their bound: linear programming duality (concave in the capacities)
    """
    plan: Routing = decided.decision.plan  # type: ignore[assignment]
    metric = decided.decision.proof.metric or "concurrent_flow"
    lines = _Lines.of(problem, both_ways)
    judge = _judge(problem, decided, metric, options)
    load = carried(problem, plan).load_mbps
    sentences, sections = [], []

    limits, found = _limits(problem, judge, load, metric)
    sections.append(limits)
    sentences.append(found)
    for section, sentence in (
        _upgrades(problem, judge, lines, load, metric, upgrade, candidates),
        _losses(problem, judge, lines, load, metric, candidates),
    ):
        sections.append(section)
        sentences.append(sentence)
    before, name = previous, "the previous plan"
    if before is None:
        before, name = ecmp.route(problem).plan, "equal-cost multipath"
    assert before is not None
    new_sections, sentence = _changes(problem, before, plan, name)
    return Explanation(sentences=(*sentences, sentence), sections=(*sections, *new_sections))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Lines:
    """Links that are upgraded and lost together.

    of_link  (E,) the line of each link
    names    of each line
    """

    of_link: NDArray[np.int64]
    names: list[str]

    @classmethod
    def of(cls, problem: Traffic, both_ways: bool) -> _Lines:
        if not both_ways:
            return cls(of_link=np.arange(len(problem.links)), names=problem.link_labels)
        ends = [np.minimum(problem.tail, problem.head), np.maximum(problem.tail, problem.head)]
        _, first, line = np.unique(
            np.stack([*ends, problem.parallel]), axis=1, return_index=True, return_inverse=True
        )
        alone = np.bincount(line)[np.arange(len(first))] == 1
        labels = [problem.link_labels[link] for link in first]
        names = [
            label if one_way else label.replace("->", "<->", 1)
            for label, one_way in zip(labels, alone, strict=True)
        ]
        return cls(of_link=line.ravel().astype(np.int64), names=names)

    def total(self, of_links: NDArray[np.float64]) -> NDArray[np.float64]:
        return totals(self.of_link, of_links, len(self.names))


# --- solving again ------------------------------------------------------------------------


class _Judge(Protocol):
    """Says what the objective would be under other capacities.

    value  of the problem as it is
    price  (E,) objective per Mbit/s of each link's capacity, None where not known
    how    in words
    """

    value: float
    how: str

    @property
    def price(self) -> NDArray[np.float64] | None:
        """(E,)"""

    def under(self, capacity_mbps: NDArray[np.float64]) -> float | None:
        """The objective; None where no plan carries what has to be carried. 0 is a lost link."""

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        """No plan gains more than this from more capacity that is worth that much by its price."""


def _judge(problem: Traffic, decided: Decided, metric: str, options: Options) -> _Judge:
    design = decided.design
    over_links = decided.parameters.get("paths", "any") == "any"
    size = len(problem.targets) * len(problem.links) if over_links else len(problem.demands)
    if design.model is not None and options.backend == "highs" and 0 < size <= LARGEST_PROGRAM:
        program = design.model(problem, **decided.parameters)
        block = [block for block in program.row_blocks if block.name == "capacity"]
        if block and not program.is_integer:
            with contextlib.suppress(_OutOfTime):
                session = _Session(problem, program, block[0].start, options)
                by_itself = (decided.decision.proof.backend or "highs").startswith("highs")
                return session if by_itself else _Priced(problem, decided, metric, options, session)
    return _Rerun(problem, decided, metric, options)


class _OutOfTime(Exception):
    """The solver's limits stopped it before a change was verified."""


class _Session:
    """The design's linear program, kept in the solver, solved again from the first one's vertex.

    In it capacities are either the limits of the capacity rows, or, where the largest utilization
    U is minimised, what U is multiplied by there.
    """

    def __init__(self, problem: Traffic, program: LinearProgram, start: int, options: Options) -> None:
        from planner.backends import highs  # only where it is wanted: imports the solver

        self._highs, self._start, self._limit_s = highs, start, options.time_limit_s
        self._capacity = problem.capacity_mbps
        rows = slice(start, start + len(self._capacity))
        self._scaled = bool((program.row_upper[rows] == 0).all())
        self._factor = program.shape[1] - 1
        self._sign = 1.0 if program.sense == "min" else -1.0
        self._session = highs.load(program, options)
        first = "ipm" if program.shape[0] > highs.SMALL else "simplex"
        self._session.setOptionValue("solver", first)
        value = self._solve()
        if value is None:  # the plan was found in another way, and the program says there is none
            raise SolverFailure(f"{highs.NAME} finds no plan where the design found one")
        self._session.setOptionValue("solver", "simplex")
        self._vertex = self._session.getBasis()
        self.value = value
        dual = self._sign * np.array(self._session.getSolution().row_dual)[rows]
        # a Mbit/s more raises the limit by 1, or by U
        self.price = dual * (value if self._scaled else 1.0)
        self.solver = highs.NAME
        self.how = f"{highs.NAME}, from the same vertex each time"

    def under(self, capacity_mbps: NDArray[np.float64]) -> float | None:
        changed = np.flatnonzero(capacity_mbps != self._capacity).tolist()
        self._session.setBasis(self._vertex)
        for link in changed:
            self._set(link, float(capacity_mbps[link]))
        value = self._solve()
        for link in changed:
            self._set(link, float(self._capacity[link]))
        return value

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._scaled:  # U falls as 1 / (1 + x), not as 1 - x
            return self.value - self.value / (1 + worth / self.value) if self.value > 0 else worth
        return worth

    def _set(self, link: int, capacity_mbps: float) -> None:
        row = self._start + link
        if self._scaled:
            self._session.changeCoeff(row, self._factor, -capacity_mbps)
        else:
            self._session.changeRowBounds(row, -math.inf, capacity_mbps)

    def _solve(self) -> float | None:
        """The objective; None where there is none."""
        if self._limit_s is not None:  # for each solve; the solver counts all that its session ran
            self._session.setOptionValue("time_limit", self._session.getRunTime() + self._limit_s)
        status = self._highs.run(self._session, self._highs.NAME)
        if status is Status.INFEASIBLE:
            return None
        if status is not Status.OPTIMAL:
            raise _OutOfTime
        value = self._sign * float(self._session.getInfo().objective_function_value)
        return 0.0 if abs(value) < ROUNDING else value


class _Rerun:
    """The design itself, run again on the changed network."""

    price: NDArray[np.float64] | None = None

    def __init__(self, problem: Traffic, decided: Decided, metric: str, options: Options) -> None:
        self._problem, self._decided, self._metric, self._options = problem, decided, metric, options
        value = decided.metrics[metric]
        self.value = 0.0 if value is None else value
        self.how = f"{decided.design.name}, run again"

    def under(self, capacity_mbps: NDArray[np.float64]) -> float | None:
        problem, kept = self._problem, capacity_mbps > 0
        links = problem.links.assign(capacity_mbps=capacity_mbps)[kept].reset_index(drop=True)
        try:
            changed = Traffic(nodes=problem.nodes, links=links, demands=problem.demands)
        except InputError:  # a demand has lost its last path
            return 0.0 if self._metric == "concurrent_flow" else None
        design = self._decided.design
        decision = design.decide(changed, options=self._options, previous=None, **self._decided.parameters)
        return None if decision.plan is None else measure(changed, decision.plan, None)[self._metric]

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full_like(worth, math.inf)


class _Priced(_Rerun):
    """A design that solves the same program in a way of its own: it verifies, the program prices.

    Such a way exists because it is faster: on 52,000 variables column generation takes a fifth of a
    second, and the program's session several for each change.
    """

    def __init__(
        self, problem: Traffic, decided: Decided, metric: str, options: Options, session: _Session
    ) -> None:
        super().__init__(problem, decided, metric, options)
        self.value, self.price, self._session = session.value, session.price, session
        self.how += f", shadow prices from {session.solver}"

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._session.at_most(worth)


# --- what is told -------------------------------------------------------------------------


def _limits(problem: Traffic, judge: _Judge, load: NDArray[np.float64], metric: str) -> tuple[Section, str]:
    """The links that bind, by what a percent of their capacity is worth."""
    capacity = problem.capacity_mbps
    utilization = load / capacity
    unit = UNITS[metric] or metric
    frame = pd.DataFrame(
        {
            "link": problem.link_labels,
            "load_mbps": load,
            "capacity_mbps": capacity,
            "utilization": utilization,
        }
    )
    units = {"load_mbps": "Mbit/s", "capacity_mbps": "Mbit/s", "utilization": ""}
    if judge.price is not None:
        worth = np.abs(judge.price) * capacity
        binding = np.flatnonzero(worth > SAME * max(abs(judge.value), 1e-12))
        order = binding[np.argsort(-worth[binding], kind="stable")]
        frame["shadow_price"] = judge.price
        frame["elasticity"] = judge.price * capacity / judge.value if judge.value else math.nan
        units |= {"shadow_price": f"{unit} per Mbit/s".strip(), "elasticity": "% per %"}
        what = "with a shadow price"
        note = "where several sets of prices fit, the solver's choice"
    else:
        busiest = utilization.max(initial=0.0)
        order = np.flatnonzero(utilization >= busiest * (1 - SAME)) if busiest > 0 else np.zeros(0, int)
        what = "as busy as any"
        note = "this design has no linear program, so no shadow prices"
    if len(order) > SHOWN:
        note = f"the first {SHOWN} of {len(order)}; {note}"
    limits = f"{_count(len(order), 'link')} of {len(load)} {what}" if len(order) else "no link limits it"
    sentence = f"{metric} is {_number(judge.value)}{_space(UNITS[metric])}: {limits}"
    if len(order):
        sentence += ", " + _listed([problem.link_labels[link] for link in order[:3]], len(order))
    section = Section(
        title="links that limit the plan",
        frame=frame.iloc[order[:SHOWN]].reset_index(drop=True),
        units=units,
        note=note,
    )
    return section, sentence


def _upgrades(
    problem: Traffic,
    judge: _Judge,
    lines: _Lines,
    load: NDArray[np.float64],
    metric: str,
    share: float,
    candidates: int,
) -> tuple[Section, str]:
    """Lines upgraded one at a time, in the order of what they can gain at most."""
    count = len(lines.names)
    by_load = _busiest(problem, lines, load)
    extra = problem.capacity_mbps * share
    price = np.zeros(len(extra)) if judge.price is None else np.abs(judge.price)
    limit = judge.at_most(lines.total(price * extra))
    order = np.lexsort((-by_load, -limit))
    floor = SAME * max(abs(judge.value), 1e-12)
    rows: list[dict[str, Any]] = []
    best = 0.0
    proven = False
    for line in order.tolist():
        # no line that is left can gain more than this
        if limit[line] <= max(best, floor):
            proven = True
            break
        if len(rows) == candidates:
            break
        upgraded = np.where(lines.of_link == line, problem.capacity_mbps + extra, problem.capacity_mbps)
        try:
            value = judge.under(upgraded)
        except _OutOfTime:
            break
        gain = math.nan if value is None else _better(metric, value, judge.value)
        best = max(best, 0.0 if math.isnan(gain) else gain)
        rows.append(
            {"line": lines.names[line], "gain": gain, "objective": value, "gain_at_most": limit[line]}
        )
    else:
        proven = judge.price is not None
    frame = pd.DataFrame(rows, columns=["line", "objective", "gain", "gain_at_most"])
    frame = frame.sort_values("gain", ascending=False, kind="stable", ignore_index=True)
    unit = UNITS[metric] or metric
    verified = f"{len(rows)} of {count} lines"
    amount = f"{share:.0%} more capacity"
    if best <= floor:
        certain = "proven" if proven else f"{verified} tried"
        sentence = f"no single line gains anything from {amount} ({certain})"
    else:
        certain = f"proven best of all {count} lines" if proven else f"best of {verified}, not proven"
        relative = best / abs(judge.value) if judge.value else math.inf
        sentence = (
            f"{amount} pays most on {frame['line'].iloc[0]}: {metric} {_number(judge.value)} -> "
            f"{_number(frame['objective'].iloc[0])}, {relative:.1%} better ({certain})"
        )
    section = Section(
        title=f"upgrades by {share:.0%}, solved again",
        frame=frame if judge.price is not None else frame.drop(columns="gain_at_most"),
        units={"objective": unit, "gain": unit, "gain_at_most": unit},
        note=f"{verified} verified with {judge.how}",
    )
    return section, sentence


def _losses(
    problem: Traffic,
    judge: _Judge,
    lines: _Lines,
    load: NDArray[np.float64],
    metric: str,
    candidates: int,
) -> tuple[Section, str]:
    """Lines lost one at a time: those that cut off a demand, then by what the loss costs at least."""
    carried_mbps = lines.total(load)
    loaded = np.flatnonzero(carried_mbps > 0)
    cut = {line: _cut_off(problem, lines.of_link != line) for line in _may_cut(problem, lines, loaded)}
    cut = {line: lost for line, lost in cut.items() if lost[0]}
    cutting = sorted(cut, key=lambda line: (-cut[line][1], line))
    at_least = np.zeros(len(lines.names))
    if judge.price is not None:
        at_least = lines.total(np.abs(judge.price) * problem.capacity_mbps)
    busy = _busiest(problem, lines, load)
    others = [int(line) for line in loaded[np.lexsort((-busy[loaded], -at_least[loaded]))] if line not in cut]
    # lines that cut demands off may be many, and tell little about the others
    of_cutting = max(candidates - len(others), (candidates + 1) // 2)
    tried = [*cutting[:of_cutting], *others[: candidates - min(of_cutting, len(cutting))]]
    rows = []
    for line in tried:
        left = np.where(lines.of_link == line, 0.0, problem.capacity_mbps)
        try:
            value = judge.under(left)
        except _OutOfTime:
            break
        rows.append(
            {
                "line": lines.names[line],
                "objective": value,
                "loss": math.nan if value is None else -_better(metric, value, judge.value),
                "demands_cut_off": cut.get(line, (0, 0.0))[0],
                "cut_off_mbps": cut.get(line, (0, 0.0))[1],
                "load_mbps": carried_mbps[line],
            }
        )
    columns = ["line", "objective", "loss", "demands_cut_off", "cut_off_mbps", "load_mbps"]
    frame = pd.DataFrame(rows, columns=columns)
    # what cannot be carried at all hurts more than any number
    frame = frame.sort_values(
        ["loss", "cut_off_mbps"], ascending=False, kind="stable", ignore_index=True, na_position="first"
    )
    unit = UNITS[metric] or metric
    everything = len(rows) == len(loaded)
    verified = f"all {len(loaded)} lines with a load" if everything else f"{len(rows)} of {len(loaded)} lines"
    section = Section(
        title="losses of a line, solved again",
        frame=frame,
        units={"objective": unit, "loss": unit, "cut_off_mbps": "Mbit/s", "load_mbps": "Mbit/s"},
        note=f"{verified} verified with {judge.how}",
    )
    return section, _worst(frame, judge.value, metric, verified, everything, len(cutting), len(loaded))


def _worst(
    frame: pd.DataFrame, value: float, metric: str, verified: str, everything: bool, cutting: int, loaded: int
) -> str:
    """The line whose loss hurts most and, where lines cut demands off, the worst that does not."""
    if not len(frame):
        return "no line's loss was tried" if loaded else "no line carries anything, so no loss hurts"

    def outcome(row: pd.Series) -> str:
        if pd.isna(row["loss"]):
            return "no plan carries what has to be carried"
        return f"{metric} {_number(value)} -> {_number(float(row['objective']))}"

    first = frame.iloc[0]
    sentence = f"the loss of {first['line']} hurts most: {outcome(first)}"
    if first["demands_cut_off"]:
        sentence += f", {_count(first['demands_cut_off'], 'demand')} cut off"
    if cutting:
        sentence += f"; {_count(cutting, 'line')} would cut demands off"
        whole = frame[frame["demands_cut_off"] == 0]
        if first["demands_cut_off"] and len(whole):
            sentence += f", of the others {whole['line'].iloc[0]} hurts most: {outcome(whole.iloc[0])}"
    return sentence + f" (worst of {verified}" + (")" if everything else " tried, not proven)")


def _changes(problem: Traffic, before: Routing, plan: Routing, name: str) -> tuple[tuple[Section, ...], str]:
    """The plan beside another: metrics, and the links whose load changes most."""
    old, new = measure(problem, before, None), measure(problem, plan, None)
    metrics = [
        {"metric": m.name, "unit": m.unit, "better": m.better, "before": old[m.name], "now": new[m.name]}
        for m in METRICS
        if old[m.name] is not None or new[m.name] is not None
    ]
    was, now = carried(problem, before).load_mbps, carried(problem, plan).load_mbps
    order = np.argsort(-np.abs(now - was), kind="stable")
    order = order[np.abs(now - was)[order] > SAME * max(float(was.max(initial=0)), float(now.max(initial=0)))]
    links = pd.DataFrame(
        {
            "link": problem.link_labels,
            "before_mbps": was,
            "now_mbps": now,
            "change_mbps": now - was,
            "utilization_before": was / problem.capacity_mbps,
            "utilization_now": now / problem.capacity_mbps,
        }
    )
    note = f"the first {SHOWN} of {len(order)} links whose load changes" if len(order) > SHOWN else ""
    sections = (
        Section(title=f"against {name}", frame=pd.DataFrame(metrics)),
        Section(
            title=f"loads that change from {name}",
            frame=links.iloc[order[:SHOWN]].reset_index(drop=True),
            units=dict.fromkeys(("before_mbps", "now_mbps", "change_mbps"), "Mbit/s"),
            note=note,
        ),
    )
    moved = _moved(problem, before, plan)
    sentence = (
        f"against {name}, {moved:.1%} of the load is on links that its traffic did not take before, "
        f"{len(order)} of {len(was)} links change theirs"
    )
    return sections, sentence


def _moved(problem: Traffic, before: Routing, plan: Routing) -> float:
    """Of all the load of the plan, the share that its targets' traffic did not put there before."""
    old, new = (sp.csr_array(deploy.flow_by_target(problem, one)) for one in (before, plan))
    more = (new - old).tocoo().data
    total = float(new.sum())
    return float(more[more > 0].sum()) / total if total > 0 else 0.0


def _busiest(problem: Traffic, lines: _Lines, load: NDArray[np.float64]) -> NDArray[np.float64]:
    """(lines,) the utilization of the busier direction."""
    busiest = np.zeros(len(lines.names))
    np.maximum.at(busiest, lines.of_link, load / problem.capacity_mbps)
    return busiest


def _may_cut(problem: Traffic, lines: _Lines, loaded: NDArray[np.int64]) -> list[int]:
    """The lines whose loss could leave a demand without a path."""
    ends = set(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))
    wanted: list[int] = loaded.tolist()
    if any((head, tail) not in ends for tail, head in ends):
        return wanted
    # where every link has one back, a path is lost only with a bridge of the undirected network
    import networkx as nx  # only where losses are tried

    graph = nx.MultiGraph()
    graph.add_nodes_from(range(len(problem.nodes)))
    pairs = zip(problem.tail.tolist(), problem.head.tolist(), problem.parallel.tolist(), strict=True)
    graph.add_edges_from({(min(a, b), max(a, b), number) for a, b, number in pairs})
    bridges = {frozenset(pair) for pair in nx.bridges(graph)}
    links = zip(problem.tail.tolist(), problem.head.tolist(), lines.of_link.tolist(), strict=True)
    return sorted({line for a, b, line in links if frozenset((a, b)) in bridges} & set(wanted))


def _cut_off(problem: Traffic, kept: NDArray[np.bool_]) -> tuple[int, float]:
    """How many demands have no path over the links that are kept, and their rate in Mbit/s."""
    count = len(problem.nodes)
    graph = sp.csr_array(
        (np.ones(int(kept.sum())), (problem.head[kept], problem.tail[kept])), shape=(count, count)
    )
    wanted = problem.rate_mbps > 0
    reach = dijkstra(graph, indices=problem.targets, unweighted=True)
    row = np.searchsorted(problem.targets, problem.target[wanted])
    lost = np.isinf(reach[row, problem.source[wanted]])
    return int(lost.sum()), float(problem.rate_mbps[wanted][lost].sum())


def _better(metric: str, value: float, than: float) -> float:
    """By how much the value is better: more or less, as the metric has it; 0 where they are the same."""
    if abs(value - than) <= SAME * max(abs(value), abs(than)):
        return 0.0
    return value - than if metric in MORE else than - value


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _listed(names: list[str], count: int) -> str:
    return ", ".join(names) + (" and others" if count > len(names) else "")


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""


def _number(value: float) -> str:
    return f"{value:,.4g}"
