"""Explanation of a month: the cost of each contract, and of its terms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner.contract.studies import Decided, Explanation, Section
from planner.formatting import percent, sizes
from planner.options import Options
from planner_models.contracts.designs import optimum
from planner_models.contracts.designs.optimum import (
    DEFAULT_TIME_LIMIT_S,
    RegionDecision,
    plan_part,
    relaxed_bill,
)
from planner_models.contracts.plan.plan import Loads, bill, read_loads
from planner_models.contracts.problem.problem import PEAK, PERCENTILE, Month

CENT: Final = 0.005  # smaller amounts of money are shown as 0.00
MORE_CAPACITY: Final = 1.1
LOWER_PRICE: Final = 0.9
LOWER_VOLUME: Final = 0.8  # of the volumes from which other prices apply
LEAST_SAVING: Final = 1e-4  # of the bill: smaller ones are the accuracy of the bounds
MOST_ROWS: Final = 12  # of the table
CLOSE: Final = 0.1  # of the largest saving: the distance of the bill from its bound that is not mentioned
NOTE: Final = (
    "each term is changed by itself; saves at most: the bill less a bound on bills under the changed term; "
    "bill saves: what the bill falls by where the region is planned again, which is done for the terms for "
    "which the bound falls most (parameter `again` says for how many)"
)


class Saving(NamedTuple):
    """Saving by a changed term.

    contract  name of the contract
    term      the changed term, in words
    changed   the problem then
    area      number of the part of the problem that it changes
    estimate  fall of the bound on the bill, by which terms are ordered
    at_most   the bill less the bound under the changed term: no plan saves more
    """

    contract: str
    term: str
    changed: Month
    area: int
    estimate: float
    at_most: float


def explain(
    problem: Month,
    decided: Decided,
    *,
    contracts: Annotated[
        int, Field(ge=0, description="contracts with the largest bills whose terms are changed")
    ] = 8,
    again: Annotated[
        int, Field(ge=0, description="changed terms with the largest savings that are planned for again")
    ] = 3,
    options: Options = Options(),
) -> Explanation:
    """Explain the bill of a month: each contract's share, unused commitments, and terms to renegotiate.

    Terms are changed one at a time: no commitment, a tenth more capacity, a tenth off the price, price steps
    from a fifth less traffic, no limits on shares, and the 95th percentile in place of the peak. No plan
    saves more than the bill less the bound under the changed term. For terms under which the bound falls
    most, the region is also planned again, and the bills are compared.
    Regions with a limit of switching, which is no term of a contract, are planned again without it.
    """
    plan: Loads = decided.decision.plan  # type: ignore[assignment]
    bills = bill(problem, read_loads(problem, plan))
    sentences = [
        f"The month costs {float(bills['amount'].sum()):,.2f} under {sizes({'contracts': len(bills)})}.",
        *_say_difference(problem, bills, decided),
        *_say_unused(bills),
    ]
    sections = [
        Section(
            title="bills",
            frame=bills.drop(columns="computed")
            .sort_values("amount", ascending=False, kind="stable")
            .reset_index(drop=True),
            units={"volume_mbps": "Mbit/s", "billed_mbps": "Mbit/s", "free_windows": "windows"},
            note="unused: the part of the amount that is for committed traffic that was not sent",
        )
    ]
    if again:
        sentences += _say_limits(problem, bills, options)
    savings = _find_savings(problem, bills, contracts, options)
    if savings is not None and contracts:
        frame = _tabulate_savings(problem, savings, bills, again, options)
        if len(frame):
            sentences.append(_say_first(frame, float(bills["amount"].sum())))
            sentences += _say_accuracy(frame, decided)
            sections.append(Section(title="what to renegotiate", frame=frame, note=NOTE))
        else:
            sentences.append("No single changed term of these contracts lowers the bill.")
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _say_difference(problem: Month, bills: pd.DataFrame, decided: Decided) -> Iterator[str]:
    """Yield the bill of the plan to compare to, as text, with the difference of the explained plan's bill."""
    if decided.baseline is None:
        return
    total = float(bills["amount"].sum())
    before = float(bill(problem, read_loads(problem, decided.baseline))["amount"].sum())
    verb = "saves" if before >= total else "costs more by"
    share = f" ({percent(abs(before - total) / before)})" if before > 0 else ""
    difference = f"the plan {verb} {abs(before - total):,.2f}{share}"
    yield (
        f"{decided.baseline_name[0].upper()}{decided.baseline_name[1:]} costs {before:,.2f}: "
        f"{difference if abs(before - total) >= CENT else 'the same'}."
    )


