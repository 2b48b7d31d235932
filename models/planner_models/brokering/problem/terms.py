"""Terms of a problem: units of costs, and the broker's weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

import pandas as pd

from planner.contract.tables import file_name, validate
from planner.errors import InputError
from planner_models.brokering.problem.schema import TERMS, UNITS

PerformancePer = Literal["client", "bit", "location"]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Units of costs, and the weights of the broker's objective.

    currency            of costs and prices
    cost_per            unit of traffic that they are per: GB, TB, GiB, or Mbps-month
    performance_weight  wp in Fig. 3.10
    cost_weight         wc in Fig. 3.10, of the cost in currency per hour
    performance_per     "client": a client's score counts once, as printed; "bit": times its Mbit/s,
                        so that score and cost are weighted alike; "location": a client's score counts
                        once, and its cost by the mean bitrate of the clients of its location
    """

    currency: str = "USD"
    cost_per: str = "GB"
    performance_weight: float = 1.0
    cost_weight: float = 1.0
    performance_per: PerformancePer = "client"

    @property
    def units_per_mbps_hour(self) -> float:
        """Traffic of one Mbit/s in an hour, in the unit that costs are per."""
        return UNITS[self.cost_per]

    @classmethod
    def from_table(cls, frame: pd.DataFrame) -> Terms:
        """Return the terms in a table of one row; InputError for any other."""
        where, first_row = frame.attrs.get("where"), frame.attrs.get("first_row", 1)
        frame = validate(TERMS, frame, where=where, first_row=first_row)
        if len(frame) != 1:
            raise InputError(f"{file_name(frame, 'terms')}: has {len(frame)} rows, must have one")
        row = frame.iloc[0]
        return cls(
            currency=str(row["currency"]),
            cost_per=str(row["cost_per"]),
            performance_weight=float(row["performance_weight"]),
            cost_weight=float(row["cost_weight"]),
            performance_per=next(
                choice for choice in get_args(PerformancePer) if choice == row["performance_per"]
            ),
        )

    def to_table(self) -> pd.DataFrame:
        """Return the terms as a table of one row."""
        weights = {name: float(getattr(self, name)) for name in ("performance_weight", "cost_weight")}
        return pd.DataFrame([asdict(self) | weights])
