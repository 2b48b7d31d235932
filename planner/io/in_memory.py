"""Tables from data in memory: data frames, records, matrices and networkx graphs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from planner.contract.columns import list_some, match_columns
from planner.contract.notes import add_note
from planner.contract.readings import assume_absent, describe, readings_of
from planner.contract.synonyms import other_names
from planner.contract.table import Table
from planner.contract.tables import convert_units, flatten_frame, shorten_faults
from planner.contract.units import find_units, plain, split_unit, unit_of
from planner.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import networkx as nx


def take_tables(
    tables: Sequence[Table], tables_given: Mapping[str, Any], optional: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return the tables of a problem as data frames, by name.

    tables_given   data frames, lists of records, or mappings from columns to arrays; None is absent
    raises  InputError for tables that are missing, unknown, or no tables
    """
    names = [table.name for table in tables]
    present = {name: data for name, data in tables_given.items() if data is not None}
    faults = _name_faults(names, present, optional)
    frames = {}
    for name in names:
        if name in present:
            try:
                frames[name] = _frame_of(present[name])
            except (ValueError, TypeError) as error:
                faults.append(f"{name}: is no table: {error}")
    if faults:
        raise InputError(*faults)
    return frames


def _name_faults(names: Sequence[str], present: Collection[str], optional: Sequence[str]) -> list[str]:
    """Return an error for each unknown table, and for each missing one that is not optional."""
    unknown = [name for name in present if name not in names]
    missing = [name for name in names if name not in present and name not in optional]
    return [
        *(f"{name}: no such table" + did_you_mean(str(name), names) for name in unknown),
        *(f"{name}: is missing" for name in missing),
    ]


