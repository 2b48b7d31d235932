"""Explanation of a plan: its bill, missed goals, and the cost of limits and dependencies."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import amount, counted, percent
from planner.options import Options
from planner_models.geostore.plan.evaluation import Evaluation, evaluate
from planner_models.geostore.plan.losses import measure_losses
from planner_models.geostore.plan.metrics import measure
from planner_models.geostore.plan.steps import COPY, Change, order_changes
from planner_models.geostore.problem.adjustments import adjust
from planner_models.geostore.problem.problem import Geostore

MAX_TRIED: Final = 20_000
"""Groups times regions up to which the design runs again for each change that is tried."""
USD: Final = "USD"


def explain(
    problem: Geostore,
    decided: Decided,
    *,
    rows: Annotated[int, Field(ge=1, description="largest number of rows of a table")] = 10,
    tried: Annotated[
        int, Field(ge=0, description="changes for which the design runs again: limits, and dependencies")
    ] = 4,
    options: Options = Options(),
) -> Explanation:
    """Explain the bill of a plan, its missed goals, and the saving by relaxed constraints."""
    state = evaluate(problem, decided.plan)
    sentences = [_say_bill(state), *_say_missed(state), *_say_loss(state)]
    sections = [_tabulate_bill(state), _tabulate_regions(state, rows)]
    if tried and len(problem.groups) * len(problem.regions) <= MAX_TRIED:
        trial = _try_changes(problem, decided, tried, state, options)
        if len(trial):
            sentences.append(_say_change(trial))
            units = {"cost_per_month": USD, "saved": USD}
            title = "The design again with one constraint relaxed"
            sections.append(Section(title=title, frame=trial.head(rows), units=units))
        opened = _try_openings(problem, decided, tried, state, options)
        if len(opened):
            sentences.append(_say_opening(opened))
            units = {"cost_per_month": USD, "saved": USD}
            title = "The design again with a region opened to all groups"
            sections.append(Section(title=title, frame=opened.head(rows), units=units))
    if problem.is_placed.any():
        changes = order_changes(problem, problem.is_placed, state.copies > 0)
        sentences.append(_say_steps(changes))
        sections.append(_tabulate_steps(problem, changes, rows))
    if problem.depends is None or not len(problem.depends):
        sentences.append("Order is kept within each group only, as no dependencies are stated.")
    sentences.append("Order that users establish outside the store, such as by telephone, is not observed.")
    return Explanation(
        sentences=tuple(sentence for sentence in sentences if sentence),
        sections=tuple(section for section in sections if len(section.frame)),
    )


def _say_bill(state: Evaluation) -> str:
    parts = {
        "storage": state.storage_usd,
        "requests": state.request_usd,
        "traffic between regions": state.egress_usd,
        "servers": state.server_usd,
    }
    largest = max(parts, key=lambda name: parts[name])
    share = parts[largest] / state.usd if state.usd > 0 else 0.0
    return f"The plan costs {state.usd:,.2f} USD a month, {percent(share)} of it for {largest}."


def _say_missed(state: Evaluation) -> list[str]:
    """Return the requests that miss a goal, and the first group of each kind."""
    problem = state.problem
    missed = float((problem.requests_per_s - state.good_per_s).sum())
    if missed <= 1e-9 * float(problem.requests_per_s.sum()):
        return ["All requests keep limits, consistency and survival."]
    sentences = [f"{amount(missed, 'requests/s')} miss a goal."]
    for is_kept, words in (
        (state.class_kept, "has a weaker consistency than it asks for"),
        (state.survived, "does not survive what it must"),
        (state.order_kept, "cannot check the order of its writes in some region"),
        (state.stale_kept, "becomes visible too late"),
    ):
        rows = np.flatnonzero(~is_kept)
        if len(rows):
            more = f", and {counted(len(rows) - 1, 'others')}" if len(rows) > 1 else ""
            sentences.append(f"Group {problem.group_index[rows[0]]}{more} {words}.")
    return sentences


def _say_loss(state: Evaluation) -> list[str]:
    """Return the effects of the loss of the worst region."""
    problem, losses = state.problem, measure_losses(state)
    sentences = []
    row = int(losses["lost_groups"].argmax())
    number = int(losses["lost_groups"][row])
    if number:
        sentences.append(
            f"If region {problem.region_index[row]} is lost for good, {counted(number, 'groups')} "
            f"{'is' if number == 1 else 'are'} lost with it."
        )
    row = int(losses["lost_writes"].argmax())
    if losses["lost_writes"][row] > 0:
        sentences.append(
            f"If region {problem.region_index[row]} is lost for good, about {losses['lost_writes'][row]:.3g} "
            "acknowledged writes are in no other region yet."
        )
    return sentences


def _tabulate_bill(state: Evaluation) -> Section:
    frame = pd.DataFrame(
        {
            "for": ["storage", "requests", "traffic", "servers"],
            "cost": [state.storage_usd, state.request_usd, state.egress_usd, state.server_usd],
        }
    )
    return Section(title="Cost of a month", frame=frame[frame["cost"] > 0], units={"cost": USD})


def _tabulate_regions(state: Evaluation, rows: int) -> Section:
    """Return the busiest regions, with the losses that each would bring."""
    problem, losses = state.problem, measure_losses(state)
    frame = pd.DataFrame(
        {
            "region": problem.region_index.to_numpy(object),
            "groups": (state.copies > 0).sum(axis=0),
            "load": state.load,
            "lost_writes": losses["lost_writes"],
            "lost_groups": losses["lost_groups"].astype(int),
        }
    )
    frame = frame[frame["groups"] > 0].sort_values("load", ascending=False, kind="stable", ignore_index=True)
    units = {"load": "operations/s", "lost_writes": "writes"}
    return Section(title="Regions by load, and what is lost with each", frame=frame.head(rows), units=units)


def _changes(problem: Geostore) -> list[tuple[str, Geostore]]:
    """Return problems with one constraint relaxed, with the change in words."""
    changes: list[tuple[str, Geostore]] = []
    for column, words in (
        ("read_ms", "no limit of reads"),
        ("write_ms", "no limit of writes"),
        ("failover_ms", "no limit after failures"),
        ("stale_ms", "no limit of staleness"),
    ):
        if column in problem.groups and problem.groups[column].notna().any():
            changes.append((words, replace(problem, groups=problem.groups.drop(columns=column))))
    if (problem.failures > 0).any():
        groups = problem.groups.drop(columns=["survive"], errors="ignore").assign(failures=0.0)
        changes.append(("no failures to survive", replace(problem, groups=groups)))
    if problem.depends is not None and len(problem.depends):
        changes.append(("no dependencies", replace(problem, depends=None)))
    if any(name != "eventual" for name in problem.group_class):
        changes.append(("eventual consistency", _make_eventual(problem)))
    changes.append(("limits twice as long", adjust(problem, limit_factor=2.0)))
    return changes


def _make_eventual(problem: Geostore) -> Geostore:
    groups = problem.groups.drop(columns=["invariant"], errors="ignore")
    return replace(problem, groups=groups.assign(**{"class": "eventual"}), depends=None)


def _try_changes(
    problem: Geostore, decided: Decided, tried: int, state: Evaluation, options: Options
) -> pd.DataFrame:
    """Return the cost of the design again with each constraint relaxed, the largest saving first."""
    rows: list[tuple[str, Any, float]] = []
    for words, relaxed in _changes(problem)[:tried]:
        decision = decided.design.run(relaxed, options=options, parameters=decided.parameters)
        if decision.plan is not None:
            usd = measure(relaxed, decision.plan, None)["usd_per_month"] or 0.0
            rows.append((words, usd, state.usd - usd))
    frame = pd.DataFrame(rows, columns=["relaxed", "cost_per_month", "saved"])
    return frame.sort_values("saved", ascending=False, kind="stable", ignore_index=True)


def _say_change(trial: pd.DataFrame) -> str:
    first = trial.iloc[0]
    if float(first["saved"]) <= 1e-6 * abs(float(first["cost_per_month"])):
        return "None of the relaxed constraints makes the plan cheaper."
    return f"With {first['relaxed']} the design would cost {first['saved']:,.2f} USD a month less."


def _try_openings(
    problem: Geostore, decided: Decided, tried: int, state: Evaluation, options: Options
) -> pd.DataFrame:
    """Return the cost of the design again with each region open to all groups, the largest saving first.

    Of the regions that are forbidden to some group those are tried that most operations' groups may not use.
    """
    rate = np.bincount(problem.user_group, problem.requests_per_s, len(problem.groups))
    closed = rate @ problem.is_forbidden
    order = np.argsort(-closed, kind="stable")
    rows: list[tuple[str, Any, float]] = []
    for region in order[closed[order] > 0][:tried].tolist():
        name = str(problem.region_index[region])
        opened = adjust(problem, open_regions=(name,))
        decision = decided.design.run(opened, options=options, parameters=decided.parameters)
        if decision.plan is not None:
            usd = measure(opened, decision.plan, None)["usd_per_month"] or 0.0
            rows.append((name, usd, state.usd - usd))
    frame = pd.DataFrame(rows, columns=["region", "cost_per_month", "saved"])
    return frame.sort_values("saved", ascending=False, kind="stable", ignore_index=True)


def _say_opening(opened: pd.DataFrame) -> str:
    first = opened.iloc[0]
    if float(first["saved"]) <= 1e-6 * abs(float(first["cost_per_month"])):
        return "No region that is closed to some group is worth opening."
    return (
        f"The region most worth opening to all groups is {first['region']}: "
        f"the design would cost {first['saved']:,.2f} USD a month less."
    )


def _say_steps(changes: list[Change]) -> str:
    """Return the way from the replicas in place to the plan in words."""
    if not changes:
        return "All replicas of the plan are in place, and no others."
    copied = [item for item in changes if item.change == COPY]
    dropped = len(changes) - len(copied)
    parts = []
    if copied:
        gb = sum(item.gb for item in copied)
        parts.append(f"{counted(len(copied), 'replicas')} of {gb:,.4g} GB {_be(len(copied))} copied")
        parts.append("users move")
    if dropped:
        parts.append(f"{counted(dropped, 'replicas')} {_be(dropped)} dropped")
    return (
        f"From the replicas in place the plan takes {counted(changes[-1].step, 'steps')}: "
        f"{', then '.join(parts)}."
    )


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _tabulate_steps(problem: Geostore, changes: list[Change], rows: int) -> Section:
    names = problem.group_index, problem.region_index
    frame = pd.DataFrame(
        [
            (
                item.step,
                item.change,
                names[0][item.group],
                names[1][item.region],
                names[1][item.source] if item.source >= 0 else "",
                item.gb,
            )
            for item in changes
        ],
        columns=["step", "change", "group", "region", "copied_from", "size"],
    )
    title = "Steps from the replicas in place: copies before drops"
    return Section(title=title, frame=frame.head(rows), units={"size": "GB"})
