"""Limits of the traffic that a CDN carries for the clients of a region: in Mbit/s, or as a share of it.

Shares are of the traffic that the region's clients ask for, whether they are served or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints
from planner.contract.tables import file_name, row_name, shorten_faults
from planner_models import geonames
from planner_models.brokering.problem import geography

COLUMNS = ("min_mbps", "max_mbps", "min_share", "max_share")


@dataclass(frozen=True, kw_only=True, eq=False)
class VolumeLimits:
    """K limits, one for each row of the table.

    cdn         (K,) index of the CDN
    in_region   (K, L) whether a location is in the region
    demand_mbps (K,) traffic that the region's clients ask for
    floor_mbps  (K,) least traffic; 0 for none
    cap_mbps    (K,) most traffic; inf for any
    """

    cdn: Ints
    in_region: Bools
    demand_mbps: Floats
    floor_mbps: Floats
    cap_mbps: Floats

    @classmethod
    def of(
        cls,
        limits: pd.DataFrame | None,
        cdn_names: Sequence[str],
        countries: Sequence[str],
        demand_mbps: Floats,
    ) -> VolumeLimits:
        """Return the limits of a table; without one, none.

        demand_mbps  (L,) of the clients of each location
        """
        frame = pd.DataFrame(columns=["cdn", "region"]) if limits is None else limits
        in_region = np.array([contains(region, countries) for region in frame["region"]], dtype=bool)
        in_region = in_region.reshape(len(frame), len(countries))
        of_region: Floats = in_region @ demand_mbps
        least_mbps, most_mbps, least_share, most_share = (
            frame[name].to_numpy(float) if name in frame else np.full(len(frame), np.nan) for name in COLUMNS
        )
        return cls(
            cdn=pd.Index(cdn_names).get_indexer(pd.Index(frame["cdn"])).astype(np.int64),
            in_region=in_region,
            demand_mbps=of_region,
            floor_mbps=np.nan_to_num(np.fmax(least_mbps, least_share * of_region)),
            cap_mbps=np.nan_to_num(np.fmin(most_mbps, most_share * of_region), nan=np.inf),
        )

    def __len__(self) -> int:
        return len(self.cdn)


def contains(region: str, countries: Sequence[str]) -> Bools:
    """Return whether each country, by its code, is in a region: a country, a continent or the world."""
    continent_of = geonames.continent_by_country()
    names = []
    for code in countries:
        continent = continent_of[code]
        own = geography.COUNTRIES_BESIDE_CONTINENTS.get(code, code)
        names.append({geography.WORLD, continent, geography.CONTINENTS[continent], own})
    return np.array([region in of_country for of_country in names], dtype=bool)


def find_faults(limits: pd.DataFrame | None) -> Iterator[str]:
    """Yield a fault for each row without a limit, and for each with a floor above its cap."""
    if limits is None:
        return
    faults = []
    columns = {name: limits[name].to_numpy(float) for name in COLUMNS if name in limits}
    for row in range(len(limits)):
        values = {name: column[row] for name, column in columns.items() if not np.isnan(column[row])}
        if not values:
            faults.append(
                f"{row_name(limits, 'limits', row)}: has no limit; give one of {', '.join(COLUMNS)}"
            )
        for unit in ("mbps", "share"):
            floor, cap = values.get(f"min_{unit}"), values.get(f"max_{unit}")
            if floor is not None and cap is not None and floor > cap:
                where = row_name(limits, "limits", row)
                faults.append(f"{where}: min_{unit} is {floor:g}, must be at most max_{unit}, {cap:g}")
    yield from shorten_faults(faults, file_name(limits, "limits"), "with such limits")
