"""Index of the columns of runs: run columns, metrics and settings by name, with their place in SQL."""

from __future__ import annotations

from typing import Any, Literal

from planner.errors import InputError, did_you_mean
from planner.store.database import Database
from planner.store.filters import Column, Condition, parse_filter
from planner.store.record import COLUMNS, REQUIRED_COLUMNS, column_of

Kind = Literal["run", "metric", "setting"]


class ColumnIndex:
    """Names of the columns of a store's runs; metrics and settings are stored by number."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers: dict[tuple[str, str], int] = {}

    def metrics(self) -> list[str]:
        """Return the columns of metrics, in the order of their first use; see `column_of`."""
        return [column_of(name) for name in self._names_of_kind("metric")]

    def settings(self) -> list[str]:
        """Return the dotted keys of settings, in the order of their first use."""
        return self._names_of_kind("setting")

    def names(self) -> list[str]:
        """Return every name that a filter or a chart may use."""
        return [*COLUMNS, *self.settings(), *self.metrics()]

    def find_column(self, name: str) -> tuple[Kind, Any]:
        """Return ("run", column), ("metric", number) or ("setting", number); raise InputError for others."""
        if name in COLUMNS:
            return "run", name
        metric = name.removeprefix("metric.")
        stored = metric if column_of(metric) == name else name
        rows = self._database.fetch("SELECT kind, id FROM names WHERE name = ? ORDER BY kind", (stored,))
        if not rows:
            raise InputError(f"no such column '{name}'" + did_you_mean(name, self.names()))
        kind, number = rows[0]
        return kind, number

    def require_column(self, name: str, option: str) -> tuple[Kind, Any]:
        """Return as `find_column`; the error names the option that has the name."""
        try:
            return self.find_column(name)
        except InputError as error:
            raise InputError(f"{option}: {error}") from None

    def parse_condition(self, where: str | None) -> Condition:
        """Return the condition of a filter; that of None is true for every run."""
        return Condition(sql="1") if where is None else parse_filter(where, self._sql_column)

    def order_clause(self, sort: str) -> str:
        """Return the SQL that orders by a column; a minus before its name puts the largest first."""
        kind, column = self.require_column(sort.removeprefix("-"), "--sort")
        direction = "DESC" if sort.startswith("-") else "ASC"
        if kind == "run":
            value = f"runs.{column}"
        else:
            value = f"(SELECT value FROM {kind}s WHERE name = {int(column)} AND run = runs.id)"
        return f"{value} {direction} NULLS LAST, runs.id"

    def number_of(self, kind: str, name: str) -> int:
        """Return the number of a metric or setting, and add it where it is new; only the writer may."""
        if (kind, name) not in self._numbers:
            execute = self._database.execute
            execute("INSERT OR IGNORE INTO names (kind, name) VALUES (?, ?)", (kind, name))
            row = execute("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name))
            self._numbers[kind, name] = int(row.fetchone()[0])
        return self._numbers[kind, name]

    def clear_numbers(self) -> None:
        """Clear the cache of numbers: the transaction that added them was rolled back."""
        self._numbers.clear()

    def _names_of_kind(self, kind: Kind) -> list[str]:
        rows = self._database.fetch("SELECT name FROM names WHERE kind = ? ORDER BY id", (kind,))
        return [row[0] for row in rows]

    def _sql_column(self, name: str) -> Column:
        kind, number = self.find_column(name)
        if kind != "run":
            having = f"SELECT run FROM {kind}s WHERE name = ?"
            return Column(
                comparison=f"runs.id IN ({having} AND value {{}})",
                values=(number,),
                is_unknown=f"runs.id NOT IN ({having})",
            )
        if name in REQUIRED_COLUMNS:
            return Column(comparison=f"runs.{name} {{}}", is_unknown="0")
        return Column(
            comparison=f"(runs.{name} IS NOT NULL AND runs.{name} {{}})", is_unknown=f"runs.{name} IS NULL"
        )
