"""Examples that `planner COMMAND --help` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "list": (
        "planner list",
        "planner list traffic",
        "planner list traffic --section designs",
    ),
    "solve": (
        "planner solve traffic/abilene",
        "planner solve traffic/abilene --design ecmp --set problem.scale=2",
        "planner solve mine/scenario.toml --time-limit 60 --out plan",
    ),
    "compare": (
        "planner compare traffic/germany50",
        "planner compare traffic/abilene --designs optimum,ecmp --html report.html",
        "planner compare traffic/abilene --set 'problem.fail_links=[\"ATLAng<->HSTNng\"]'",
    ),
    "diff": (
        "planner diff traffic/abilene ecmp optimum",
        "planner diff mine/scenario.toml mine/today out/optimum --html change.html",
    ),
    "roll": (
        "planner roll livevideo/sessions --out rolled",
        "planner roll livevideo/sessions --designs vdn --out rolled",
    ),
    "simulate": (
        "planner simulate traffic/flow_simulation",
        "planner simulate traffic/flow_simulation --designs localflow --html flows.html",
    ),
    "sweep": (
        "planner sweep traffic/abilene --set problem.scale=0.5,1,2 --out results --dry-run",
        "planner sweep traffic/abilene --set problem.scale=0.5,1,2 --out results",
        "planner sweep traffic/abilene --cluster tcp://scheduler:8786 --out results",
    ),
    "runs": (
        "planner runs results",
        "planner runs results --where 'label = ecmp and problem.scale >= 1'",
        "planner runs results --sort -max_utilization --csv runs.csv",
    ),
    "explain": (
        "planner explain traffic/abilene",
        "planner explain traffic/abilene --design ecmp --previous optimum",
        "planner explain traffic/abilene --with candidates=20 --html why.html",
    ),
    "failures": (
        "planner failures traffic/abilene",
        "planner failures traffic/abilene --design ecmp --kinds link --html failures.html",
        "planner failures traffic/germany50 --workers 4",
    ),
    "upgrades": (
        "planner upgrades traffic/abilene --set problem.scale=2",
        "planner upgrades traffic/germany50 --set 'problem.fail_links=[\"Koblenz<->Koeln\"]'",
        "planner upgrades traffic/abilene --set problem.scale=2 --budget 3 --html upgrades.html",
    ),
    "alternatives": (
        "planner alternatives traffic/abilene --within 1%",
        "planner alternatives traffic/germany50 --goal least_through=Koeln --goal least_traffic",
        "planner alternatives traffic/abilene --goal fewest_links --out plans --html plans.html",
    ),
    "generate": (
        "planner generate traffic --out mine",
        "planner generate traffic --preset fat_tree --set k=4 --out mine",
    ),
    "export": (
        "planner export traffic/abilene --out model.mps",
        "planner export traffic/abilene --service all --out model.lp",
        "planner export queries/edge --format openflow --design specialization --out rules",
    ),
    "check": (
        "planner check mine/scenario.toml",
        "planner check mine/scenario.toml --plan out/ecmp/plan",
    ),
    "reproduce": (
        "planner reproduce",
        "planner reproduce multicast/figure_5a --quick",
        "planner reproduce --all --quick --out reproduced",
    ),
    "recipes": (
        "planner recipes",
        "planner recipes --resources disjoint --separation companies --flow two-way --age-s 900",
        "planner recipes --measure --html value.html",
    ),
    "dashboard": (
        "planner dashboard",
        "planner dashboard --store results --port 8600",
    ),
    "new workbook": ("planner new workbook traffic", "planner new workbook contracts --out month.xlsx"),
    "new scenario": (
        "planner new scenario links.csv demands.csv",
        "planner new scenario network.xlsx --out mine/scenario.toml",
        "planner new scenario tables --column links.tail=Begin --column links.head=End",
    ),
    "new design": (
        "planner new design mine --system traffic",
        "planner new design greedy --system capacity --out packages/greedy",
    ),
    "doctor": (
        "planner doctor",
        "planner doctor --warm",
    ),
}
"""Commands that can be typed as they stand, by the command that they use."""


def examples_of(command: str) -> str:
    """Return the text after a command's options: its examples, a line each."""
    lines = "\n".join(f"  {line}" for line in EXAMPLES[command])
    return f"\b\nExamples:\n{lines}"  # \b: keep the lines as they are
