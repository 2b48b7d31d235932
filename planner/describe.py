"""A system in plain data: its tables, sources, presets, designs, metrics and all parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.parameters import Parameter, parameters_of
from planner.system import System, everything
from planner.tables import Table


def parameters(system: System) -> dict[str, Mapping[str, Parameter]]:
    """Every parameter of a system, by the section of a scenario that takes it."""
    owners: dict[str, Mapping[str, Parameter]] = {"[problem]": parameters_of(system.adjust)}
    owners |= {f"source {name}": parameters_of(read) for name, read in system.sources.items()}
    owners |= {f"series {name}": parameters_of(read) for name, read in system.series.items()}
    owners |= {f"preset {name}": parameters_of(make) for name, make in system.presets.items()}
    for design in system.designs:
        owners[f"[designs.{design.name}]"] = design.parameters
        if design.sees is not everything:
            owners[f"[designs.{design.name}.sees]"] = parameters_of(design.sees)
    return {owner: its for owner, its in owners.items() if its}


def describe(system: System) -> dict[str, Any]:
    """The system as `planner list SYSTEM --json` prints it."""
    return {
        "system": system.name,
        "question": system.question,
        "source": system.source,
        "tables": [_table(table, system.optional_tables) for table in system.tables],
        "plan_tables": [_table(table, ()) for table in system.plan_tables],
        "sources": ["tables", "generate", *system.sources],
        "series": list(system.series),
        "presets": list(system.presets),
        "designs": [
            {
                "design": design.name,
                "mechanism": str(design.mechanism),
                "about": design.about,
                "messages": design.messages,
                "source": design.source,
            }
            for design in system.designs
        ],
        "metrics": [
            {"metric": metric.name, "unit": metric.unit, "better": metric.better, "about": metric.about}
            for metric in system.metrics
        ],
        "parameters": {
            owner: {
                name: {
                    "values": parameter.values,
                    "required": parameter.required,
                    "default": None if parameter.required else parameter.default,
                    "about": parameter.about,
                }
                for name, parameter in its.items()
            }
            for owner, its in parameters(system).items()
        },
    }


def _table(table: Table, optional: tuple[str, ...]) -> dict[str, Any]:
    return {
        "table": table.name,
        "about": table.about,
        "optional": table.name in optional,
        "columns": {
            name: {"required": column.required, "about": column.description}
            for name, column in table.columns.items()
        },
    }
