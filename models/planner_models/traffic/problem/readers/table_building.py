"""Builders of the tables nodes, links and demands from the contents of a file, and their way back into one.

Labels of nodes are unique in a network, and encoded for formats that separate words by spaces. Where a file
has no demands, gravity demands are drawn from a seed.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias
from urllib.parse import quote, unquote

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.extensions import ExtensionArray
from pydantic import Field
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from planner.arrays import Bools, Floats
from planner.errors import InputError
from planner.io.file_replacement import replace_file
from planner.io.table_files import read_table
from planner_models.traffic.problem.readers import Tables
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.schema import DEMANDS

RateUnit: TypeAlias = Literal["bps", "kbps", "mbps", "gbps"]

NO_POSITION: Final[dict[str, Floats | None]] = {"latitude": None, "longitude": None}
MBPS_EXPONENT: Final[dict[RateUnit, int]] = {"bps": -6, "kbps": -3, "mbps": 0, "gbps": 3}

log = logging.getLogger(__name__)
# characters that end a word, begin a comment or a group, or look like an escape
_UNSAFE = re.compile(r"[\s%()#\x00-\x1f\x7f\ufeff]")
Seed: TypeAlias = Annotated[int, Field(ge=0, description="seed of the gravity matrix")]
Pairs: TypeAlias = Annotated[
    int | None, Field(gt=0, le=10**9, description="number of demands, the largest; default: all")
]
MASS_SIGMA: Final = 1.0  # standard deviation of the logarithm of a node's mass, per unit of degree


def build_table(**columns: Sequence[str] | ExtensionArray | Floats | None) -> pd.DataFrame:
    """Build a table: columns of labels from lists, of numbers from arrays; None leaves a column out."""
    return pd.DataFrame(
        {
            name: values if isinstance(values, np.ndarray) else pd.Series(values, dtype="str")
            for name, values in columns.items()
            if values is not None
        }
    )


def to_floats(values: ArrayLike) -> Floats:
    """Return the values as an array of float64."""
    return np.asarray(values, dtype=np.float64)


def drop_all_zero(values: Floats) -> Floats | None:
    """Return `values`, or None where all are 0: formats without optional fields write 0 for unknown."""
    return values if values.any() else None


def drop_incomplete(values: Floats, column: str, faults: FileErrors) -> Floats | None:
    """Return `values`, or None, with a warning, where some are missing: a column is complete or absent."""
    missing = int(np.isnan(values).sum())
    if 0 < missing < len(values) and not faults.lines:
        log.warning("%s: %s is left out: %d of %d are missing", faults.file, column, missing, len(values))
    return None if missing else values


def position_columns(
    longitude: Floats, latitude: Floats, *, geographical: bool | None, faults: FileErrors
) -> dict[str, Floats | None]:
    """Return the columns `latitude` and `longitude`; None where incomplete, all 0, or not degrees.

    geographical  whether the file declares degrees; if it declares nothing (None), positions within
                  -180..180 and -90..90 are taken for degrees
    """
    east, north = (
        drop_incomplete(longitude, "longitude", faults),
        drop_incomplete(latitude, "latitude", faults),
    )
    if east is None or north is None or not (east.any() or north.any()):
        geographical = False
    elif geographical is None:
        geographical = bool((np.abs(east) <= 180).all() and (np.abs(north) <= 90).all())
    return {"latitude": north, "longitude": east} if geographical else NO_POSITION


def sum_duplicates(demands: pd.DataFrame) -> pd.DataFrame:
    """Return one demand for each pair of nodes, in the row of its first; files may list several."""
    ends = ["source", "target"]
    if not demands.duplicated(ends).any():
        return demands
    return demands.groupby(ends, sort=False)["rate_mbps"].sum().reset_index()


def named_tables(file: str, *, nodes: pd.DataFrame, links: pd.DataFrame, demands: pd.DataFrame) -> Tables:
    """Return the three tables, labelled so that faults found in them later name `file`."""
    tables = {"nodes": nodes, "links": links, "demands": demands}
    for name, table in tables.items():
        table.attrs.setdefault("where", f"{file}: {name}")
    return tables


def read_demands(path: Path | None, faults: FileErrors) -> pd.DataFrame | None:
    """Return the demands in a table of their own; None without one.

    raises  InputError with every fault of the graph and of the table
    """
    table, lines = None, faults.lines
    if path is not None:
        try:
            table = read_table(DEMANDS, Path(path))
        except InputError as error:
            lines += error.faults
    if lines:
        raise InputError(*lines)
    return table


def name_ends(
    nodes: pd.DataFrame, links: pd.DataFrame, tail: NDArray[np.intp], head: NDArray[np.intp]
) -> None:
    """Begin a table of links with the names of their ends, which are rows of `nodes`."""
    node = nodes["node"].array
    links.insert(0, "tail", pd.Series(node[tail], dtype="str"))
    links.insert(1, "head", pd.Series(node[head], dtype="str"))


def draw_demands(
    nodes: pd.DataFrame,
    tail: NDArray[np.intp],
    head: NDArray[np.intp],
    *,
    total_mbps: float | None,
    pairs: int | None,
    seed: int,
) -> pd.DataFrame:
    """Return demands drawn by gravity, of a total rate; of all pairs, or of the `pairs` largest."""
    source, target, share = gravity_demands(nodes=len(nodes), tail=tail, head=head, seed=seed)
    selected = keep_largest(share, pairs)
    source, target, share = source[selected], target[selected], share[selected]
    rate_mbps = share * (total_mbps or 0.0) / share.sum() if len(share) else share
    node = nodes["node"].array
    return build_table(source=node[source], target=node[target], rate_mbps=rate_mbps)


def make_unique(names: Sequence[str], ids: Sequence[str]) -> list[str]:
    """Return a label for each node: its name, if it is not blank and no other node has it.

    Otherwise the name followed by the id, or the id alone where there is no name.
    """
    count = Counter(names)
    used = {name for name in names if name.strip() and count[name] == 1}
    labels = []
    for name, id_ in zip(names, ids, strict=True):
        label = name
        if label not in used or count[name] > 1:
            label = f"{name} ({id_})" if name.strip() else id_
            while label in used:
                label = f"{label} ({id_})"
            used.add(label)
        labels.append(label)
    return labels


def encode(label: str) -> str:
    """Return `label` as one word: blanks, parentheses, `#` and `%` encoded as in a URL (`New%20York`)."""
    return _UNSAFE.sub(lambda match: quote(match[0], safe=""), label)


def decode(word: str) -> str:
    """Return the label that `encode` made into `word`; a word that is no such encoding stays as it is."""
    try:
        return unquote(word, errors="strict")
    except UnicodeDecodeError:
        return word


def gravity_demands(
    *, nodes: int, tail: NDArray[np.intp], head: NDArray[np.intp], seed: int, populated: Bools | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Draw demands in proportion to masses of their ends: (source, target, share), shares add up to 1.

    A node's mass is its degree times a lognormal factor, separate for sending and receiving. A pair
    has a demand where links lead from one node to the other.

    tail, head  (links,) the nodes of each directed link
    populated   (nodes,) nodes that send and receive; default: all
    """
    rng = np.random.default_rng(seed)
    degree = np.bincount(tail, minlength=nodes) + np.bincount(head, minlength=nodes)
    mass = np.where(True if populated is None else populated, degree, 0)
    sent = mass * rng.lognormal(sigma=MASS_SIGMA, size=nodes)
    received = mass * rng.lognormal(sigma=MASS_SIGMA, size=nodes)
    matrix = np.outer(sent, received)
    np.fill_diagonal(matrix, 0)
    links = csr_array((np.ones(len(tail)), (tail, head)), shape=(nodes, nodes))
    components, _ = connected_components(links, connection="strong")
    if components > 1:
        matrix[np.isinf(dijkstra(links, unweighted=True))] = 0
    source, target = np.nonzero(matrix)
    rate = matrix[source, target]
    return source, target, rate / rate.sum() if len(rate) else rate