def _say_unused(bills: pd.DataFrame) -> Iterator[str]:
    """Yield the cost of committed traffic that is not sent, as text; nothing where there is none."""
    unused = float(bills["unused"].sum())
    if unused > 0:
        worst = bills.iloc[int(bills["unused"].to_numpy(float).argmax())]
        yield (
            f"{unused:,.2f} pay for committed traffic that is not sent, most under the contract of "
            f"{worst['contract']}: {worst['unused']:,.2f}."
        )


def _tabulate_savings(
    problem: Month, savings: list[Saving], bills: pd.DataFrame, again: int, options: Options
) -> pd.DataFrame:
    """Return the savings by changed terms, the largest first; of the first `again`, with the new bill."""
    bill_saves, replanned = _plan_again(problem, savings[:again], bills, options)
    savings = [*replanned, *savings[again:]]
    frame = pd.DataFrame(
        {
            "contract": [saving.contract for saving in savings],
            "changed_term": [saving.term for saving in savings],
            "saves_at_most": [round(saving.at_most, 2) for saving in savings],
            "bill_saves": [*bill_saves, *[np.nan] * (len(savings) - len(bill_saves))],
        }
    ).sort_values("bill_saves", ascending=False, kind="stable", na_position="last")
    return frame.reset_index(drop=True).head(MOST_ROWS)


def _say_first(frame: pd.DataFrame, total: float) -> str:
    """Return the terms to renegotiate first, as text."""
    best = frame.iloc[0]
    start = f"Renegotiate first: {best['changed_term']} for {best['contract']}"
    if np.isnan(best["bill_saves"]):
        return f"{start} saves at most {best['saves_at_most']:,.2f}; planning again tells how much."
    if best["bill_saves"] <= 0:
        term = f"{best['changed_term']} for {best['contract']}"
        return (
            f"No new plan under changed terms costs less; {term} saves at most {best['saves_at_most']:,.2f}."
        )
    share = best["bill_saves"] / max(total, 1e-9)
    return f"{start} saves {best['bill_saves']:,.2f} ({percent(share)}) by a new plan."


def _say_accuracy(frame: pd.DataFrame, decided: Decided) -> list[str]:
    """Return the distance of the bill from the least one, as text; nothing if it is small."""
    rank_of = {rank.metric: rank for rank in decided.decision.proof.ranks}
    saved = float(frame["bill_saves"].max())
    if "bill" not in rank_of or np.isnan(saved):
        return []
    above = rank_of["bill"].objective - rank_of["bill"].bound
    if above <= CLOSE * saved:
        return []
    sentence = (
        f"The bill may be up to {above:,.2f} above the least one, and bills under changed terms by about as "
        "much, so savings may differ by that from those of the least bills."
    )
    return [sentence]


def _find_savings(
    problem: Month, bills: pd.DataFrame, contracts: int, options: Options
) -> list[Saving] | None:
    """Return the savings by changed terms of the contracts with the largest bills, in descending order.

    None where the bound on the bill is unknown.
    """
    bounds = [relaxed_bill(problem, area, options) for area in problem.parts]
    if any(bound is None for bound in bounds):
        return None
    savings = []
    largest = bills["amount"].sort_values(ascending=False, kind="stable").index[:contracts]
    changes = [
        (problem.bills[number], term, changed, _part_of(problem, number))
        for number in map(int, largest)
        for term, changed in _changed_terms(problem, np.flatnonzero(problem.bill == number))
    ]
    for name, term, changed, area in changes:
        now, bound = bounds[area], relaxed_bill(changed, problem.parts[area], options)
        if now is None or bound is None or now - bound <= LEAST_SAVING * max(now, 1e-9):
            continue
        lowest = optimum.least_bill(changed, [problem.parts[area]], bound)
        at_most = max(_paid(problem, bills, area) - lowest, 0.0)
        savings.append(Saving(name, term, changed, area, now - bound, at_most))
    return sorted(savings, key=lambda saving: -saving.estimate)


