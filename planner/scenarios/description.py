"""Description of a system as plain data: tables, sources, presets, designs, metrics, parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.contract.design import observe_all
from planner.contract.parameters import Parameter, parameters_of
from planner.contract.synonyms import other_names
from planner.contract.system import System
from planner.contract.table import Table
from planner.contract.units import is_per_unit, unit_of


def section_parameters(system: System) -> dict[str, Mapping[str, Parameter]]:
    """Return the parameters of a system by the section of a scenario that takes them."""
    owners: dict[str, Mapping[str, Parameter]] = {"[problem]": parameters_of(system.problem.adjust)}
    owners |= {f"source {name}": parameters_of(read) for name, read in system.problem.sources.items()}
    owners |= {f"series {name}": parameters_of(read) for name, read in system.problem.series.items()}
    owners |= {f"preset {name}": parameters_of(make) for name, make in system.problem.presets.items()}
    for design in system.designs:
        owners[f"[designs.{design.name}]"] = design.parameters
        if design.observe is not observe_all:
            owners[f"[designs.{design.name}.information]"] = parameters_of(design.observe)
    return {owner: parameters for owner, parameters in owners.items() if parameters}


def describe(system: System) -> dict[str, Any]:
    """Return the system as `planner list SYSTEM --json` prints it."""
    return {
        "system": system.name,
        "title": system.label,
        "area": system.area,
        "question": system.question,
        "source": system.source,
        "headline": [metric.name for metric in system.ranks],
        "tables": [_table(table, system.problem.optional_tables) for table in system.problem.tables],
        "plan_tables": [_table(table, ()) for table in system.plan.tables],
        "sources": ["tables", "generate", *system.problem.sources],
        "series": list(system.problem.series),
        "presets": list(system.problem.presets),
        "designs": [
            {
                "design": design.name,
                "title": design.label,
                "default": design is system.default_design,
                "mechanism": str(design.mechanism),
                "about": design.about,
                "function": design.function,
                "messages": design.messages,
                "source": design.source,
            }
            for design in system.designs
        ],
        "metrics": [
            {
                "metric": metric.name,
                "title": metric.label,
                "unit": metric.unit,
                "better": metric.better,
                "about": metric.about,
            }
            for metric in system.metrics
        ],
        "parameters": {
            owner: {
                name: {
                    "values": parameter.values,
                    "required": parameter.is_required,
                    "default": None if parameter.is_required else parameter.default,
                    "about": parameter.about,
                }
                for name, parameter in parameters.items()
            }
            for owner, parameters in section_parameters(system).items()
        },
    }


def _table(table: Table, optional: tuple[str, ...]) -> dict[str, Any]:
    return {
        "table": table.name,
        "about": table.about,
        "optional": table.name in optional,
        "columns": {name: _column(table, name) for name in table.columns},
    }


def _column(table: Table, name: str) -> dict[str, Any]:
    """Return a column: unit, names in other tools, and the meaning of its absence; without absent entries.

    may_be  the column that it may be in a file without that one, which is then asked about
    """
    column = table.columns[name]
    stem, unit = unit_of(name)
    symbol = None if unit is None else unit.symbol
    more = {
        "unit": f"per {symbol}" if unit is not None and is_per_unit(stem) else symbol,
        "other_names": list(other_names(table, name)) or None,
        "default": column.default,
        "when_absent": column.when_absent,
        "may_be": column.mistaken_for,
    }
    details = {key: value for key, value in more.items() if value is not None}
    return {"required": column.required, "about": column.about, **details}
