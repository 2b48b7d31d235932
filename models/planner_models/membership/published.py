"""Reproduction targets of system `membership`, declared in `data/published/membership.toml`.

Albatross (Leners et al. 2015): rules, names, the comparison of two broadcasts, and reactions to failures by
simulation. Byzantine agreement (Abraham and Dolev 2015) and resource discovery (Haeupler and Malkhi 2015):
statements that a run, an enumeration or a simulation can refute. Bounds in O, which no run refutes, have no
number; what would need a testbed or an algorithm that is not run is not covered, with the reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from planner.contract.design import Decision
from planner.contract.targets import Study, TargetValues, read_targets
from planner_models.membership.designs.fenced import plan_fenced
from planner_models.membership.designs.raft import plan as plan_raft
from planner_models.membership.plan.check import read_plan
from planner_models.membership.plan.evaluation import served_states
from planner_models.membership.plan.fencing import Manager
from planner_models.membership.plan.plan import FENCE_RULE, MAJORITY_RULE, MembershipPlan
from planner_models.membership.plan.timeline import excludes_leader
from planner_models.membership.problem.generators import regions
from planner_models.membership.problem.problem import USUAL, Membership
from planner_models.membership.problem.schema import NAME_BITS, NETWORK
from planner_models.membership.protocols import agreement, clusters, discovery, trials
from planner_models.membership.protocols.discovery import start_graph
from planner_models.membership.simulation import reactions

HOST_BITS: Final = 32
LARGEST: Final = 9
"""Members up to which statements on every number of members are checked."""
TOO_MANY: Final = "below t + 1 rounds only from t = {limit}, {count} processes on: too many to run"
LIARS: Final = "in all runs of 7 and 10 processes beside random liars; at 4 beside all liars, in the tests"
LATEST: Final = "the largest number in runs of 7 and 10 processes beside random liars"
TESTBED: Final = "measured on the paper's testbed; processor time and its traffic are not modelled"


def count_rules(border: Mapping[str, list[str]], epochs: tuple[int, ...] = (1, 3)) -> int:
    """Return the rules that the manager installs at the ports that border an excluded set (Figure 5)."""
    manager = Manager(active=list(epochs), unused=[2], current=epochs[-1])
    is_enforced = manager.enforce(border, set(), lambda _switch, _rule: True)
    assert is_enforced
    return len(manager.rules)


def find_fences(study: Study) -> TargetValues:
    """Return the rules of the example of section 5.3, and those of racks."""
    at_switch_3 = [f"app {number}" for number in (2, 3, *range(100, 151))]
    rack = study.compare("membership/rack_40x20", designs=["fenced"])
    single = max(count_rules({"3.1": ["app 1"]}), count_rules({"1.3": []}, epochs=(1,)))
    return TargetValues(
        values={
            "memb_example_epoch": float(count_rules({"1.3": []})),
            "memb_example_app": float(count_rules({"1.3": at_switch_3})),
            "memb_example_host": float(count_rules({"3.1": ["app 2", "app 3"]})),
            "memb_rules_1": float(single),
            "memb_rules_5": float(single),
            "memb_many_rules": float(rack["rules_most"].iloc[0]),
        },
        notes={
            "memb_rules_5": "with one application and one epoch in use",
            "memb_many_rules": "design fenced, scenario membership/rack_40x20",
        },
    )


def find_names(study: Study) -> TargetValues:  # noqa: ARG001 - the signature of a target
    """Return the bits that a name has for a process, and its bytes."""
    return TargetValues(
        values={"memb_pid_bits": float(NAME_BITS), "memb_pid_bytes": (HOST_BITS + NAME_BITS) / 8},
        notes={"memb_pid_bits": "3 + 10 + 3, the limit that plans are checked against"},
    )


def tolerates(rule: str, members: int) -> int:
    """Return the failures among any members, with no manager down, at which a service is still served."""
    served = served_states(rule, members, members // 2 + 1, 1)
    return max(failed for failed in range(members) if served[members - failed, 1])


def split_brain() -> Membership:
    """Return three zones of two hosts, a service that tolerates one failure, and managers that fence."""
    problem = regions(regions=1, zones=3, hosts=2, faults=1, managers=3, loss=0.0)
    return replace(problem, services=problem.services.assign(protocol="definitive"))


def _excludes_leader(problem: Membership, decide: Callable[[Membership], Decision[MembershipPlan]]) -> bool:
    """Return whether the first service of a design's plan excludes a leader that is cut off."""
    plan = decide(problem).plan
    assert plan is not None
    return excludes_leader(problem, read_plan(problem, plan)[0])


