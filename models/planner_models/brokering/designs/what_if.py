"""Explanation of an assignment: money saved, dual prices of full clusters, the loss of each CDN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.design import Decision, Design
from planner.contract.metrics import Metric
from planner.contract.proof import Proof, Status
from planner.contract.studies import Decided, Explanation, Section
from planner.contract.what_if import Change, Reoptimization, Trial
from planner.errors import InputError
from planner.formatting import counted, number, percent
from planner.options import Options
from planner.search.judged import infeasible, optimal
from planner_models.brokering.designs.limit_prices import report_limits
from planner_models.brokering.plan import billing
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.min_cost_flow import solve_relaxation
from planner_models.brokering.plan.plan import Assignment, locate_rows
from planner_models.brokering.plan.presentation import money_per_objective
from planner_models.brokering.plan.transportation import (
    Relaxation,
    TransportationProblem,
    transportation_problem,
)
from planner_models.brokering.problem.problem import Brokering

CENT: Final = 0.005  # of the currency: less is not shown
MAX_ROWS: Final = 10  # of a table
ADDED_MBPS: Final = 1000.0  # to a full cluster
MBPS_UNITS: Final = {"load_mbps": "Mbit/s", "free_mbps": "Mbit/s"}
NOTE: Final = (
    "solved again for divisible clients; money and performance together, by the broker's weights{more}"
)


def explain(
    problem: Brokering,
    decided: Decided,
    *,
    clusters: Annotated[
        int, Field(ge=0, description="full clusters that are solved for with a Gbit/s more")
    ] = 5,
    cdns: Annotated[
        int, Field(ge=0, description="CDNs, those with the most traffic first, that are solved without")
    ] = 20,
    options: Options = Options(),
) -> Explanation:
    """Explain an assignment: the money saved, the dual prices of full clusters, and the loss of each CDN.

    Dual prices of capacity come from the relaxation to divisible clients, which also solves the changed
    problems: a Gbit/s more in one cluster, or one CDN less. Costs are by the contracts that the problem
    lists, with their commitments, else at the prices that the broker observes.

    source  shadow prices: linear programming duality
    """
    plan: Assignment = decided.decision.plan  # type: ignore[assignment]
    sentences: list[str] = []
    sections: list[Section] = []
    if decided.baseline is not None:
        sections.append(_traffic_changes(problem, decided.baseline, plan))
        sentences += _money_saved(problem, decided.baseline, plan, decided.baseline_name)
    transport = transportation_problem(problem)
    if problem.limits is not None:
        section, sentence = report_limits(problem, plan, transport)
        sections.append(section)
        sentences.append(sentence)
    relaxation = solve_relaxation(transport)
    if relaxation.bound is not None:
        reoptimization = _reoptimization(problem, relaxation, options)
        load = read_assignment(problem, plan).load_mbps
        for section, sentence in (
            _full_clusters(problem, transport, relaxation, load, reoptimization, clusters),
            _lost_cdns(problem, transport, load, reoptimization, cdns),
        ):
            sections += [section] if len(section.frame) else []
            sentences.append(sentence)
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _traffic_cost(problem: Brokering, plan: Assignment) -> tuple[Floats, Floats, Ints]:
    """Return Mbit/s, cost per hour and cluster of each row of a plan."""
    location, cluster, mbps = locate_rows(problem, plan)
    for name, row in (("location", location), ("cluster", cluster)):
        if (row < 0).any():
            unknown = plan.assignments[name].iloc[int(np.flatnonzero(row < 0)[0])]
            raise InputError(f"the present assignment: {name} '{unknown}' is none of the problem's")
    price = np.nan_to_num(billing.prices_paid(problem, location, cluster))
    return mbps, price * mbps * problem.terms.units_per_mbps_hour, cluster


def _money_saved(problem: Brokering, baseline: Assignment, plan: Assignment, name: str) -> Iterator[str]:
    before, now = billing.hourly_cost(problem, baseline), billing.hourly_cost(problem, plan)
    currency, included = problem.terms.currency, ""
    if problem.contracts is not None:
        included = " by contract, commitments included"
    saved, verb = before - now, "saves" if before >= now else "costs more by"
    share = f" ({percent(abs(saved) / before)})" if before > 0 else ""
    difference = f"it {verb} {currency} {abs(saved):,.2f} an hour{share}"
    yield (
        f"The plan costs {currency} {now:,.2f} an hour{included}, {name} {currency} {before:,.2f}: "
        f"{difference if abs(saved) >= CENT else 'the same'}."
    )
    unused = billing.hourly_unused(problem, plan)
    if unused >= CENT:
        yield f"{currency} {unused:,.2f} of them pay for committed traffic that is not sent."


def _traffic_changes(problem: Brokering, baseline: Assignment, plan: Assignment) -> Section:
    columns = {}
    for when, assignment in (("before", baseline), ("now", plan)):
        mbps, cost, cluster = _traffic_cost(problem, assignment)
        cdn, count = problem.cdn[cluster], len(problem.cdn_names)
        columns[f"{when}_mbps"] = np.bincount(cdn, weights=mbps, minlength=count)
        columns[f"{when}_cost"] = np.bincount(cdn, weights=cost, minlength=count)
    frame = pd.DataFrame({"cdn": problem.cdn_names, **columns})
    change = (frame["now_mbps"] - frame["before_mbps"]).abs()
    frame = frame.loc[change.sort_values(ascending=False, kind="stable").index].head(MAX_ROWS)
    units = {name: "Mbit/s" if name.endswith("mbps") else f"{problem.terms.currency}/h" for name in columns}
    return Section(title="what changes", frame=frame.reset_index(drop=True), units=units)


def _reoptimization(problem: Brokering, relaxation: Relaxation, options: Options) -> Reoptimization[Any]:
    """Return the solver of changed problems: min-cost flow, with its bound as the metric."""
    factor, unit = money_per_objective(problem)

    def decide(transport: TransportationProblem) -> Decision[Relaxation]:
        if not np.isfinite(transport.cost).any(axis=1).all():
            return Decision(plan=None, proof=infeasible())
        solved = solve_relaxation(transport)
        plan = None if solved.bound is None else solved
        return Decision(plan=plan, proof=Proof(status=Status.OPTIMAL if plan else Status.INFEASIBLE))

    def measure(_problem: object, plan: Relaxation, _previous: object) -> dict[str, float | None]:
        return {"objective": None if plan.bound is None else plan.bound * factor}

    decided = Decided(
        design=Design(name="min-cost flow", decide=decide, source="transportation problem"),
        parameters={},
        decision=Decision(plan=relaxation, proof=optimal()),
        metrics=measure(None, relaxation, None),
    )
    metric = Metric(
        name="objective", unit=unit, better="less", about="objective, in money where it has a price"
    )
    return Reoptimization(decided, metric=metric, measure=measure, options=options)


def _full_clusters(
    problem: Brokering,
    transport: TransportationProblem,
    relaxation: Relaxation,
    load_mbps: Floats,
    reoptimization: Reoptimization[Any],
    limit: int,
) -> tuple[Section, str]:
    """Return the full clusters with their dual prices, and the gain of a Gbit/s more in `limit` of them."""
    factor, unit = money_per_objective(problem)
    full = np.flatnonzero(relaxation.dual_price > 0)
    full = full[np.argsort(-relaxation.dual_price[full], kind="stable")]
    trials = []
    for rank, cluster in enumerate(full[:MAX_ROWS].tolist()):
        capacity = transport.capacity_mbps.copy()
        capacity[cluster] += ADDED_MBPS
        change = Change(
            name=f"{problem.clusters['cluster'].iloc[cluster]} with 1 Gbit/s more",
            problem=replace(transport, capacity_mbps=capacity),
            facts={
                "load_mbps": float(load_mbps[cluster]),
                "free_mbps": float(problem.residual_mbps[cluster]),
                "dual_price_per_gbps": float(relaxation.dual_price[cluster]) * 1000 * factor,
            },
        )
        tried = rank < limit
        trials.append(
            reoptimization.solve(change) if tried else Trial(change=change, metrics=None, gain=None)
        )
    more = "" if len(trials) <= limit else f"; the first {limit} were solved for"
    section = reoptimization.section(
        trials,
        title="full clusters",
        units={**MBPS_UNITS, "dual_price_per_gbps": unit},
        note=NOTE.format(more=more),
    )
    if not trials:
        return section, "No cluster is full: more capacity anywhere gains nothing."
    first = trials[0].change
    count = counted(len(full), "clusters", "are")
    value = f"{number(first.facts['dual_price_per_gbps'])} {unit or 'of the objective'}"
    return section, (
        f"{count} full. The dual price of capacity is highest in "
        f"{problem.clusters['cluster'].iloc[full[0]]}: {value} per Gbit/s at the margin."
    )


def _lost_cdns(
    problem: Brokering,
    transport: TransportationProblem,
    load_mbps: Floats,
    reoptimization: Reoptimization[Any],
    limit: int,
) -> tuple[Section, str]:
    """Return the objective without each CDN, the largest loss first, of those with the most traffic."""
    load = np.bincount(problem.cdn, weights=load_mbps, minlength=len(problem.cdn_names))

    def changes() -> Iterator[Change[Any]]:
        for cdn in np.argsort(-load, kind="stable").tolist():
            cost = transport.cost.copy()
            cost[:, problem.cdn == cdn] = np.inf
            name = f"without {problem.cdn_names[cdn]}"
            facts = {"load_mbps": float(load[cdn])}
            yield Change(name=name, problem=replace(transport, cost=cost), facts=facts)

    # the largest loss first; without a number, the other CDNs cannot serve all clients
    trials = reoptimization.solve_all(changes(), limit=limit)
    trials.sort(key=lambda trial: -np.inf if trial.gain is None else trial.gain)
    more = "" if len(trials) == len(problem.cdn_names) else f"; the {len(trials)} CDNs with the most traffic"
    section = reoptimization.section(
        trials,
        title="without a CDN",
        units=MBPS_UNITS,
        note=NOTE.format(more="; no number: the other CDNs cannot serve all clients" + more),
    )
    if not trials:
        return section, "No CDN was left out."
    worst = trials[0]
    name = f"W{worst.change.name[1:]}"
    if worst.gain is None:
        return section, f"{name} the other CDNs cannot serve all clients."
    share = -worst.gain / max(abs(reoptimization.value or 0.0), 1e-9)
    unit = f" {reoptimization.metric.unit}".rstrip()
    return section, (
        f"{name} the broker loses most: its objective rises by {number(-worst.gain)}{unit} "
        f"({percent(share)})."
    )
