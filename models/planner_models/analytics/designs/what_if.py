"""Explanation of a plan: uplinks that cost value, sites whose levels waste bytes, queries that lose."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.studies import Decided, Explanation, Section
from planner.options import Options
from planner_models.analytics.designs import optimum, prices
from planner_models.analytics.designs.choices import Choices
from planner_models.analytics.plan.answers import find_answers, find_loads
from planner_models.analytics.plan.plan import Levels, read_levels
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.windows import take_intervals

MORE: Final = 0.1  # of a capacity, that is tried
MOST_INTERVALS: Final = 48  # whose prices are found; of more, intervals at equal distances


def explain(
    problem: Analytics,
    decided: Decided,
    *,
    links: Annotated[int, Field(ge=0, le=100, description="uplinks that get more capacity")] = 6,
    rows: Annotated[int, Field(ge=1, description="most rows of a table")] = 10,
    options: Options = Options(),
) -> Explanation:
    """Explain what the answers lose, which uplinks cost most value, and which sites make bytes useless.

    The value of an uplink is its price in the relaxation; for the first ones, the interval in which it is
    highest is solved again with a tenth more capacity.
    """
    plan: Levels = decided.decision.plan  # type: ignore[assignment]
    chosen = read_levels(problem, plan)
    metrics = decided.metrics
    value, offered = metrics["value"] or 0.0, metrics["offered_value"] or 0.0
    sentences = [
        f"Answers have {value / offered:.1%} of the value of full quality."
        if offered
        else "No query has data."
    ]
    sections = []
    sample = np.unique(np.linspace(0, len(chosen) - 1, min(len(chosen), MOST_INTERVALS)).astype(int))
    found = _find_prices(problem, sample)
    table = _tabulate_links(problem, sample, found, options, links)
    if len(table):
        first = table.iloc[0]
        sentences.append(
            f"The uplink of {first['uplink']} costs most value: {first['price_usd']:,.3g} USD for all of its "
            f"capacity, most in interval {first['interval']:g}; a tenth more there gains "
            f"{first['gain_usd']:,.3g} USD, solved again."
        )
        of_sample = (
            "" if len(sample) == len(chosen) else f"; prices of {len(sample)} intervals at equal distances"
        )
        sections.append(
            Section(
                title="Uplinks that cost most value",
                frame=table,
                units={"price_usd": "USD", "expected_usd": "USD", "gain_usd": "USD"},
                note="expected_usd: at the price, for a tenth more capacity in the interval where the price "
                f"is highest; gain_usd: solved again{of_sample}",
            )
        )
    else:
        sentences.append("No uplink limits the answers.")
    wasted = metrics["wasted_percent"] or 0.0
    blamed = _tabulate_waste(problem, chosen).head(rows)
    if wasted > 0.05 and len(blamed):
        one = blamed.iloc[0]
        sentences.append(
            f"{wasted:.3g}% of the bytes are finer than answers can use. Site {one['site']}, at coarse "
            f"levels of {one['queries']:.0f} queries, makes most of them useless: {one['wasted_gb']:,.3g} GB."
        )
        sections.append(
            Section(
                title="Sites whose levels make bytes of others useless",
                frame=blamed,
                units={"wasted_gb": "GB"},
                note="shared equally among the sites with the coarsest level of a query in an interval",
            )
        )
    sections.append(_section_of_queries(problem, chosen, rows))
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _find_prices(problem: Analytics, sample: Ints) -> Floats:
    """Return the prices of uplinks in some intervals, USD, (intervals, S + G)."""
    choices, price, found = Choices(problem), None, []
    for k in sample.tolist():
        price = prices.find_prices(choices.interval(k), price).price
        found.append(price)
    return np.array(found)


def _tabulate_links(
    problem: Analytics, sample: Ints, price: Floats, options: Options, links: int
) -> pd.DataFrame:
    """Return a row for each uplink with the highest prices, with the gain by more capacity."""
    total = price.sum(axis=0)
    order = [one for one in np.argsort(-total, kind="stable")[:links].tolist() if total[one] > 1e-9]
    rows = []
    for link in order:
        place = int(price[:, link].argmax())
        k = int(sample[place])
        part = take_intervals(problem, np.array([k]))
        wider = part.capacity_mbps.copy()
        wider[0, link] *= 1 + MORE
        values = [
            optimum.plan(one, options=replace(options, service="best")).proof.objective
            for one in (part, part.with_capacity(wider))
        ]
        gain = None if None in values else values[1] - values[0]  # type: ignore[operator]
        rows.append(
            {
                "uplink": problem.link_names[link],
                "price_usd": float(total[link]),
                "interval": float(problem.interval_numbers[k]),
                "expected_usd": MORE * float(price[place, link]),
                "gain_usd": gain,
            }
        )
    return pd.DataFrame(rows)


def _tabulate_waste(problem: Analytics, chosen: Ints) -> pd.DataFrame:
    """Return each site with the bytes of other sites that its coarse levels make useless, the most first."""
    blame, queries = np.zeros(len(problem.site_names)), np.zeros(len(problem.site_names))
    for query in np.flatnonzero(~problem.is_sum).tolist():
        alone = np.full_like(chosen, -1)
        alone[:, :, query] = chosen[:, :, query]
        answers = find_answers(problem, alone)
        wasted = find_loads(problem, alone, answers).wasted.sum(axis=1)
        coarse = (chosen[:, :, query] == answers.level[:, [query]]) & problem.has_data[:, query]
        part = np.where(wasted > 0, wasted / np.maximum(coarse.sum(axis=1), 1), 0.0)
        blame += (coarse * part[:, None]).sum(axis=0)
        queries += (coarse & (wasted > 0)[:, None]).any(axis=0)
    order = np.argsort(-blame, kind="stable")
    order = order[blame[order] > 0]
    return pd.DataFrame(
        {
            "site": [problem.site_names[row] for row in order.tolist()],
            "queries": queries[order],
            "wasted_gb": blame[order] / 1e9,
        }
    )


def _section_of_queries(problem: Analytics, chosen: Ints, rows: int) -> Section:
    """Return the table of the queries that lose most value."""
    answers = find_answers(problem, chosen)
    full = problem.value_usd * problem.is_asked.sum(axis=0) * problem.has_data.any(axis=0)
    lost = full - answers.value_usd.sum(axis=0)
    order = np.argsort(-lost, kind="stable")[:rows]
    frame = pd.DataFrame(
        {
            "query": [problem.query_names[row] for row in order.tolist()],
            "lost_usd": lost[order],
            "kept_percent": 100 * (1 - lost[order] / np.maximum(full[order], 1e-300)),
        }
    )
    return Section(
        title="Queries that lose most value", frame=frame, units={"lost_usd": "USD", "kept_percent": "%"}
    )
