"""Drawings of racks in a ring, with their pairs as links: of the demand alone, or of its remainder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import Drawing, NetworkMap
from planner.formatting import amount
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.racks import Racks

Ints = NDArray[np.int64]
MOST_PAIRS: Final = 200  # links that a ring can show
MBIT: Final = 1e6  # bits
PAIR: Final = "rack pair"
RACK: Final = "rack"
FRAME_SHAPE: Final = 1.4  # width to height


def draw_demand(problem: Circuits) -> Sequence[Drawing]:
    """Draw the racks in a ring, linked by demand."""
    return (
        draw_ring(
            problem,
            problem.offered_bits,
            title="Demand between racks",
            load=offered_load(problem),
            note=lambda i, j: f"demand {amount(problem.offered_bits[i, j], 'bits')}",
        ),
    )


def offered_load(problem: Circuits) -> NDArray[np.float64] | None:
    """Return (n,) the demand of each rack in percent of its links' capacity in the week; None without one.

    The larger of what it sends and of what it receives counts.
    """
    if problem.window_us is None:
        return None
    rate = problem.switches * problem.racks["circuit_mbps"].to_numpy(float) + problem.packet_mbps
    busiest = np.maximum(problem.offered_bits.sum(axis=1), problem.offered_bits.sum(axis=0))
    load: NDArray[np.float64] = 100 * busiest / (rate * problem.window_us)
    return load


def _place_racks(
    names: NDArray[Any],
    sends: NDArray[np.float64],
    receives: NDArray[np.float64],
    load: NDArray[np.float64] | None,
    unit: str,
) -> pd.DataFrame:
    """Return racks as nodes in a ring, with their sent and received demand."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)  # clockwise, the first at the top
    words = [
        f"sends {amount(out, unit)}, receives {amount(into, unit)}"
        for out, into in zip(sends, receives, strict=True)
    ]
    if load is not None:
        words = [f"{text}: {share:.3g}% of its links" for text, share in zip(words, load, strict=True)]
    columns = {"x": FRAME_SHAPE * np.cos(angle), "y": np.sin(angle), "size": sends + receives}
    return pd.DataFrame({"node": names, **columns, "note": words})


def draw_ring(
    racks: Racks,
    wanted_bits: NDArray[np.float64],
    *,
    title: str,
    note: Callable[[int, int], str],
    elements: Callable[[Ints, Ints], Sequence[str]] | None = None,
    load: NDArray[np.float64] | None = None,
    left_bits: NDArray[np.float64] | None = None,
    unit: str = "bits",
) -> NetworkMap:
    """Return a map of the racks in a ring, with the pairs of the most demand as links.

    Racks that have failed are left out, with their links. What is left over is in percent of demand.

    wanted_bits  (n, n) demand; or (n, n + 1) with that to any rack last, which has no link
    note         (source, target) -> words for a pair of rows of `racks`
    elements     (sources, targets) -> names of the elements that links are; default: the pairs
    load         (n,) load of racks, %; None for unknown
    left_bits    (n, n) demand that is left over; None where there is no plan
    unit         of demand: "bits" or "Mbit/s"
    """
    size, width_unit = (MBIT, "Mbit") if unit == "bits" else (1.0, unit)
    n, names, works = len(racks.racks), racks.names.astype(str), ~racks.is_failed
    source, target, count = _largest_pairs(np.where(np.outer(works, works), wanted_bits[:, :n], 0.0))
    if count > MOST_PAIRS:
        title += f", the {MOST_PAIRS:,} pairs with the most demand of {count:,}"
    sends, receives = wanted_bits.sum(axis=1), wanted_bits[:, :n].sum(axis=0)
    nodes = _place_racks(names, sends, receives, load, unit)
    links = pd.DataFrame(
        {
            "tail": names[source],
            "head": names[target],
            "value": np.nan,
            "element": (elements or racks.name_ends)(source, target),
            "width": wanted_bits[source, target] / size,
            "note": [note(int(i), int(j)) for i, j in zip(source, target, strict=True)],
        }
    )
    if left_bits is not None:
        of_rack = left_bits.sum(axis=1) + left_bits.sum(axis=0)
        share = np.divide(of_rack, sends + receives, out=np.zeros(n), where=sends + receives > 0)
        nodes = nodes.assign(value=100 * share, lost=left_bits.sum(axis=1) / size)
        lost = left_bits[source, target] / size
        links = links.assign(lost=lost, value=100 * lost / links["width"])
    nodes = nodes[works].reset_index(drop=True)
    return NetworkMap(
        title=title,
        nodes=nodes,
        links=links,
        value="demand left over",
        unit="%",
        limit=100.0,
        width_unit=width_unit,
        lost_unit=width_unit,
        lost_twice=True,
        link_kind=PAIR,
        node_kind=RACK,
    )


def _largest_pairs(demand: NDArray[np.float64]) -> tuple[Ints, Ints, int]:
    """Return source and target of the pairs with the most demand, in their order, and the number of all."""
    source, target = np.nonzero(demand)
    count = len(source)
    if count > MOST_PAIRS:
        largest = np.sort(np.argsort(-demand[source, target], kind="stable")[:MOST_PAIRS])
        source, target = source[largest], target[largest]
    return source, target, count
