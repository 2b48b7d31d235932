"""Problem of system `topology`: blocks with ports, the demand between them, and the links of today."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.table import Table, label, number
from planner.contract.tables import (
    collect_tables,
    file_name,
    report_unknown_names,
    row_name,
    shorten_faults,
    validate_fields,
)
from planner.errors import InputError, did_you_mean
from planner.io.in_memory import take_tables
from planner_models.networks import table_names
from planner_models.networks.nodes import find_names

MOST_BLOCKS: Final = 256
MOST_PORTS: Final = 10_000
MOST_MBPS: Final = 1e12
LEAST_MBPS: Final = 1e-6
ENDS: Final = ("block", "other_block")
TARGETS: Final = ("source", "target")

BLOCKS: Final = Table(
    name="blocks",
    other_names=("pods", "aggregation blocks"),
    about="a block of the fabric, such as a pod, with ports to optical circuit switches",
    columns={
        "block": label("its name", other_names=("pod", "name", "aggregation block")),
        "ports": number(
            "ports for links to other blocks",
            other_names=("port count", "number of ports", "radix", "uplinks"),
            at_least=0,
            at_most=MOST_PORTS,
            whole=True,
            usual=(1, 10_000),
        ),
        "port_mbps": number(
            "rate of a port each way, Mbit/s; a link has that of the slower of its ends",
            more_than=0,
            at_most=MOST_MBPS,
            least=LEAST_MBPS,
            usual=(100, 1e7),
        ),
    },
    key=("block",),
)
DEMANDS: Final = Table(
    name="demands",
    other_names=table_names.DEMANDS,
    about="traffic from one block to another that the links must carry for the coming hours",
    columns={
        "source": label("block where it starts"),
        "target": label("block where it ends"),
        "rate_mbps": number("rate, Mbit/s", at_least=0, at_most=MOST_MBPS, least=LEAST_MBPS),
    },
    key=TARGETS,
)
LINKS: Final = Table(
    name="links",
    about="links between two blocks today; without the table there are none, and any may be made at once",
    columns={
        "block": label("block at one end"),
        "other_block": label("block at the other end"),
        "links": number("number of links", at_least=0, at_most=MOST_PORTS, whole=True),
    },
    may_be_empty=True,
)
FABRIC: Final = Table(
    name="fabric",
    about="limits on changes of the links of today, in one row",
    columns={
        "move_limit": number(
            "most links that may be made anew; blank: any number",
            at_least=0,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
        "step_limit": number(
            "most links that are taken out of service at once, and most that are made at once; blank: any "
            "number",
            at_least=1,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
    },
    may_be_empty=True,
)
TABLES: Final = (BLOCKS, DEMANDS, LINKS, FABRIC)
OPTIONAL_TABLES: Final = ("links", "fabric")


@dataclass(frozen=True, kw_only=True, eq=False)
class Fabric:
    """Blocks with ports that may be linked in any way, and the demand between them.

    blocks   one row a block: block, ports, port_mbps
    demands  one row a pair of blocks: source, target, rate_mbps
    links    one row a pair of blocks: block, other_block, links; the links of today, None for none
    fabric   one row: move_limit?, step_limit?; None: no limits

    A link is for both directions and has the rate of the slower of its ports each way. Below, n is the number
    of blocks; arrays refer to them by row.

    raises   InputError with every fault
    """

    blocks: pd.DataFrame
    demands: pd.DataFrame
    links: pd.DataFrame | None = None
    fabric: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        faults = validate_fields(self, TABLES)
        if not faults:
            faults += self._bad_rows()
        if not faults:
            faults += self._bad_links()
        if faults:
            raise InputError(*faults)

    @classmethod
    def from_tables(cls, tables: Mapping[str, pd.DataFrame]) -> Fabric:
        """Return the problem in its tables."""
        return cls(**take_tables(TABLES, tables, optional=OPTIONAL_TABLES))

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables that make this problem again."""
        return collect_tables(self, TABLES)

    def size(self) -> dict[str, int]:
        """Return the number of blocks, of their ports, and of pairs with demand."""
        return {
            "blocks": len(self.blocks),
            "ports": int(self.ports.sum()),
            "demands": int((self.demand_mbps > 0).sum()),
        }

    # --- other problems -------------------------------------------------------------------

    def with_limits(self, **limits: float) -> Fabric:
        """Return the problem with other values in the table `fabric`."""
        frame = self.fabric if self.fabric is not None and len(self.fabric) else pd.DataFrame(index=[0])
        return replace(self, fabric=frame.assign(**limits))

    def with_present(self, links: Ints) -> Fabric:
        """Return the problem with (n, n) links of today."""
        return replace(self, links=tabulate_links(self, links))

    def require_blocks(self, parameter: str, names: Iterable[str]) -> Ints:
        """Return the rows of blocks; raise InputError for every name that is none."""
        requested = list(names)
        faults = [
            f"{parameter}: '{name}' is no block" + did_you_mean(name, self.block_index)
            for name in requested
            if name not in self.block_index
        ]
        if faults:
            raise InputError(*faults)
        return self.block_index.get_indexer(pd.Index(requested, dtype=object)).astype(np.int64)

    # --- as arrays ------------------------------------------------------------------------

    @cached_property
    def block_index(self) -> pd.Index:
        """Index of the blocks' names, which maps a name to its row."""
        index: pd.Index = pd.Index(self.blocks["block"])
        return index

    @cached_property
    def names(self) -> list[str]:
        """(n,) names of the blocks."""
        return [str(name) for name in self.blocks["block"]]

    def find_blocks(self, frame: pd.DataFrame, columns: tuple[str, str]) -> tuple[Ints, Ints]:
        """Return the rows of blocks that two columns of a table name; -1 for none."""
        first, second = (find_names(self.block_index, frame[column]) for column in columns)
        return first, second

    @cached_property
    def ports(self) -> Ints:
        """(n,) ports of each block."""
        return self.blocks["ports"].to_numpy(float).astype(np.int64)

    @cached_property
    def link_mbps(self) -> Floats:
        """(n, n) rate of a link between two blocks each way, Mbit/s; 0 from a block to itself."""
        rate = self.blocks["port_mbps"].to_numpy(float)
        slower: Floats = np.minimum.outer(rate, rate)
        np.fill_diagonal(slower, 0.0)
        return slower

    @cached_property
    def demand_mbps(self) -> Floats:
        """(n, n) demand from row to column, Mbit/s."""
        matrix = np.zeros((len(self.blocks), len(self.blocks)))
        matrix[self.find_blocks(self.demands, TARGETS)] = self.demands["rate_mbps"].to_numpy(float)
        return matrix

    @cached_property
    def servable_mbps(self) -> Floats:
        """(n, n) demand that some plan has a path for, Mbit/s.

        A block without ports has none. Where no link may be made, a path takes at most two links of today.
        """
        has_ports = self.ports > 0
        has_path = has_ports[:, None] & has_ports[None, :]
        if self.present is not None and self.move_limit == 0:
            linked = (self.present > 0).astype(np.int64)
            has_path &= linked + linked @ linked > 0
        return np.where(has_path, self.demand_mbps, 0.0)

    @cached_property
    def servable(self) -> Fabric | None:
        """The same problem with the demand alone that some plan has a path for; None where there is none."""
        if (self.servable_mbps == self.demand_mbps).all():
            return self
        if not self.servable_mbps.any():
            return None
        is_servable = self.servable_mbps[self.find_blocks(self.demands, TARGETS)] > 0
        return replace(self, demands=self.demands[is_servable].reset_index(drop=True))

    @cached_property
    def present(self) -> Ints | None:
        """(n, n) links of today between each two blocks; None where they may be made from nothing."""
        if self.links is None:
            return None
        count: Ints = np.zeros((len(self.blocks), len(self.blocks)), dtype=np.int64)
        first, other = self.find_blocks(self.links, ENDS)
        links = self.links["links"].to_numpy(float).astype(np.int64)
        np.add.at(count, (first, other), links)
        np.add.at(count, (other, first), links)
        return count

    def _limit(self, column: str) -> int | None:
        frame = self.fabric
        if self.links is None or frame is None or column not in frame or not len(frame):
            return None
        value = float(frame[column].iloc[0])
        return None if np.isnan(value) else int(value)

    @cached_property
    def move_limit(self) -> int | None:
        """Most links that may be made anew; None for any number, also where there are no links today."""
        return self._limit("move_limit")

    @cached_property
    def step_limit(self) -> int | None:
        """Most links that a step may take out of service, and make; None for any number."""
        return self._limit("step_limit")

    # --- validation -----------------------------------------------------------------------

    def _bad_rows(self) -> Iterator[str]:
        """Yield faults of names, of pairs of one block, and of demands that are all 0."""
        if len(self.blocks) > MOST_BLOCKS:
            where = file_name(self.blocks, "blocks")
            yield f"{where}: has {len(self.blocks):,} rows, must have up to {MOST_BLOCKS}"
        if self.fabric is not None and len(self.fabric) > 1:
            yield f"{file_name(self.fabric, 'fabric')}: has {len(self.fabric)} rows, must have one"
        for frame, table, ends in ((self.demands, "demands", TARGETS), (self.links, "links", ENDS)):
            if frame is None:
                continue
            for column in ends:
                yield from report_unknown_names(
                    frame, table, column, self.block_index, "no block of the fabric"
                )
            same = np.flatnonzero(frame[ends[0]].to_numpy() == frame[ends[1]].to_numpy())
            faults = [
                f"{row_name(frame, table, row)}: {ends[0]} and {ends[1]} are both "
                f"'{frame[ends[0]].iloc[row]}', must differ"
                for row in same.tolist()
            ]
            yield from shorten_faults(faults, file_name(frame, table), "from a block to itself")
        if not (self.demands["rate_mbps"].to_numpy(float) > 0).any():
            yield f"{file_name(self.demands, 'demands')}: every rate_mbps is 0, one must be greater"

    def _bad_links(self) -> Iterator[str]:
        """Yield a fault for each pair of blocks that has two rows, and each block with too many links."""
        frame, present = self.links, self.present
        if frame is None or present is None:
            return
        first, other = self.find_blocks(frame, ENDS)
        pair = pd.Series(np.minimum(first, other) * len(self.blocks) + np.maximum(first, other))
        faults = [
            f"{row_name(frame, 'links', row)}: blocks '{frame['block'].iloc[row]}' and "
            f"'{frame['other_block'].iloc[row]}' have a row already, must have one"
            for row in np.flatnonzero(pair.duplicated()).tolist()
        ]
        yield from shorten_faults(faults, file_name(frame, "links"), "of the same two blocks")
        used = present.sum(axis=1)
        yield from (
            f"{file_name(frame, 'links')}: block '{self.names[row]}' has {used[row]:,} links, must have at "
            f"most its {self.ports[row]:,} ports"
            for row in np.flatnonzero(used > self.ports).tolist()[:5]
        )


def tabulate_links(problem: Fabric, links: Ints) -> pd.DataFrame:
    """Return the table of (n, n) links, one row for each two blocks that have some."""
    names = np.array(problem.names, dtype=object)
    first, other = np.nonzero(np.triu(links))
    return pd.DataFrame(
        {"block": names[first], "other_block": names[other], "links": links[first, other].astype(float)}
    )


def pairs_of(problem: Fabric) -> tuple[Ints, Ints]:
    """Return the (P,) blocks at both ends of every two blocks, the first before the second."""
    first, other = np.triu_indices(len(problem.blocks), 1)
    return first.astype(np.int64), other.astype(np.int64)
