"""Adjustments that apply to every problem of system `capacity`, whatever its source.

Sets of failures to survive: every link, every node, or every two links.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.parameters import spread
from planner.contract.tables import file_name, row_name
from planner.errors import InputError, did_you_mean
from planner_models.capacity.problem.directions import settle_direction
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.schema import LEAST_UTILIZATION, MOST_MODULES
from planner_models.capacity.problem.tables import Direction

MOST_YEARS = 30
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Utilization = Annotated[float, Field(ge=LEAST_UTILIZATION, le=1, allow_inf_nan=False)]
Change = Annotated[float, Field(gt=-1, allow_inf_nan=False)]
FailureSet = Annotated[
    Literal["table", "none", "links", "nodes", "double_links"],
    Field(
        description="failures to survive; table: those of the table; none; links: each link alone, both "
        "directions together; nodes: each node alone; double_links: each link alone and every two together"
    ),
]
MOST_FAILURES: Final = 100_000


@dataclass(frozen=True, kw_only=True)
class NetworkRules:
    """Rules of the network that replace those of the tables; None: as in the tables."""

    direction: Annotated[
        Direction | None,
        Field(
            description="undirected: the traffic of both directions shares a link's capacity; bidirected: "
            "each direction has it; directed: traffic goes from tail to head only; default: as in the "
            "tables, else undirected"
        ),
    ] = None
    modules_per_link: Annotated[
        Literal["any", "one"] | None,
        Field(
            description="any: any number of each module on a link; one: at most one module in all; "
            "default: as in the tables"
        ),
    ] = None
    budget: Annotated[
        Amount | None,
        Field(description="most that purchases may cost, setup included; default: as in the tables"),
    ] = None

    max_utilization: Annotated[
        Utilization | None,
        Field(description="largest load over capacity of links without failures; default: as in the tables"),
    ] = None
    max_utilization_failed: Annotated[
        Utilization | None,
        Field(description="largest load over capacity of links after a failure; default: as in the tables"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class LinkChanges:
    """Links that are lost, or without purchases."""

    fail_links: Annotated[
        tuple[str, ...], Field(description="links that are lost: they have no capacity and can get none")
    ] = ()
    forbid_links: Annotated[tuple[str, ...], Field(description="links that no module may be bought for")] = ()


@dataclass(frozen=True, kw_only=True)
class YearsOfPlan:
    """The years of the plan, and the changes from one to the next."""

    years: Annotated[
        int | None, Field(ge=1, le=MOST_YEARS, description="years of the plan; default: as in the tables")
    ] = None
    growth: Annotated[
        Change, Field(description="of `years`: share by which demand grows each year, from the first")
    ] = 0.0
    price_change: Annotated[
        Change, Field(description="of `years`: share by which prices change each year, such as -0.1")
    ] = 0.0
    discount_rate: Annotated[
        Amount, Field(description="of `years`: interest by which costs of later years are discounted")
    ] = 0.0
    class_growth: Annotated[
        Mapping[str, Change] | None,
        Field(
            description="share by which demands of a class grow each year, beside `growth`, such as "
            "{gold = 0.3}; default: as in the tables"
        ),
    ] = None

    def apply(self, problem: CapacityPlanning) -> CapacityPlanning:
        """Return the problem with these years; of one year where it has none.

        raises  InputError for growth or prices that change without `years`
        """
        if self.class_growth:
            problem = grow_classes(problem, self.class_growth)
        if self.years is not None:
            years = _list_years(self.years, self.growth, self.price_change, self.discount_rate)
            return replace(problem, years=years)
        if self.growth or self.price_change or self.discount_rate:
            raise InputError("growth, price_change and discount_rate need years")
        if problem.years is None:
            _require_one_year(problem)
        return problem


@spread(rules=NetworkRules(), links=LinkChanges(), plan=YearsOfPlan())
def adjust(
    problem: CapacityPlanning,
    *,
    scale: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="every demand's rate is multiplied by this")
    ] = 1.0,
    rules: NetworkRules,
    failures: FailureSet = "table",
    links: LinkChanges,
    max_latency_ms: Annotated[
        Mapping[str, Amount] | None,
        Field(
            description="largest one-way delay of the routes of a class, ms, such as {gold = 5}; default: as "
            "in the tables"
        ),
    ] = None,
    plan: YearsOfPlan,
) -> CapacityPlanning:
    """Return the problem with other demands, rules, failures to survive, budget or years.

    raises  InputError for links that are none, for growth or a later beginning without `years`, and without
            a direction where rows of links may be one direction each
    """
    settle_direction(problem, rules.direction)
    changed = problem
    if scale != 1:
        rate = changed.demands["rate_mbps"] * scale
        changed = replace(changed, demands=changed.demands.assign(rate_mbps=rate))
    if max_latency_ms:
        changed = limit_latency(changed, max_latency_ms)
    changes = {name: value for name, value in vars(rules).items() if value is not None}
    if changes:
        changed = changed.with_network(**changes)
    if failures != "table":
        changed = replace(changed, failures=list_failures(changed, failures))
    changed = plan.apply(changed)
    if links.forbid_links:
        changed = forbid_purchases(changed, links.forbid_links)
    if links.fail_links:
        changed = remove_links(changed, links.fail_links)
    _note_tiny_modules(changed)
    return changed


def _note_tiny_modules(problem: CapacityPlanning) -> None:
    """Add a note for each module of which any number may be bought, but the most is less than all traffic."""
    if problem.one_module:
        return
    frame, offered = problem.modules, float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    is_unlimited = frame["max_count"].isna() if "max_count" in frame else np.ones(len(frame), dtype=bool)
    upper_mbps = frame["capacity_mbps"].to_numpy(float) * MOST_MODULES
    for row in np.flatnonzero(is_unlimited & (upper_mbps < offered)).tolist():
        add_note(
            f"warning: {row_name(frame, 'modules', row)}: a link can have at most {MOST_MODULES:,.0f} of "
            f"{frame['module'].iloc[row]}, {upper_mbps[row]:,.6g} Mbit/s, and all demands together are "
            f"{offered:,.6g} Mbit/s: is its capacity in another unit?"
        )


def _list_years(years: int, growth: float, price_change: float, discount_rate: float) -> pd.DataFrame:
    """Return the table of years, numbered from 1, with factors of demands and prices."""
    step = np.arange(years)
    price = ((1 + price_change) / (1 + discount_rate)) ** step
    return pd.DataFrame({"year": step + 1.0, "demand_factor": (1 + growth) ** step, "price_factor": price})


def limit_latency(problem: CapacityPlanning, limit_ms: Mapping[str, float]) -> CapacityPlanning:
    """Return the problem in which demands of some classes have a latency limit, ms, in place of their own.

    raises  InputError for classes that are none, and where demands have no classes
    """
    _require_classes(problem, limit_ms, "max_latency_ms", "max_latency_ms")
    limit_of = problem.demands["class"].astype(str).map(dict(limit_ms))
    existing = problem.demands.get("max_latency_ms", np.nan)
    return replace(
        problem, demands=problem.demands.assign(max_latency_ms=limit_of.fillna(existing).astype(float))
    )


def grow_classes(problem: CapacityPlanning, growth: Mapping[str, float]) -> CapacityPlanning:
    """Return the problem in which demands of some classes grow each year, in place of their own growth.

    raises  InputError for classes that are none, and where demands have no classes
    """
    _require_classes(problem, growth, "class_growth", "growth")
    growth_of = problem.demands["class"].astype(str).map(dict(growth))
    own = problem.growth
    return replace(
        problem, demands=problem.demands.assign(growth=growth_of.fillna(pd.Series(own)).to_numpy())
    )


def _require_classes(problem: CapacityPlanning, values: Mapping[str, float], name: str, column: str) -> None:
    """Raise InputError for classes that are none, and where demands have no classes."""
    if not problem.has_classes:
        raise InputError(f"{name}: demands have no classes; give the column {column} of demands")
    class_names = problem.class_table["class"].astype(str).tolist()
    faults = [
        f"{name}: '{value}' is no class" + did_you_mean(value, class_names)
        for value in values
        if value not in class_names
    ]
    if faults:
        raise InputError(*faults)


def _require_one_year(problem: CapacityPlanning) -> None:
    """Raise InputError where demands grow or begin in a later year, and there is only one."""
    for name in ("growth", "year"):
        if name in problem.demands and problem.demands[name].fillna(0.0).any():
            raise InputError(
                f"{file_name(problem.demands, 'demands')}: column '{name}' needs several years: give the "
                "table years, or problem.years"
            )
    if problem.classes is not None and problem.growth.any():
        raise InputError(
            f"{file_name(problem.classes, 'classes')}: column 'growth' needs several years: give the table "
            "years, or problem.years"
        )


def _find_links(problem: CapacityPlanning, names: Sequence[str], parameter: str) -> list[int]:
    """Return the rows of links; raise InputError for names that are none."""
    faults = [
        f"{parameter}: '{name}' is no link" + did_you_mean(name, problem.names)
        for name in names
        if problem.find_line(name) < 0
    ]
    if faults:
        raise InputError(*faults)
    return sorted({problem.find_line(name) for name in names})


def forbid_purchases(problem: CapacityPlanning, names: Sequence[str]) -> CapacityPlanning:
    """Return the problem in which no module may be bought for some links."""
    rows = set(_find_links(problem, names, "forbid_links"))
    frame = problem.modules
    options = problem.options
    if "link" in frame:
        link_rows = [problem.find_line(name) if name else -1 for name in frame["link"]]
        frame = frame[[row not in rows for row in link_rows]]
    else:
        frame = frame.assign(link="")
    if "max_count" not in frame:
        frame = frame.assign(max_count=np.nan)
    columns = [column for column, line in enumerate(options.link.tolist()) if line in rows]
    none = pd.DataFrame(
        {
            "module": [options.name[column] for column in columns],
            "capacity_mbps": options.size[columns],
            "cost": options.cost[columns],
            "cost_per_km": 0.0,
            "max_count": 0.0,
            "link": [problem.names[options.link[column]] for column in columns],
            "tenure": np.where(options.leased[columns], "leased", "owned"),
        }
    )
    return replace(problem, modules=pd.concat([frame, none], ignore_index=True)[list(frame.columns)])


def remove_links(problem: CapacityPlanning, names: Sequence[str]) -> CapacityPlanning:
    """Return the problem without some links; failures of nothing else are left out.

    Where there are tunnels, the links stay, without capacity, so that tunnels over them are down.
    """
    rows = _find_links(problem, names, "fail_links")
    if problem.tunnels is not None:
        return _switch_off(problem, rows)
    is_kept = ~np.isin(np.arange(len(problem.lines)), rows)
    count = len(problem.links)
    named = problem.lines.assign(link=problem.names)  # numbers of parallel links stay
    changes: dict[str, Any] = {}
    for table, mask, names_of_rows in (
        ("links", is_kept[:count], named["link"].iloc[:count]),
        ("candidates", is_kept[count:], named["link"].iloc[count:]),
    ):
        frame = getattr(problem, table)
        if frame is not None and not mask.all():
            changes[table] = frame.assign(link=names_of_rows.to_numpy())[mask].reset_index(drop=True)
    if "link" in problem.modules:
        link_rows = [problem.find_line(name) if name else -1 for name in problem.modules["link"]]
        changes["modules"] = problem.modules[[row not in rows for row in link_rows]].reset_index(drop=True)
    changes["failures"] = _without_members(problem, rows)
    return replace(problem, **changes)


def _switch_off(problem: CapacityPlanning, rows: list[int]) -> CapacityPlanning:
    """Return the problem in which some links have no capacity and can get none."""
    is_off = np.isin(np.arange(len(problem.links)), rows)
    off = {name: problem.links[name].mask(is_off, 0.0) for name in ("capacity_mbps", "installed_cost")}
    links = problem.links.assign(**off)
    changed = forbid_purchases(problem, [problem.names[row] for row in rows])
    return replace(changed, links=links, failures=_without_members(problem, rows))


def _without_members(problem: CapacityPlanning, rows: Sequence[int]) -> pd.DataFrame | None:
    """Return the failures without members that are some links; None where there is none left."""
    if problem.failures is None:
        return None
    mask = [problem.find_line(name) not in rows for name in problem.failures["member"]]
    remaining = problem.failures[mask].reset_index(drop=True)
    return remaining if len(remaining) else None


def list_failures(problem: CapacityPlanning, selected: FailureSet) -> pd.DataFrame | None:
    """Return the table of a set of failures; None for no failure.

    raises  InputError for more failures than a plan can be checked for
    """
    if selected == "table":
        return problem.failures
    if selected == "none":
        return None
    lines = list(_group_directions(problem).values())
    sets: list[tuple[str, ...]]
    if selected == "nodes":
        sets = [(name,) for name in problem.nodes["node"]]
    else:
        sets = [tuple(line) for line in lines]
        if selected == "double_links":
            count = len(lines) * (len(lines) + 1) // 2
            if count > MOST_FAILURES:
                raise InputError(f"failures: double_links are {count:,}, must be at most {MOST_FAILURES:,}")
            sets += [(*group, *other) for group, other in itertools.combinations(lines, 2)]
    rows = [(_name(names), member) for names in sets for member in names]
    return pd.DataFrame(rows, columns=["failure", "member"])


def _group_directions(problem: CapacityPlanning) -> dict[tuple[int, int, int], list[str]]:
    """Return the names of links that fail together: a directed link and the opposite one."""
    groups: dict[tuple[int, int, int], list[str]] = {}
    for index, (tail, head, nth) in enumerate(_numbered_ends(problem)):
        key = (index, 0, 0) if problem.direction != "directed" else (min(tail, head), max(tail, head), nth)
        groups.setdefault(key, []).append(problem.names[index])
    return groups


def _numbered_ends(problem: CapacityPlanning) -> Iterator[tuple[int, int, int]]:
    """Yield the ends of each link, and which of the links with these ends it is."""
    counts: dict[tuple[int, int], int] = {}
    for ends in zip(problem.tail.tolist(), problem.head.tolist(), strict=True):
        counts[ends] = counts.get(ends, 0) + 1
        yield *ends, counts[ends]


def _name(members: tuple[str, ...]) -> str:
    return " + ".join(members)
