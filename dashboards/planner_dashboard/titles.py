"""Titles of questions, scenarios and designs, and the order in which users choose a question."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final, get_args

from planner.contract.system import Area
from planner.scenarios.description_cache import describe_all
from planner.scenarios.shipped import scenario_names, scenario_title
from planner_dashboard.question import FIRST_SCENARIO, UPLOADED

SMALL_EXAMPLE: Final = "own_data"
"""End of the name of the scenario that a question begins with, where the system has it."""


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A question that users choose: that of a system.

    area  of networking
    """

    system: str
    title: str
    area: str
    question: str

    @property
    def words(self) -> str:
        """The entry of a list: area, title and question."""
        return f"{self.area.capitalize()} · {self.title}: {self.question}"


@functools.cache
def topics() -> tuple[Topic, ...]:
    """Return the questions of all systems by area, those of the first scenario's system in front."""
    areas, first = get_args(Area), FIRST_SCENARIO.partition("/")[0]
    listed = [
        Topic(
            system=described["system"],
            title=described["title"],
            area=described["area"],
            question=described["question"],
        )
        for described in describe_all()
    ]
    listed.sort(key=lambda topic: (areas.index(topic.area), topic.system != first, topic.title))
    return tuple(listed)


def topic_of(scenario: str) -> Topic | None:
    """Return the question of a scenario by its name; None for that of uploaded tables."""
    system = scenario.partition("/")[0]
    return next((topic for topic in topics() if topic.system == system), None)


def scenarios_of(system: str) -> list[str]:
    """Return the names of a system's scenarios, the one that it begins with in front."""
    names = [name for name in scenario_names() if name.startswith(f"{system}/")]
    begins = (FIRST_SCENARIO, f"{system}/{SMALL_EXAMPLE}")
    return sorted(names, key=lambda name: (name not in begins, name))


def title_of_scenario(name: str) -> str:
    """Return the title of a scenario by its name, or of uploaded tables."""
    return UPLOADED.capitalize() if name == UPLOADED else scenario_title(name)


def title_with_topic(name: str) -> str:
    """Return the title of a scenario behind that of its question: `Traffic routing: Germany, 50 cities`."""
    topic = topic_of(name)
    title = title_of_scenario(name)
    return title if topic is None else f"{topic.title}: {title}"