def take_table(
    table: Table, data: Any, *, where: str, columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return a table with our columns, found by name and converted by the unit in it.

    columns  given name by our name, which goes before all else
    raises   InputError for columns that are missing or ambiguous
    """
    frame = flatten_frame(table, _frame_of(data), where)
    match = match_columns(table, map(str, frame.columns), where=where, mapping=columns)
    if match.faults:
        raise InputError(*match.faults)
    for note in match.notes():
        add_note(note)
    table_read = convert_units(frame.set_axis(frame.columns.map(str), axis=1), match).reset_index(drop=True)
    table_read.attrs = {"where": where}
    return table_read


def _frame_of(data: Any) -> pd.DataFrame:
    """Return data as a frame; raise TypeError or ValueError for data that are no table."""
    if isinstance(data, pd.DataFrame):
        return data
    if data is None or isinstance(data, str | bytes | Number):
        raise TypeError(f"it is of type {type(data).__name__}, not a data frame, records or columns")
    return pd.DataFrame(data)


def require_unit(unit: str | None, column: str, what: str) -> None:
    """Raise InputError unless a unit converts into that of one of our columns.

    what  the numbers without a unit, such as "capacity"
    """
    expected = unit_of(column)[1]
    if expected is None:
        raise TypeError(f"{column} has no unit")
    if unit is None:
        raise InputError(
            f'{what}: its unit is unknown; give unit="{expected.symbol}" or another {expected.dimension}'
        )
    units = find_units(unit)
    if len(units) != 1 or units[0].dimension != expected.dimension:
        raise InputError(f"unit: '{unit}' is no unit of {expected.dimension}, such as {expected.symbol}")


# --- pairs --------------------------------------------------------------------------------


def take_pairs(
    table: Table, data: Any, *, names: Sequence[str], unit: str | None, where: str
) -> pd.DataFrame:
    """Return a table of amounts from one place to another: its first three columns.

    data    a table; or a mapping from (source, target) to amounts, or a square matrix, as an array or a data
            frame with the names of the places
    names   places in the order of an array's rows
    unit    of amounts whose column has none
    raises  InputError for another shape, an unknown unit, and columns that are missing or ambiguous
    """
    source, target, amount = list(table.columns)[:3]
    if isinstance(data, pd.DataFrame) and not _is_square(data):
        return take_table(table, data, where=where)
    if isinstance(data, list | tuple) and data and isinstance(data[0], Mapping):
        return take_table(table, data, where=where)
    require_unit(unit, amount, where)
    if isinstance(data, pd.Series):
        data = data.to_dict()
    rows = _pair_rows(data, where) if isinstance(data, Mapping) else _matrix_rows(data, names, where)
    stem = unit_of(amount)[0]
    frame = pd.DataFrame(rows, columns=[source, target, f"{stem} ({unit})"])
    return take_table(table, frame, where=where)


def _pair_rows(amounts: Mapping[Any, Any], where: str) -> list[tuple[str, str, Any]]:
    """Return source, target and amount of each pair."""
    wrong = [pair for pair in amounts if not isinstance(pair, tuple) or len(pair) != 2]
    if wrong:
        raise InputError(f"{where}: {wrong[0]!r} is no pair (source, target)")
    return [(str(source), str(target), value) for (source, target), value in amounts.items()]


def _is_square(frame: pd.DataFrame) -> bool:
    return len(frame) == len(frame.columns) and list(map(str, frame.index)) == list(map(str, frame.columns))


def _matrix_rows(data: Any, names: Sequence[str], where: str) -> list[tuple[str, str, float]]:
    """Return the entries of a square matrix that are not 0, by row and column."""
    if isinstance(data, pd.DataFrame):
        names = [str(name) for name in data.columns]
    matrix = np.asarray(data, dtype=float)
    if matrix.shape != (len(names), len(names)):
        raise InputError(f"{where}: has shape {matrix.shape}, must be {(len(names), len(names))}")
    faults = [
        f"{where} row {row + 1} column {column + 1}: is not a number"
        for row, column in np.argwhere(np.isnan(matrix)).tolist()
    ]
    if faults:
        raise InputError(*shorten_faults(faults, where, "without a number"))
    return [
        (names[row], names[column], float(matrix[row, column]))
        for row, column in np.argwhere(matrix != 0).tolist()
    ]


# --- graphs -------------------------------------------------------------------------------

EDGES: Final = "edges of the graph"
"""Name of the table of a graph's edges in notes and faults."""


def take_graph(
    graph: nx.Graph,
    *,
    nodes: Table,
    links: Table,
    attributes: Mapping[str, str | None],
    unit: str | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the nodes and links of a networkx graph as tables; an edge without direction is two links.

    attributes  name of the attribute that has each of our columns of links; None: found by its name. A unit
                at its end converts it
    unit        of capacities whose attribute has no unit in its name
    raises      InputError for attributes that are missing or have no unit
    """
    node, (tail, head) = next(iter(nodes.columns)), list(links.columns)[:2]
    node_table = pd.DataFrame([{node: str(name), **data} for name, data in graph.nodes(data=True)])
    if not len(node_table):
        raise InputError("graph: has no nodes")
    frame, mapping = _map_attributes(links, _edge_frame(graph, tail, head), attributes, unit)
    columns_read = [name for name in frame if name in (tail, head, *mapping.values())]
    table = take_table(links, frame[columns_read], where=EDGES, columns=mapping)
    _note_readings(links, table, [ours for ours, name_given in attributes.items() if name_given is not None])
    _note_ignored("edge", [str(name) for name in frame if name not in columns_read])
    _note_ignored("node", [str(name) for name in node_table if name not in nodes.columns])
    return _known_columns(nodes, node_table), _fill_defaults(links, table)


def _edge_frame(graph: nx.Graph, tail: str, head: str) -> pd.DataFrame:
    """Return a row for each direction of each edge, with its attributes and the names of its ends.

    tail, head  names of the columns of the ends
    """
    rows = []
    for start, end, data in graph.edges(data=True):
        ends = (
            [(str(start), str(end))]
            if graph.is_directed()
            else [(str(start), str(end)), (str(end), str(start))]
        )
        rows += [{**data, tail: first, head: second} for first, second in ends]
    if not rows:
        raise InputError("graph: has no edges")
    return pd.DataFrame(rows)


def _map_attributes(
    links: Table, frame: pd.DataFrame, attributes: Mapping[str, str | None], unit: str | None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the edges with units in the names of all rates, and the name of the attribute by our name."""
    mapping: dict[str, str] = {}
    faults: list[str] = []
    for ours, name_given in attributes.items():
        name = name_given or _find_attribute(links, ours, [str(name) for name in frame.columns])
        if name is None:
            continue
        if name not in frame:
            faults.append(
                f"graph: no edge has the attribute '{name}'" + did_you_mean(name, map(str, frame.columns))
            )
            continue
        if _lacks_unit(ours, name):
            require_unit(unit, ours, f"edge attribute '{name}'")
            frame = frame.rename(columns={name: f"{name} ({unit})"})
            name = f"{name} ({unit})"
        mapping[ours] = name
    if faults:
        raise InputError(*faults)
    return frame, mapping


def _lacks_unit(ours: str, name: str) -> bool:
    """Return whether our column is a rate, and the name of an attribute has no unit."""
    expected = unit_of(ours)[1]
    is_rate = expected is not None and expected.dimension == "rate"
    return is_rate and not any(units for _, units in split_unit(name))


def _fill_defaults(links: Table, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the default values of optional columns where it has none."""
    defaults = {
        name: column.default
        for name, column in links.columns.items()
        if not column.required and column.default is not None and name in table
    }
    filled = table.fillna(defaults) if defaults else table
    filled.attrs = table.attrs
    return filled


def _note_readings(links: Table, frame: pd.DataFrame, named: Sequence[str]) -> None:
    """Report the assumptions about columns of edges that are absent, or may be an absent one.

    named  columns of which the caller named the attribute
    """
    for name, other in readings_of(links).items():
        if name in frame and other not in frame and name not in named:
            add_note(f"assumed: {EDGES}: '{name}' is {describe(links, name)}, not {describe(links, other)}")
    for note in assume_absent(links, frame.columns, EDGES):
        add_note(note)


def _note_ignored(kind: str, names: Sequence[str]) -> None:
    """Report the attributes of a kind of element that are not read."""
    if names:
        listed = list_some([f"'{name}'" for name in names])
        add_note(f"graph: ignored {kind} attributes {listed}")


def _find_attribute(table: Table, ours: str, names: Sequence[str]) -> str | None:
    """Return the attribute with the stem of one of our columns, such as `capacity_gbps` or `capacity`.

    Without one, return that with a name of the column in other tools, such as `igp_metric`; raise
    InputError where several have one.
    """
    stem = unit_of(ours)[0]
    for name in names:
        if name in (ours, stem) or any(part_name == stem for part_name, _ in split_unit(name)):
            return name
    synonyms = {plain(name) for name in other_names(table, ours)}
    fitting = [name for name in names if plain(name) in synonyms]
    if len(fitting) > 1:
        several = " and ".join(f"'{name}'" for name in fitting)
        raise InputError(f"graph: edge attributes {several} may both be {ours}; name one of them")
    return fitting[0] if fitting else None


def _known_columns(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that a table has; an optional one only where no value is missing."""
    columns = [
        name
        for name, column in table.columns.items()
        if name in frame and (column.required or bool(frame[name].notna().all()))
    ]
    return frame[columns]


def to_graph(
    nodes: pd.DataFrame, links: pd.DataFrame, more: Mapping[str, Any] | None = None
) -> nx.MultiDiGraph:
    """Return a graph of nodes, the first column of a table, and links, from the first to the second.

    more  further attributes of links, shape (E,) each
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    name, *attributes = nodes.columns
    for row in nodes.to_dict(orient="records"):
        graph.add_node(str(row[name]), **{str(key): row[key] for key in attributes if pd.notna(row[key])})
    tail, head, *others = links.columns
    frame = links.assign(**(more or {}))
    for row in frame.to_dict(orient="records"):
        data = {str(key): row[key] for key in [*others, *(more or {})] if pd.notna(row[key])}
        graph.add_edge(str(row[tail]), str(row[head]), **data)
    return graph
