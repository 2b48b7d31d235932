"""Records and cells that queries read: of their cube in an interval, or of stored data where ad hoc."""

from __future__ import annotations

from typing import NamedTuple

from planner.arrays import Bools, Floats, Ints
from planner.compiled import kernel, run_small_in_python


class QueryVolume(NamedTuple):
    """Arrays from which compiled code reads the volume of each interval, site and query.

    records, cells                (K, S, C) of each cube
    cube_of                       (Q,) cube of each query
    ad_hoc_of                     (Q,) place among the ad hoc queries; -1 for others
    stored_records, stored_cells  (S, A) that each ad hoc query reads
    is_asked                      (K, Q) whether a query has an answer
    """

    records: Floats
    cells: Floats
    cube_of: Ints
    ad_hoc_of: Ints
    stored_records: Floats
    stored_cells: Floats
    is_asked: Bools


@run_small_in_python(max_elements=1_000)
@kernel
def read_volume(volume: QueryVolume, k: int, site: int, query: int) -> tuple[float, float]:
    """Return the records and the cells that a query reads at a site in interval k."""
    column = volume.ad_hoc_of[query]
    if column < 0:
        cube = volume.cube_of[query]
        return volume.records[k, site, cube], volume.cells[k, site, cube]
    if not volume.is_asked[k, query]:
        return 0.0, 0.0
    return volume.stored_records[site, column], volume.stored_cells[site, column]
