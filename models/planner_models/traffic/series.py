"""Demands over time: a network and one demand matrix after another, read step by step."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError
from planner.table_files import find_tables, read_tables
from planner.tables import Table, label, number, validate
from planner.text_files import require_file, require_text
from planner_models.traffic.problem import LINKS, NODES, Traffic
from planner_models.traffic.readers import sndlib
from planner_models.traffic.readers.frames import RateUnit
from planner_models.traffic.routing import demands_of

ROWS: Final = 1 << 16  # read at once

Network = Traffic | Mapping[str, pd.DataFrame]

STEPS: Final = Table(
    name="demands",
    about="traffic that wants to get from one node to another in one step",
    columns={
        "step": label("which step; rows of a step stand together"),
        "source": label("node where it starts"),
        "target": label("node where it ends"),
        "rate_mbps": number("wanted rate, Mbit/s", at_least=0),
    },
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """A network and its demand matrices; iterating yields each step's label and problem.

    All problems have the same pairs, so that plans can be compared from step to step: a pair that
    a step does not name wants nothing in it. One step is in memory at a time.

    busiest  the network with the largest rate that each pair ever wants
    """

    busiest: Traffic
    _steps_there: int
    _frames: Callable[[], Iterator[pd.DataFrame]]

    def __len__(self) -> int:
        return self._steps_there

    def __iter__(self) -> Iterator[tuple[str, Traffic]]:
        for step, demand, rate in self._steps():
            rates = np.zeros(len(self.busiest.demands))
            rates[demand] = rate
            yield step, self.busiest.with_rates(rates)

    def _steps(self) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.float64]]]:
        """Label, demands and rates of each step."""
        done: set[str] = set()
        step: str | None = None
        held: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        for frame in self._frames():
            demand = demands_of(self.busiest, frame)
            rate = frame["rate_mbps"].to_numpy(float)
            steps = frame["step"].to_numpy()
            starts = np.r_[0, np.flatnonzero(steps[1:] != steps[:-1]) + 1, len(steps)]
            for low, high in itertools.pairwise(starts):
                if steps[low] != step:
                    if step is not None:
                        yield self._whole(step, held, frame)
                        done.add(step)
                    step, held = str(steps[low]), []
                    if step in done:
                        raise InputError(
                            f"{_row(frame, int(low))}: step '{step}' comes again, "
                            "its rows must stand together"
                        )
                held.append((demand[low:high], rate[low:high]))
        if step is not None:
            yield self._whole(step, held, None)

    def _whole(
        self,
        step: str,
        held: list[tuple[NDArray[np.int64], NDArray[np.float64]]],
        frame: pd.DataFrame | None,
    ) -> tuple[str, NDArray[np.int64], NDArray[np.float64]]:
        demand, rate = (np.concatenate(part) for part in zip(*held, strict=True))
        twice = np.flatnonzero(np.bincount(demand, minlength=1) > 1)
        if len(twice):
            where = f"{frame.attrs['where']}: " if frame is not None else ""
            raise InputError(
                f"{where}step '{step}' has {self.busiest.demand_labels[twice[0]]} more than once"
            )
        return step, demand, rate


def read(path: Path, *, network: Network | None = None, unit: RateUnit = "mbps") -> Series:
    """The series in a table, or in a folder of SNDlib files.

    path     CSV or Parquet with the columns step (or time), source, target and rate_mbps, rows of a
             step together; or a folder whose files, in the order of their names, hold a step each
    network  where the demands belong: a problem, or its tables links and nodes; of a folder, by
             default, the network of its first file
    unit     of rates in SNDlib files that declare none

    The file is read twice: first for the pairs and the largest rate of each, which are checked
    against the network, then step by step as the series is used.

    raises   InputError for tables without a network, and for everything that is wrong with the
             file or does not fit the network; what only one step shows is raised when it comes
    """
    path = Path(path)
    if path.is_dir():
        frames, network = _folder(path, network, unit)
    else:
        require_file(path)
        if network is None:
            raise InputError(f"{path.name}: holds demands only; a table of them needs a network")
        frames = _table(path)
    most: pd.DataFrame | None = None
    steps, last = 0, None
    for frame in frames():
        step = frame["step"].to_numpy()
        steps += int((step[1:] != step[:-1]).sum()) + (step[0] != last if len(step) else 0)
        last = step[-1] if len(step) else last
        part = frame.reset_index(names="row").groupby(["source", "target"], sort=False, as_index=False)
        largest = part.agg({"rate_mbps": "max", "row": "first"})
        if most is not None:
            both = pd.concat([most, largest], ignore_index=True).groupby(
                ["source", "target"], sort=False, as_index=False
            )
            largest = both.agg({"rate_mbps": "max", "row": "first"})
        most, name = largest, frame.attrs
    if most is None:
        raise InputError(f"{path.name}: holds no steps")
    demands = most.set_index("row").rename_axis(None)
    demands.attrs |= name
    tables = network.to_tables() if isinstance(network, Traffic) else network
    busiest = Traffic.from_tables({**tables, "demands": demands})
    return Series(busiest=busiest, _steps_there=int(steps), _frames=frames)


def matrices(
    *,
    path: Annotated[
        Path,
        Field(description="a table of step, source, target, rate_mbps, or a folder of SNDlib files"),
    ],
    network: Annotated[
        Path | None,
        Field(description="folder with links (and nodes); default: the network of the first SNDlib file"),
    ] = None,
    unit: Annotated[RateUnit, Field(description="of rates in SNDlib files that declare none")] = "mbps",
) -> Series:
    """Demand matrices over time, step by step."""
    tables = (NODES, LINKS)
    given = None if network is None else read_tables(tables, find_tables(tables, network, ("nodes",)))
    return read(path, network=given, unit=unit)


def _row(frame: pd.DataFrame, place: int) -> str:
    return f"{frame.attrs['where']} row {frame.attrs['first_row'] + int(frame.index[place])}"


def _table(path: Path) -> Callable[[], Iterator[pd.DataFrame]]:
    """Reads the table in parts, each valid; rows are numbered through."""
    first_row = 1 if path.suffix == ".parquet" else 2

    def frames() -> Iterator[pd.DataFrame]:
        begin = 0
        for part in _parquet(path) if path.suffix == ".parquet" else _csv(path):
            if "time" in part and "step" not in part:
                part = part.rename(columns={"time": "step"})
            frame = part.set_axis(pd.RangeIndex(begin, begin + len(part)))
            begin += len(part)
            frame = validate(STEPS, frame, where=path.name, first_row=first_row)
            frame.attrs |= {"where": path.name, "first_row": first_row}
            yield frame

    return frames


def _csv(path: Path) -> Iterator[pd.DataFrame]:
    require_text(path)
    try:
        with (
            warnings.catch_warnings(),
            pd.read_csv(
                path,
                dtype={"step": str, "time": str, "source": str, "target": str},
                keep_default_na=False,
                na_values=[""],
                encoding="utf-8-sig",
                chunksize=ROWS,
                index_col=False,
            ) as parts,
        ):
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield from parts
    except (pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning) as error:
        raise InputError(f"{path.name}: is no CSV table ({' '.join(str(error).split())})") from None


def _parquet(path: Path) -> Iterator[pd.DataFrame]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS):
                yield batch.to_pandas()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path.name}: is no Parquet file ({' '.join(str(error).split())})") from None


def _folder(
    path: Path, network: Network | None, unit: RateUnit
) -> tuple[Callable[[], Iterator[pd.DataFrame]], Network]:
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in (".xml", ".txt"))
    if not files:
        raise InputError(f"{path}: holds no SNDlib files (.xml or .txt)")
    if network is None:
        network = Traffic.from_tables(sndlib.read(files[0], unit=unit))

    def frames() -> Iterator[pd.DataFrame]:
        for file in files:
            demands = sndlib.read(file, unit=unit)["demands"]
            frame = validate(STEPS, demands.assign(step=file.stem), where=file.name)
            frame.attrs |= {"where": file.name, "first_row": 1}
            yield frame

    return frames, network
