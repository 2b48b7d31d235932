"""Series of demand matrices over one network, read step by step."""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.notes import add_note
from planner.contract.periods import describe_labels, natural_order
from planner.contract.table import WINDOW, Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError
from planner.io.arrow_files import read_parquet_parts
from planner.io.raw_table import require_header
from planner.io.table_files import find_tables, read_tables
from planner.io.text_files import require_file, require_text
from planner_models.networks.classes import CLASSES
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.readers import sndlib
from planner_models.traffic.problem.readers.sndlib import note_demands
from planner_models.traffic.problem.readers.table_building import RateUnit
from planner_models.traffic.problem.schema import LINKS, NODES

ROWS_PER_READ: Final = 1 << 16  # read at once
MAX_PERCENTILE_ENTRIES: Final = 200_000_000  # rates of all steps together

Network = Traffic | Mapping[str, pd.DataFrame]

STEPS: Final = Table(
    name="demands",
    about="traffic from one node to another in one step",
    columns={
        "step": label(
            "name of the step; rows of a step are consecutive",
            other_names=("timestamp", "date", "datetime", "date time", "window", "interval", "period"),
        ),
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "rate_mbps": number("offered rate, Mbit/s", at_least=0),
        "class": label("its traffic class", optional=True),
    },
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """A network and its demand matrices; iterating yields each step's label and problem.

    All problems have the same demands, so that plans can be compared from step to step: a demand that
    a step does not list has rate 0 in it. One step is in memory at a time.

    busiest  the network with the largest rate of each demand in any step
    """

    busiest: Traffic
    _step_count: int
    _frames: Callable[[], Iterator[pd.DataFrame]]

    def __len__(self) -> int:
        return self._step_count

    def __iter__(self) -> Iterator[tuple[str, Traffic]]:
        for step, demand, rate in self._steps():
            rates = np.zeros(len(self.busiest.demands))
            rates[demand] = rate
            yield step, self.busiest.with_rates(rates)

    def _steps(self) -> Iterator[tuple[str, Ints, Floats]]:
        """Yield label, demands and rates of each step."""
        seen: set[str] = set()
        step: str | None = None
        parts: list[tuple[Ints, Floats]] = []
        for frame in self._frames():
            demand = self.busiest.find_demands(frame)
            rate = frame["rate_mbps"].to_numpy(float)
            steps = frame["step"].to_numpy()
            starts = np.r_[0, np.flatnonzero(steps[1:] != steps[:-1]) + 1, len(steps)]
            for low, high in itertools.pairwise(starts):
                if steps[low] != step:
                    if step is not None:
                        yield self._join_parts(step, parts, frame)
                        seen.add(step)
                    step, parts = str(steps[low]), []
                    if step in seen:
                        raise InputError(
                            f"{_row_name(frame, int(low))}: step '{step}' comes again, "
                            "its rows must be consecutive"
                        )
                parts.append((demand[low:high], rate[low:high]))
        if step is not None:
            yield self._join_parts(step, parts, None)

    def _join_parts(
        self, step: str, parts: list[tuple[Ints, Floats]], frame: pd.DataFrame | None
    ) -> tuple[str, Ints, Floats]:
        demand, rate = (np.concatenate(column) for column in zip(*parts, strict=True))
        twice = np.flatnonzero(np.bincount(demand, minlength=1) > 1)
        if len(twice):
            where = f"{frame.attrs['where']}: " if frame is not None else ""
            raise InputError(
                f"{where}step '{step}' has {self.busiest.demand_labels[twice[0]]} more than once"
            )
        return step, demand, rate


def read(
    path: Path,
    *,
    network: Network | None = None,
    unit: RateUnit = "mbps",
    link_direction: sndlib.GivenLinkDirection = None,
    demand_direction: sndlib.GivenDemandDirection = None,
) -> Series:
    """Read the series in a table, or in a folder of SNDlib files.

    path     CSV or Parquet with the columns step (or time), source, target, rate_mbps and class?, rows of a
             step consecutive; or a folder with one file for each step, in the order of their names
    network  of the demands: a problem, or its tables links and nodes; default for a folder: the
             network of its first file
    unit     of rates in SNDlib files that declare none
    link_direction, demand_direction  of SNDlib files, as in `sndlib.read`

    The file is read twice: first for the largest rate of each demand, which are checked against the
    network, then step by step as the series is used.

    raises   InputError for tables without a network, and for every fault of the file; faults within
             a step are raised when the step is read
    """
    path = Path(path)
    if path.is_dir():
        frames, network = _read_folder(path, network, unit, link_direction, demand_direction)
    else:
        require_file(path)
        if network is None:
            raise InputError(f"{path.name}: holds demands only; a table of them needs a network")
        frames = _read_table_parts(path)
    largest_part: pd.DataFrame | None = None
    steps: list[str] = []
    rows = 0
    for frame in frames():
        step = frame["step"].to_numpy()
        names = step[:1].tolist() + step[1:][step[1:] != step[:-1]].tolist()
        steps += names[1:] if names[:1] == steps[-1:] else names
        rows += len(step)
        key = ["source", "target", *(["class"] if "class" in frame else [])]
        groups = frame.reset_index(names="row").groupby(key, sort=False, as_index=False)
        largest = groups.agg({"rate_mbps": "max", "row": "first"})
        if largest_part is not None:
            both = pd.concat([largest_part, largest], ignore_index=True).groupby(
                key, sort=False, as_index=False
            )
            largest = both.agg({"rate_mbps": "max", "row": "first"})
        largest_part, name = largest, frame.attrs
    if largest_part is None:
        raise InputError(f"{path.name}: holds no steps")
    demands = largest_part.set_index("row").rename_axis(None)
    demands.attrs |= name
    tables = network.to_tables() if isinstance(network, Traffic) else network
    busiest = Traffic.from_tables({**tables, "demands": demands})
    _note_gaps(path.name, steps, rows, len(busiest.demands))
    return Series(busiest=busiest, _step_count=len(steps), _frames=frames)


def over_windows(tables: Mapping[str, pd.DataFrame]) -> Series:
    """Return the series of a network with a column of windows in its table `demands`.

    Columns of a demand other than its rate are those of its first row.

    raises  InputError where tables do not fit together
    """
    demands = tables["demands"]
    in_order = demands.sort_values(WINDOW, kind="stable")
    key = ["source", "target", *(["class"] if "class" in demands else [])]
    first = demands.drop_duplicates(key)
    largest = demands.groupby(key, sort=False, dropna=False)["rate_mbps"].max()
    busiest_demands = first.drop(columns=WINDOW).assign(
        rate_mbps=largest.loc[list(first[key].itertuples(index=False, name=None))].to_numpy()
    )
    busiest_demands.attrs |= demands.attrs
    busiest = Traffic.from_tables({**tables, "demands": busiest_demands})
    steps = in_order[WINDOW].map("{:.15g}".format).rename("step")
    frame = pd.concat([steps, in_order[[*key, "rate_mbps"]]], axis=1)
    frame.attrs |= demands.attrs
    count = int(demands[WINDOW].nunique())
    _note_zeros(str(demands.attrs.get("where", "demands")), count, len(demands), len(busiest.demands))
    return Series(busiest=busiest, _step_count=count, _frames=lambda: iter([frame]))


def _note_gaps(where: str, steps: Sequence[str], rows: int, demands: int) -> None:
    """Add notes on steps that are missing, which are left out, and on rates that are 0 for want of a row."""
    for doubt in describe_labels(steps, where):
        add_note(doubt)
    _note_zeros(where, len(steps), rows, demands)


def _note_zeros(where: str, steps: int, rows: int, demands: int) -> None:
    """Add a note on rates that are 0 as a step has no row for the demand."""
    absent = steps * demands - rows
    if absent > 0:
        add_note(
            f"assumed: {where}: a demand has rate 0 in a step without a row for it: {absent:,} of "
            f"{steps * demands:,} rates"
        )


def read_matrices(
    *,
    path: Annotated[
        Path,
        Field(description="a table of step, source, target, rate_mbps, class?, or a folder of SNDlib files"),
    ],
    network: Annotated[
        Path | None,
        Field(description="folder with links (and nodes, classes); default: that of the first SNDlib file"),
    ] = None,
    link_direction: sndlib.GivenLinkDirection = None,
    demand_direction: sndlib.GivenDemandDirection = None,
    unit: Annotated[RateUnit, Field(description="of rates in SNDlib files that declare none")] = "mbps",
) -> Series:
    """Read demand matrices over time, step by step."""
    tables, optional = (NODES, LINKS, CLASSES), ("nodes", "classes")
    network_tables = None if network is None else read_tables(tables, find_tables(tables, network, optional))
    return read(
        path,
        network=network_tables,
        unit=unit,
        link_direction=link_direction,
        demand_direction=demand_direction,
    )


def read_percentile(
    *,
    path: Annotated[
        Path,
        Field(description="a table of step, source, target, rate_mbps, class?, or a folder of SNDlib files"),
    ],
    network: Annotated[
        Path | None,
        Field(description="folder with links (and nodes, classes); default: that of the first SNDlib file"),
    ] = None,
    link_direction: sndlib.GivenLinkDirection = None,
    demand_direction: sndlib.GivenDemandDirection = None,
    unit: Annotated[RateUnit, Field(description="of rates in SNDlib files that declare none")] = "mbps",
    percentile: Annotated[
        float,
        Field(
            gt=0, le=100, description="share of the steps in % in which a demand is at most at its rate here"
        ),
    ] = 95.0,
) -> Traffic:
    """Read demand matrices over time as one problem: each demand at a percentile of its rates.

    The percentile is the smallest rate of a demand that so many of the steps do not exceed; a step that does
    not list the demand counts as 0.

    raises  InputError for a file that needs too much memory
    """
    series = read_matrices(
        path=path,
        network=network,
        unit=unit,
        link_direction=link_direction,
        demand_direction=demand_direction,
    )
    busiest = series.busiest
    if len(series) * len(busiest.demands) > MAX_PERCENTILE_ENTRIES:
        raise InputError(
            f"{path.name}: {len(series):,} steps of {len(busiest.demands):,} demands need too much memory"
        )
    rates = np.array([problem.rate_mbps for _, problem in series])
    return busiest.with_rates(np.percentile(rates, percentile, axis=0, method="inverted_cdf"))


def _row_name(frame: pd.DataFrame, index: int) -> str:
    return f"{frame.attrs['where']} row {frame.attrs['first_row'] + int(frame.index[index])}"


def _read_table_parts(path: Path) -> Callable[[], Iterator[pd.DataFrame]]:
    """Return a function that reads the table in validated parts, with rows numbered across parts."""
    is_parquet = path.suffix == ".parquet"
    first_row = 1 if is_parquet else 2
    parts = partial(read_parquet_parts, path, ROWS_PER_READ) if is_parquet else partial(_read_csv, path)

    def frames() -> Iterator[pd.DataFrame]:
        begin = 0
        for table in parts():
            if "time" in table and "step" not in table:
                table = table.rename(columns={"time": "step"})
            frame = table.set_axis(pd.RangeIndex(begin, begin + len(table)))
            begin += len(table)
            frame = validate(STEPS, frame, where=path.name, first_row=first_row)
            frame.attrs |= {"where": path.name, "first_row": first_row}
            yield frame

    return frames


def _read_csv(path: Path) -> Iterator[pd.DataFrame]:
    require_text(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            require_header(path.name, next(csv.reader(file), []))
        with (
            warnings.catch_warnings(),
            pd.read_csv(
                path,
                dtype={"step": str, "time": str, "source": str, "target": str, "class": str},
                keep_default_na=False,
                na_values=[""],
                encoding="utf-8-sig",
                chunksize=ROWS_PER_READ,
                index_col=False,
            ) as parts,
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield from parts
    except (csv.Error, pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning) as error:
        raise InputError(f"{path.name}: is no CSV table ({' '.join(str(error).split())})") from None


def _read_folder(
    path: Path,
    network: Network | None,
    unit: RateUnit,
    link_direction: sndlib.GivenLinkDirection,
    demand_direction: sndlib.GivenDemandDirection,
) -> tuple[Callable[[], Iterator[pd.DataFrame]], Network]:
    files = sorted(
        (file for file in path.iterdir() if file.suffix.lower() in (".xml", ".txt")),
        key=lambda file: natural_order(file.name),
    )
    if not files:
        raise InputError(f"{path}: holds no SNDlib files (.xml or .txt)")
    if network is None:
        tables = sndlib.read(
            files[0], unit=unit, link_direction=link_direction, demand_direction=demand_direction
        )
        network = Traffic.from_tables(tables)
    else:
        note_demands(sndlib.parse(files[0], unit), demand_direction=demand_direction)

    def frames() -> Iterator[pd.DataFrame]:
        for file in files:
            demands = sndlib.read_demands(file, demand_direction=demand_direction or "directed", unit=unit)
            frame = validate(STEPS, demands.assign(step=file.stem), where=file.name)
            frame.attrs |= {"where": file.name, "first_row": 1}
            yield frame

    return frames, network