def keep_largest(rate: Floats, pairs: int | None) -> NDArray[np.intp]:
    """Return the positions of the `pairs` largest rates (of equal ones the first), ascending; None: all."""
    if pairs is None or pairs >= len(rate):
        return np.arange(len(rate))
    return np.sort(np.argsort(-rate, kind="stable")[:pairs])


def require_endpoints(tables: Tables) -> None:
    """Raise InputError unless every link and demand ends at nodes, and every node has a label."""
    nodes = tables["nodes"]["node"]
    faults = FileErrors("tables")
    for row in np.flatnonzero((nodes == "").to_numpy()):
        faults.add(f"nodes row {row + 1}", ": node is empty")
    for table, columns in (("links", ("tail", "head")), ("demands", ("source", "target"))):
        for column in columns:
            values = tables[table][column]
            for row in np.flatnonzero(~values.isin(nodes).to_numpy()):
                value, rule = str(values.iloc[row]), f"{column} must be a node"
                fault = f": {column} is '{shorten(value)}', must be a node"
                faults.add(f"{table} row {row + 1}", fault, rule=rule, near=(value, nodes))
    faults.raise_if_any()


def optional_column(table: pd.DataFrame, column: str, default: float) -> Floats:
    """Return a column as an array, filled with `default` where it is absent."""
    return to_floats(table[column]) if column in table else np.full(len(table), default)


def format_decimal(value: float, *, exponent: int = 0) -> str:
    """Format `value` times 10**exponent exactly, in plain decimals; whole numbers without a point."""
    return format(Decimal(repr(float(value))).scaleb(exponent).normalize(), "f")


def write_text(text: str, path: Path) -> None:
    """Write UTF-8 text to a file as a whole or not at all; InputError where it cannot be written."""
    path = Path(path)
    try:
        with replace_file(path) as partial:
            partial.write_bytes(text.encode())
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise InputError(f"{path.name}: character {bad!r} has no place in UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