def _plan_again(
    problem: Month, savings: list[Saving], bills: pd.DataFrame, options: Options
) -> tuple[list[float], list[Saving]]:
    """Return the saving of the bill with regions planned again, and the savings with tighter limits.

    The bill of today is that of the explained plan, or of a new plan if that is less.
    """
    limit_s = _time_limit_s(options) / max(2 * len(savings), 1)
    today: dict[int, float] = {}
    savings_found, limited = [], []
    for saving in savings:
        paid = _paid(problem, bills, saving.area)
        if saving.area not in today:
            new = _plan_part(problem, saving.area, options, limit_s).cost
            today[saving.area] = paid if new is None else min(paid, new)
        again = _plan_part(saving.changed, saving.area, options, limit_s)
        saved = np.nan if again.cost is None else round(today[saving.area] - again.cost, 2) + 0.0
        at_most = saving.at_most
        if again.bound is not None:
            lowest = optimum.least_bill(saving.changed, [problem.parts[saving.area]], again.bound)
            at_most = min(at_most, paid - lowest)
        savings_found.append(saved)
        limited.append(saving._replace(at_most=max(at_most, 0.0 if np.isnan(saved) else saved)))
    return savings_found, limited


def _say_limits(problem: Month, bills: pd.DataFrame, options: Options) -> list[str]:
    """Return the cost of each limit of switching, as text: the bill less that of a plan without the limit."""
    if problem.switching is None:
        return []
    free = replace(problem, switching=None)
    limited = [number for number, area in enumerate(problem.parts) if (problem.moved_share[area] < 1).any()]
    sentences = []
    for number in limited:
        paid = _paid(problem, bills, number)
        cost = _plan_part(free, number, options, _time_limit_s(options) / (2 * len(limited))).cost
        saved = 0.0 if cost is None else paid - cost
        if saved > LEAST_SAVING * paid:
            name = ", ".join(problem.regions[row] for row in problem.parts[number].tolist())
            sentences.append(
                f"The limit of switching in {name} costs {saved:,.2f}, {percent(saved / paid)} of its bill."
            )
    if limited and not sentences:
        sentences.append("No plan without the limits of switching was found that costs less.")
    return sentences


def _time_limit_s(options: Options) -> float:
    return DEFAULT_TIME_LIMIT_S if options.time_limit_s is None else options.time_limit_s


def _part_of(problem: Month, bill: int) -> int:
    """Return the number of the part that a bill belongs to."""
    region = problem.region[int(np.argmax(problem.bill == bill))]
    return next(number for number, area in enumerate(problem.parts) if region in area)


def _paid(problem: Month, bills: pd.DataFrame, area: int) -> float:
    """Return the bill of a part under the explained plan."""
    numbers = np.unique(problem.bill[np.isin(problem.region, problem.parts[area])])
    return float(bills["amount"].to_numpy(float)[numbers].sum())


def _plan_part(problem: Month, area: int, options: Options, limit_s: float) -> RegionDecision:
    """Return a new plan of a part."""
    return plan_part(problem, problem.parts[area], method="auto", options=options, time_limit_s=limit_s)


def _changed_terms(problem: Month, rows: Ints) -> Iterator[tuple[str, Month]]:
    """Yield each term that contracts of a bill, by rows, may have changed, and the problem then."""
    row = problem.contracts.iloc[rows[0]]

    def changed(**columns: Any) -> Month:
        frame = problem.contracts.copy()
        for name, value in columns.items():
            frame.loc[frame.index[rows], name] = value
        return replace(problem, contracts=frame)

    if row["commitment_mbps"] > 0:
        yield "no commitment", changed(commitment_mbps=0.0)
    yield "10% more capacity", changed(capacity_mbps=MORE_CAPACITY * problem.column("capacity_mbps")[rows])
    if (problem.column("min_share")[rows] > 0).any() or (problem.column("max_share")[rows] < 1).any():
        yield "no limits on its share", changed(min_share=0.0, max_share=1.0)
    if row["billing"] == PEAK:
        yield "billing by the 95th percentile", changed(billing=PERCENTILE)
    columns = [name for name in ("price_per_mbps", "burst_price_per_mbps") if name in row.index]
    cheaper = changed(**{name: LOWER_PRICE * float(row[name]) for name in columns})
    if problem.tiers is not None and len(problem.tiers):
        is_contract = np.isin(problem.find_contracts(problem.tiers), rows)
        prices = problem.tiers["price_per_mbps"] * np.where(is_contract, LOWER_PRICE, 1.0)
        cheaper = replace(cheaper, tiers=problem.tiers.assign(price_per_mbps=prices))
        if is_contract.any():
            volumes = problem.tiers["above_mbps"] * np.where(is_contract, LOWER_VOLUME, 1.0)
            sooner = replace(problem, tiers=problem.tiers.assign(above_mbps=volumes))
            yield "price steps from 20% less traffic", sooner
    yield "10% off its prices", cheaper