def find_figure_8(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return the failures that both ways of broadcast tolerate, and whether two leaders can decide."""
    problem = split_brain()
    sizes = range(1, LARGEST + 1)
    definitive = {n: tolerates(FENCE_RULE, n) for n in sizes}
    majority = {n: tolerates(MAJORITY_RULE, n) for n in sizes}
    not_run = ("phases", "rt", "msgs", "counters", "lines")
    return TargetValues(
        values={
            "memb_f1": all(definitive[f + 1] == f for f in range(LARGEST)),
            "memb_f2": all(majority[2 * f + 1] == f for f in range(LARGEST // 2 + 1)),
            "memb_aab_f": all(definitive[n] == n - 1 for n in sizes),
            "memb_zab_f": all(majority[n] == math.ceil(n / 2) - 1 for n in sizes),
            "memb_aab_leader": _excludes_leader(problem, plan_fenced),
            "memb_zab_leader": not _excludes_leader(problem, plan_raft),
        },
        notes={
            **{
                f"memb_{name}_{row}": "atomic broadcast is not run, only who may lead"
                for name in ("aab", "zab")
                for row in not_run
            },
            "memb_aab_leader": "one that is cut off is excluded before the next one leads",
            "memb_zab_leader": "one that is cut off is not excluded when the next one leads, as section 7.1 "
            "has it; without a majority it decides nothing",
        },
    )


def find_reactions(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return whether the monitor and action of Figure 10 come first in all of 25 repetitions."""
    values: dict[str, float | bool | None] = {}
    for name, expected in reactions.PRINTED.items():
        outcomes = {(item.monitor, item.action) for item in reactions.repeat(name, 25)}
        values[f"memb_f10_{name}"] = outcomes == {expected}
    return TargetValues(
        values=values,
        notes={
            "memb_f10_module": "section 6.2 has the module send the heartbeats, so that the end-host failure "
            "event comes first, after 1 s"
        },
    )


def find_detection(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return times to detect injected failures, by simulation."""
    by_network = [
        float(np.median([item.after_s or 0.0 for item in reactions.repeat(name, 100)]))
        for name in ("link", "switch", "spurious", "openflow")
    ]
    host = np.mean([item.after_s or 0.0 for item in reactions.repeat("host", 100)])
    measured = dict.fromkeys(("memb_zk_targets", "memb_zk_dropped", "memb_targets"), TESTBED)
    return TargetValues(
        values={"memb_detect_net": max(by_network), "memb_detect_host": float(host)},
        notes={
            **measured,
            "memb_detect_net": "the slowest of four failures, in the median of 100; OpenFlow's timeout, "
            "1 s, is assumed",
            "memb_detect_host": "a rule of 1 s ends; Falcon's own time on a host failure is lost",
            "memb_zk_targets": "the capacity is an input (capacity_per_s): 1,500 targets send 1,125 to 1,500 "
            "pings a second",
            "memb_zk_dropped": "9,000 pings a second are offered; no capacity follows",
            "memb_reconnect": "reconnection is not modelled",
        },
    )


def find_costs(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return the bytes of heartbeats at a host."""
    watcher = USUAL[NETWORK]
    return TargetValues(
        values={"memb_bw_host": watcher.bytes / watcher.interval_s / 1e3},
        notes={
            "memb_bw_host": "the size of a heartbeat, 610 bytes, is fitted to it",
            "memb_cpu_host": TESTBED,
            "memb_cpu_mgr": TESTBED,
            "memb_bw_mgr": TESTBED,
        },
    )


def find_agreement(study: Study) -> TargetValues:
    """Return whether statements on Byzantine agreement hold in runs, in trees and in sequences of waste."""
    agrees = agreement.find_disagreement(4, 1, range(2 if study.quick else 20)) is None
    is_broken = agreement.find_disagreement(3, 1) is not None
    sizes = all(agreement.level_sizes(n, depth) == _count_levels(n, depth) for n, depth in ((4, 2), (7, 3)))
    bad = min(waste for waste in range(1, 12) if agreement.known_faults([waste + 1], 4) >= 4 + 3)
    return TargetValues(
        values={
            "agr_resilience": agrees and is_broken,
            "agr_psl": agrees and is_broken and sizes,
            "agr_children": sizes,
            "agr_monitor_phi": _matches_sequences("text"),
            "agr_monitor_phi_alg": _matches_sequences("algorithm"),
            "agr_waste_limit": float(bad),
            "agr_growth_x": all(agreement.waste_of([c, 1, 0]) == c - 1 for c in range(3, 6)),
            "agr_growth_y": all(agreement.waste_of([c, 1]) == c for c in range(2, 6)),
            **run_early_stopping(100 if study.quick else 500, 30 if study.quick else 150),
        },
        notes=_note_agreement(),
    )


def run_early_stopping(small: int, large: int) -> dict[str, float | bool]:
    """Return what holds of protocol D in trials beside liars, and its latest rounds.

    small, large  trials of each kind of inputs with 7 processes and t = 2, and with 10 and t = 3
    """
    runs = [
        (inputs, trials.draw_trial(count, limit, seed, inputs=inputs))
        for count, limit, number in ((7, 2, small), (10, 3, large))
        for inputs in ("any", "alike", "default")
        for seed in range(number)
    ]
    # those that start alike stop soon, so that more of them cost little
    runs += [("alike", trials.draw_trial(7, 2, seed, inputs="alike", faulty=2)) for seed in range(4 * small)]
    every = [trial for _, trial in runs]
    alike, default = ([trial for kind, trial in runs if kind == name] for name in ("alike", "default"))
    known = [trials.draw_trial(10, 3, seed, phi=2) for seed in range(large)]
    is_right = all(trial.agrees() and not trial.outcome.suspected for trial in every + known)
    of_limit = {limit: [trial for trial in every if trial.limit == limit] for limit in (2, 3)}
    return {
        "agr_validity": is_right and all(trial.has_support() for trial in every),
        "agr_phi_rounds": is_right
        and max(trial.last_stop() - trial.limit for trial in every) == 1
        and max(trial.last_stop() for trial in known) == 3,
        "agr_phi_f": is_right and all(trials.stops_early(of_limit[t], range(t)) for t in of_limit),
        "agr_rounds": is_right and all(trials.stops_early(of_limit[t], range(t + 1)) for t in of_limit),
        "agr_same_output": float(max(trial.last_output() for trial in alike)),
        "agr_same_stop": float(max(trial.last_stop() for trial in alike)),
        "agr_bot_output": float(max(trial.last_output() for trial in default)),
        "agr_bot_stop": float(max(trial.last_stop() for trial in default)),
        "agr_f0": float(max(trial.last_stop() for trial in alike if trial.faulty == 0)),
        "agr_f1": float(max(trial.last_stop() for trial in alike if trial.faulty == 1)),
        "agr_stop_after": float(max(trial.stop_delay() for trial in every)),
        "agr_others_output": float(max(trial.last_output() - trial.first_stop() for trial in every)),
        "agr_others_stop": float(max(trial.last_stop() - trial.first_stop() for trial in every)),
    }


def _count_levels(processes: int, depth: int) -> list[int]:
    """Return the sequences of processes without repetition, of each length up to `depth`."""
    lengths = range(1, depth + 1)
    return [sum(1 for _ in itertools.permutations(range(processes), length)) for length in lengths]


def _matches_sequences(source: Literal["text", "algorithm"]) -> bool:
    """Return whether parameters of monitors are those of sequence 1 in section 4.3, t - i - 4k."""
    return all(
        phi == limit - start
        for limit in range(8, 40)
        for start, phi in agreement.monitor_parameters(limit, source).items()
    )


def _note_agreement() -> dict[str, str]:
    """Return the readings of statements on agreement, and why others are not reproduced."""
    return {
        **dict.fromkeys(("agr_decide_after", "agr_halt_after"), TOO_MANY.format(limit=5, count=16)),
        "agr_lemma7": TOO_MANY.format(limit=6, count=19),
        "agr_rounds": f"{LIARS}; up to t = 3 the monitors start no further protocol",
        **dict.fromkeys(("agr_validity", "agr_phi_rounds", "agr_phi_f"), LIARS),
        **dict.fromkeys(("agr_same_output", "agr_same_stop", "agr_bot_output", "agr_bot_stop"), LATEST),
        **dict.fromkeys(("agr_f0", "agr_f1"), LATEST),
        **dict.fromkeys(("agr_stop_after", "agr_others_output", "agr_others_stop"), LATEST),
        "agr_resilience": "n = 4 agrees beside every liar and adversary that is tried, n = 3 does not",
        "agr_psl": "run as a tree of t + 1 levels",
        "agr_monitor_phi": "as in section 4.3, where sequence i has t - i - 4k",
        "agr_monitor_phi_alg": "t - 4k, by one more than sections 4 and 4.3",
        "agr_growth_x": "the definition of waste gives c - 2",
        "agr_growth_y": "the definition of waste gives c - 1",
    }


def count_merges(edges: np.ndarray) -> float:
    """Return the clusters that the first iteration of the initialization merges, the mean of 20 runs."""
    remaining = []
    for seed in range(20):
        run = clusters.Clusters.single(edges, np.random.default_rng(seed))
        clusters.initialize(run, "text")
        remaining.append(len(run.members))
    return len(edges) - float(np.mean(remaining))


def _merges_star(reading: clusters.Reading, leaves: int = 64) -> bool:
    """Return whether an iteration of the initialization merges a 32nd of the clusters of a star."""
    edges = np.zeros((leaves + 1, leaves + 1), dtype=bool)
    edges[0, 1:] = edges[1:, 0] = True
    run = clusters.Clusters.single(edges, np.random.default_rng(0))
    clusters.initialize(run, reading)
    return leaves + 1 - len(run.members) >= (leaves + 1) / 32


def find_discovery(study: Study) -> TargetValues:
    """Return whether statements on flooding, NameDropper and the star hold in simulations."""
    size = 64 if study.quick else 512
    path = np.eye(size, k=1, dtype=bool)
    flooded = discovery.flood(path)
    dropped = discovery.name_dropper(path | path.T, np.random.default_rng(0))
    rounds = discovery.inform_star(4_096, 3)
    log_n = math.log2(4_096)
    return TargetValues(
        values={
            "disc_accept": count_merges(start_graph(size, "grid", np.random.default_rng(0))) >= size / 32,
            "disc_joiner": _merges_star("printed"),
            "disc_s_proof": clusters.next_size(log_n**2, 0.5, log_n) > log_n**2,
            "disc_flood_rounds": flooded.rounds <= math.ceil(math.log2(discovery.weak_diameter(path))) + 1,
            "disc_flood_msgs": max(flooded.messages) > size * (size - 1) / 4,
            "disc_nd_msgs": set(dropped.messages) == {size},
            "disc_star": rounds >= math.log(4_096) / math.log(3),
        },
        notes={
            "disc_accept": f"mean of 20 first iterations on a grid of {size} members",
            "disc_joiner": "on a star the printed line merges one cluster of N; with joinees all of them",
            "disc_s_proof": "from log^2 n, s d / log n is s with epsilon 1/2: the loop would not end",
            "disc_flood_rounds": f"a path of {size} members, log D rounded up",
            "disc_flood_msgs": f"at a path of {size} members",
            "disc_star": f"4,096 members, 3 messages: {rounds} rounds, as those that know are multiplied by "
            "c + 1 in each",
        },
    )


FINDERS: Final[Mapping[str, Callable[[Study], TargetValues]]] = {
    "fences": find_fences,
    "names": find_names,
    "figure_8": find_figure_8,
    "reactions": find_reactions,
    "detection": find_detection,
    "costs": find_costs,
    "agreement": find_agreement,
    "discovery": find_discovery,
}
TARGETS: Final = read_targets("membership", FINDERS)
