"""Explanation of a month: what each contract costs, and what its terms cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.studies import Decided, Explanation, Section
from planner.options import Options
from planner_models.contracts.designs.optimum import relaxed_bill
from planner_models.contracts.plan.bill import bill
from planner_models.contracts.plan.plan import Loads, read_loads
from planner_models.contracts.problem.problem import PEAK, PERCENTILE, Month

MORE_CAPACITY: Final = 1.1
LOWER_PRICE: Final = 0.9
LEAST_SAVING: Final = 1e-4  # of the bill: smaller ones are the accuracy of the bounds
NOTE: Final = "each term is changed by itself; the saving is of the bound on the bill"


def explain(
    problem: Month,
    decided: Decided,
    *,
    contracts: Annotated[
        int, Field(ge=0, description="contracts with the largest bills whose terms are changed")
    ] = 8,
    options: Options = Options(),
) -> Explanation:
    """Explain the bill of a month: each contract's part, unused commitments, and what to renegotiate.

    Terms are changed one at a time: no commitment, a tenth more capacity, a tenth off the price, no limits on
    shares or switching, and the 95th percentile in place of the peak. The saving is the change of the bound.
    """
    plan: Loads = decided.decision.plan  # type: ignore[assignment]
    bills = bill(problem, read_loads(problem, plan))
    total, unused = float(bills["amount"].sum()), float(bills["unused"].sum())
    sentences = [f"The month costs {total:,.2f} under {len(bills)} contracts."]
    if decided.baseline is not None:
        before = float(bill(problem, read_loads(problem, decided.baseline))["amount"].sum())
        verb = "saves" if before >= total else "costs more by"
        share = f" ({abs(before - total) / before:.1%})" if before > 0 else ""
        sentences.append(
            f"{decided.baseline_name[0].upper()}{decided.baseline_name[1:]} costs {before:,.2f}: the plan "
            f"{verb} {abs(before - total):,.2f}{share}."
        )
    if unused > 0:
        worst = bills.iloc[int(bills["unused"].to_numpy(float).argmax())]
        sentences.append(
            f"{unused:,.2f} pay for committed traffic that is not sent, most under the contract of "
            f"{worst['contract']}: {worst['unused']:,.2f}."
        )
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
    now = relaxed_bill(problem, options)
    if now is not None and contracts:
        rows = []
        largest = bills["amount"].sort_values(ascending=False, kind="stable").index[:contracts]
        for contract in largest:
            for term, changed in _changed_terms(problem, int(contract)):
                bound = relaxed_bill(changed, options)
                if bound is not None and now - bound > LEAST_SAVING * max(now, 1e-9):
                    rows.append((problem.names[int(contract)], term, round(now - bound, 2)))
        rows += list(_switching_savings(problem, now, options))
        frame = pd.DataFrame(rows, columns=["contract", "changed_term", "saves"])
        frame = frame.sort_values("saves", ascending=False, kind="stable").reset_index(drop=True)
        if len(frame):
            best = frame.iloc[0]
            sentences.append(
                f"Renegotiate first: {best['changed_term']} for {best['contract']} saves about "
                f"{best['saves']:,.2f}."
            )
            sections.append(Section(title="what to renegotiate", frame=frame.head(12), note=NOTE))
        else:
            sentences.append("No single changed term of these contracts lowers the bill.")
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _switching_savings(problem: Month, now: float, options: Options) -> Iterator[tuple[str, str, float]]:
    """Yield what the bound on the bill falls by where a region's limit of switching is lifted."""
    if problem.switching is None:
        return
    for row in np.flatnonzero(problem.moved_share < 1).tolist():
        name = problem.regions[row]
        others = problem.switching[problem.switching["region"].astype(str) != name]
        bound = relaxed_bill(replace(problem, switching=others), options)
        if bound is not None and now - bound > LEAST_SAVING * max(now, 1e-9):
            yield f"all in {name}", "no limit of switching", round(now - bound, 2)


def _changed_terms(problem: Month, contract: int) -> Iterator[tuple[str, Month]]:
    """Yield each term that a contract may have changed, in words, and the problem then."""
    row = problem.contracts.iloc[contract]

    def changed(**columns: Any) -> Month:
        frame = problem.contracts.copy()
        for name, value in columns.items():
            frame.loc[frame.index[contract], name] = value
        return replace(problem, contracts=frame)

    if row["commitment_mbps"] > 0:
        yield "no commitment", changed(commitment_mbps=0.0)
    yield "10% more capacity", changed(capacity_mbps=MORE_CAPACITY * float(row["capacity_mbps"]))
    if row["min_share"] > 0 or row["max_share"] < 1:
        yield "no limits on its share", changed(min_share=0.0, max_share=1.0)
    if row["billing"] == PEAK:
        yield "billing by the 95th percentile", changed(billing=PERCENTILE)
    cheaper = changed(price_per_mbps=LOWER_PRICE * float(row["price_per_mbps"]))
    if problem.tiers is not None and len(problem.tiers):
        own = problem.find_contracts(problem.tiers) == contract
        prices = problem.tiers["price_per_mbps"] * np.where(own, LOWER_PRICE, 1.0)
        cheaper = replace(cheaper, tiers=problem.tiers.assign(price_per_mbps=prices))
    yield "10% off its prices", cheaper
