"""What runs can be asked for by: the names of their columns, metrics and settings, and their place in SQL."""

from __future__ import annotations

from typing import Any, Literal

from planner.database import Database
from planner.errors import InputError, did_you_mean
from planner.record import ALWAYS_KNOWN, COLUMNS, column_of
from planner.where import Column, Condition, parse

Kind = Literal["run", "metric", "setting"]


class Names:
    """The names that a store's runs have. Metrics and settings are kept under numbers."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._written: dict[tuple[str, str], int] = {}

    def metrics(self) -> list[str]:
        """Names of metrics, in the order in which they came; see `column_of`."""
        return [column_of(name) for name in self._of("metric")]

    def settings(self) -> list[str]:
        """Dotted keys of what was asked, in the order in which they came."""
        return self._of("setting")

    def all(self) -> list[str]:
        """Every name that a filter or a chart may use."""
        return [*COLUMNS, *self.settings(), *self.metrics()]

    def find(self, name: str) -> tuple[Kind, Any]:
        """`("run", column)`, `("metric", number)` or `("setting", number)`; InputError for no name."""
        if name in COLUMNS:
            return "run", name
        metric = name.removeprefix("metric.")
        own = metric if column_of(metric) == name else name
        rows = self._database.rows("SELECT kind, id FROM names WHERE name = ? ORDER BY kind", (own,))
        if not rows:
            raise InputError(f"no such column '{name}'" + did_you_mean(name, self.all()))
        kind, found = rows[0]
        return kind, found

    def require(self, name: str, option: str) -> tuple[Kind, Any]:
        """As `find`; the error names the option that has the name."""
        try:
            return self.find(name)
        except InputError as error:
            raise InputError(f"{option}: {error}") from None

    def condition(self, where: str | None) -> Condition:
        """What a filter states; None holds for every run."""
        return Condition(sql="1") if where is None else parse(where, self._column)

    def order(self, sort: str) -> str:
        """What to order by: a name; with a minus before it, the largest first."""
        kind, found = self.require(sort.removeprefix("-"), "--sort")
        way = "DESC" if sort.startswith("-") else "ASC"
        if kind == "run":
            value = f"runs.{found}"
        else:
            value = f"(SELECT value FROM {kind}s WHERE name = {int(found)} AND run = runs.id)"
        return f"{value} {way} NULLS LAST, runs.id"

    def number(self, kind: str, name: str) -> int:
        """The number of a metric or setting, which is given it here where it is new; for the writer."""
        if (kind, name) not in self._written:
            run = self._database.run
            run("INSERT OR IGNORE INTO names (kind, name) VALUES (?, ?)", (kind, name))
            found = run("SELECT id FROM names WHERE kind = ? AND name = ?", (kind, name))
            self._written[kind, name] = int(found.fetchone()[0])
        return self._written[kind, name]

    def forget(self) -> None:
        """Forget the numbers given: the transaction that gave them was undone."""
        self._written.clear()

    def _of(self, kind: Kind) -> list[str]:
        rows = self._database.rows("SELECT name FROM names WHERE kind = ? ORDER BY id", (kind,))
        return [row[0] for row in rows]

    def _column(self, name: str) -> Column:
        kind, found = self.find(name)
        if kind != "run":
            inside = f"SELECT run FROM {kind}s WHERE name = ?"
            return Column(
                test=f"runs.id IN ({inside} AND value {{}})",
                values=(found,),
                unknown=f"runs.id NOT IN ({inside})",
            )
        if name in ALWAYS_KNOWN:
            return Column(test=f"runs.{name} {{}}", unknown="0")
        return Column(test=f"(runs.{name} IS NOT NULL AND runs.{name} {{}})", unknown=f"runs.{name} IS NULL")
