"""Rules of pods: where selectors, affinities, taints, spreads and disruption budgets let them be and move."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from planner.contract.notes import add_note
from planner.errors import InputError
from planner.io.documents import get, mapping, objects

ZONE_LABELS: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
HOST_LABEL: Final = "kubernetes.io/hostname"
FIXED: Final = (
    ("karpenter.sh/do-not-disrupt", "true"),
    ("karpenter.sh/do-not-evict", "true"),
    ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
)
"""Annotations of pods that are not to be evicted."""
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
HASH: Final = re.compile(r"-[a-f0-9]{6,10}$")
EFFECTS: Final = ("NoSchedule", "NoExecute")


def name_of(item: Mapping[str, Any]) -> str:
    """Return the name of an object."""
    return str(get(item, "metadata", "name") or "")


def zone_of(node: Mapping[str, Any]) -> str:
    """Return the zone of a node; "" for none."""
    labels = mapping(node, "metadata", "labels")
    return next((str(labels[key]) for key in ZONE_LABELS if key in labels), "")


def matches(labels: Mapping[str, Any], selector: Mapping[str, Any]) -> bool:
    """Return whether labels match a label selector: matchLabels and matchExpressions."""
    if any(labels.get(key) != value for key, value in mapping(selector, "matchLabels").items()):
        return False
    return all(_matches(labels, rule) for rule in objects(selector, "matchExpressions"))


def _matches(labels: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    key, operator = str(rule.get("key")), rule.get("operator")
    listed = rule.get("values")
    values = [str(value) for value in listed] if isinstance(listed, list) else []
    value = labels.get(key)
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator == "In":
        return key in labels and str(value) in values
    if operator == "NotIn":
        return str(value) not in values
    try:
        number, limit = float(str(value)), float(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit if operator == "Lt" else False


def allows_node(pod: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return whether selector, required node affinity and tolerations of a pod allow a node."""
    return selects_node(pod, node) and all(
        _tolerates(pod, taint) for taint in objects(node, "spec", "taints")
    )


def selects_node(pod: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    """Return whether selector and required node affinity of a pod allow a node."""
    labels = {**mapping(node, "metadata", "labels"), "metadata.name": name_of(node)}
    selector = mapping(pod, "spec", "nodeSelector")
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = get(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = list(objects(required, "nodeSelectorTerms"))
    return not terms or any(
        all(_matches(labels, rule) for rule in objects(term, "matchExpressions"))
        and all(_matches(labels, rule) for rule in objects(term, "matchFields"))
        for term in terms
    )


def _tolerates(pod: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if taint.get("effect") not in EFFECTS or taint.get("key") == "node.kubernetes.io/unschedulable":
        return True
    for toleration in objects(pod, "spec", "tolerations"):
        is_effect = toleration.get("effect") in (None, "", taint.get("effect"))
        key, exists = toleration.get("key"), toleration.get("operator") == "Exists"
        if not is_effect or (key not in (None, "") and key != taint.get("key")):
            continue
        if exists or (toleration.get("value") or "") == (taint.get("value") or ""):
            return True
    return False


def namespace_of(item: Mapping[str, Any]) -> str:
    """Return the namespace of an object."""
    return str(get(item, "metadata", "namespace") or "default")


def selects(term: Mapping[str, Any], pod: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a term of a pod's affinity or spread selects another pod: by namespace and labels.

    A term without a selector selects none. Namespaces that are selected by labels count as all.
    """
    selector = get(term, "labelSelector")
    if not isinstance(selector, Mapping):
        return False
    names = get(term, "namespaces")
    allowed = {str(name) for name in names} if isinstance(names, list) else set()
    if not allowed and get(term, "namespaceSelector") is None:
        allowed = {namespace_of(pod)}
    in_namespace = get(term, "namespaceSelector") is not None or namespace_of(other) in allowed
    return in_namespace and matches(mapping(other, "metadata", "labels"), selector)


def owner_of(pod: Mapping[str, Any]) -> str:
    """Return namespace and name of the owner of a pod; of a ReplicaSet, its Deployment; "" for none."""
    for owner in objects(pod, "metadata", "ownerReferences"):
        name = str(owner.get("name") or "")
        if owner.get("kind") == "ReplicaSet":
            name = HASH.sub("", name)
        if name:
            return f"{namespace_of(pod)}/{name}"
    return ""


def moving_at_once(pod: Mapping[str, Any], budgets: Sequence[tuple[Mapping[str, Any], float]]) -> float:
    """Return the number of such pods that may be evicted at once; inf for as many as there are.

    budgets  disruption budgets, and the pods that each allows to be evicted
    """
    annotations = mapping(pod, "metadata", "annotations")
    if any(str(annotations.get(name)).lower() == value for name, value in FIXED):
        return 0.0
    if not owner_of(pod):
        return 0.0
    return min((allowed for budget, allowed in budgets if _protects(budget, pod)), default=math.inf)


def _protects(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Return whether a disruption budget is for a pod; one without a selector is for none."""
    selector = get(budget, "spec", "selector")
    if not isinstance(selector, Mapping) or namespace_of(budget) != namespace_of(pod):
        return False
    return matches(mapping(pod, "metadata", "labels"), selector)


def allowed_disruptions(budget: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], where: str) -> float:
    """Return the pods that a disruption budget allows to be evicted at once.

    Its status says so; without one they follow from `minAvailable` or `maxUnavailable`, where all pods that
    run and are not said to be unready are healthy. Shares are rounded up, as Kubernetes does.

    raises  InputError for numbers that are none
    """
    stated = get(budget, "status", "disruptionsAllowed")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return float(max(stated, 0))
    matched = [pod for pod in pods if _protects(budget, pod)]
    healthy = sum(_is_healthy(pod) for pod in matched)
    unavailable, available = get(budget, "spec", "maxUnavailable"), get(budget, "spec", "minAvailable")
    if unavailable is not None:
        least = len(matched) - _count_of(unavailable, len(matched), where)
    elif available is not None:
        least = _count_of(available, len(matched), where)
    else:
        return 1.0
    return max(float(healthy - least), 0.0)


def _is_healthy(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod runs and its conditions do not say that it is unready."""
    is_unready = any(
        condition.get("type") == "Ready" and condition.get("status") != "True"
        for condition in objects(pod, "status", "conditions")
    )
    return get(pod, "status", "phase") in (None, "Running") and not is_unready


def _count_of(value: object, total: int, where: str) -> int:
    """Return a number of pods that is given as such, or as a percentage of all, rounded up."""
    text = str(value).strip()
    match = re.fullmatch(r"(\d+)(%?)", text)
    if match is None:
        raise InputError(f"{where}: '{text[:40]}' must be a whole number or a percentage such as 50%")
    return math.ceil(int(match[1]) * total / 100) if match[2] else int(match[1])


Rule = tuple[str, str, str, float, str]
"""Kind, group, domain, largest number of members in one, and target of a row of the table of rules."""


@dataclass(eq=False)
class PodRules:
    """Rules of shapes of pods.

    names     of the shapes
    examples  a pod of each
    nodes     all nodes; types, a node of each type
    pods      all pods, with their shapes
    budgets   disruption budgets, and the pods that each allows to be evicted
    """

    names: list[str]
    examples: list[Mapping[str, Any]]
    nodes: list[Mapping[str, Any]]
    types: Mapping[str, Mapping[str, Any]]
    pods: list[Mapping[str, Any]]
    shape_of: list[int]
    budgets: Sequence[tuple[Mapping[str, Any], float]] = ()
    groups: list[list[str]] = field(default_factory=list)
    _rules: list[Rule] = field(default_factory=list)

    def tabulate(self) -> tuple[list[Rule], list[str]]:
        """Return the rules of all shapes, and the groups of each."""
        self.groups = [[] for _ in self.names]
        for shape in range(len(self.names)):
            self._forbid_types(shape)
            self._limit_members(shape)
        for shape in range(len(self.names)):
            for term in objects(self.examples[shape], "spec", "affinity", "podAffinity", REQUIRED):
                self._place_near(shape, term)
        self._share_budgets()
        tightest = {(*rule[:3], rule[4]): rule for rule in sorted(self._rules, key=lambda rule: -rule[3])}
        return list(tightest.values()), ["; ".join(dict.fromkeys(group)) for group in self.groups]

    def _add(self, rule: Rule, members: Sequence[int]) -> None:
        self._rules.append(rule)
        for row in members:
            self.groups[row].append(rule[1])

    def _selected(self, shape: int, term: Mapping[str, Any]) -> list[int]:
        """Return the shapes that a term of one selects."""
        pod = self.examples[shape]
        return [row for row, other in enumerate(self.examples) if selects(term, pod, other)]

    def _share_budgets(self) -> None:
        """Add the limits of disruption budgets that several shapes share."""
        for budget, allowed in self.budgets:
            members = [row for row, pod in enumerate(self.examples) if _protects(budget, pod)]
            if len(members) > 1 and allowed >= 1:
                name = f"budget {namespace_of(budget)}/{name_of(budget)}"
                self._add(("at_once", name, "host", allowed, ""), members)

    def _forbid_types(self, shape: int) -> None:
        """Add the types of nodes that do not allow a pod; none, with a warning, where no type does."""
        name, pod = self.names[shape], self.examples[shape]
        not_on = [kind for kind, node in self.types.items() if not allows_node(pod, node)]
        if len(not_on) == len(self.types):
            add_note(f"warning: no node allows pods of '{name}': they are placed as if any did")
            return
        for kind in not_on:
            self._add(("not_on", name, "host_type", 1.0, kind), [shape])

    def _limit_members(self, shape: int) -> None:
        """Add the limits of anti-affinity and spread constraints of a shape.

        Pods that all keep away from each other are at most one in a domain. Others are apart from those that
        they name, and where they name themselves too, from each other.
        """
        name, pod = self.names[shape], self.examples[shape]
        for domain, term in _anti_affinities(pod):
            members = self._selected(shape, term)
            if shape in members and all(self._keeps_away(row, domain, members) for row in members):
                self._add(("spread", f"{name} {domain}", domain, 1.0, ""), members)
                continue
            if shape in members:
                self._add(("spread", f"{name} {domain}", domain, 1.0, ""), [shape])
            others = [row for row in members if row != shape]
            if others:
                target = f"apart from {name} {domain}"
                self._add(("apart", name, domain, 1.0, target), [shape])
                for row in others:
                    self.groups[row].append(target)
        for term in objects(pod, "spec", "topologySpreadConstraints"):
            domain, members = _domain_of(term), self._selected(shape, term)
            if term.get("whenUnsatisfiable", "DoNotSchedule") != "DoNotSchedule" or not domain:
                continue
            if shape in members:
                limit = self._most_of_spread(domain, _skew_of(term, name), term, pod)
                self._add(("spread", f"{name} {domain}", domain, limit, ""), members)
            elif members:
                add_note(f"warning: '{name}' is spread by pods of others, which is not modelled")

    def _keeps_away(self, shape: int, domain: str, members: Sequence[int]) -> bool:
        """Return whether pods of a shape keep away from all of some shapes, their own too."""
        return any(
            its_domain == domain and set(members) <= set(self._selected(shape, term))
            for its_domain, term in _anti_affinities(self.examples[shape])
        )

    def _place_near(self, shape: int, term: Mapping[str, Any]) -> None:
        """Add the rule of a required affinity to pods.

        Pods and those that they are near are together where they all are today, or none is placed, and where
        no rule keeps them apart; a note names the others.
        """
        name, domain, near = self.names[shape], _domain_of(term), self._selected(shape, term)
        members = sorted({shape, *near})
        limited = {rule[1] for rule in self._rules if rule[0] == "spread" and rule[2] == domain}
        is_apart = any(limited & set(self.groups[row]) for row in members)
        if not domain or not near or is_apart or len(self._domains_today(members, domain)) > 1:
            where = {"host": "several hosts", "zone": "several zones"}.get(domain, "other domains")
            add_note(f"warning: '{name}' is near pods that are in {where}, or none, which is not modelled")
            return
        self._add(("together", f"{name} together in a {domain}", domain, 1.0, ""), members)

    def _domains_today(self, shapes: Sequence[int], domain: str) -> set[str]:
        """Return the hosts or zones where pods of some shapes are today."""
        zones = {name_of(node): zone_of(node) for node in self.nodes}
        hosts = {
            str(get(pod, "spec", "nodeName"))
            for pod, shape in zip(self.pods, self.shape_of, strict=True)
            if shape in shapes and get(pod, "spec", "nodeName")
        }
        return hosts if domain == "host" else {zones.get(host, "") for host in hosts}

    def _most_of_spread(
        self, domain: str, skew: float, term: Mapping[str, Any], pod: Mapping[str, Any]
    ) -> float:
        """Return the most members of a domain: a skew above an equal share in the others.

        Domains are those of nodes that selectors and node affinity of the pod allow; taints do not count.
        """
        members = sum(selects(term, pod, other) for other in self.pods)
        nodes = [node for node in self.nodes if selects_node(pod, node)] or self.nodes
        domains = len(nodes) if domain == "host" else len({zone_of(node) for node in nodes})
        return max(1.0, math.floor((members + skew * (domains - 1)) / max(domains, 1)), skew)


def _anti_affinities(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield domain and term of each required anti-affinity of a pod; notes name what is not modelled."""
    for term in objects(pod, "spec", "affinity", "podAntiAffinity", REQUIRED):
        domain = _domain_of(term)
        if domain:
            yield domain, term
        else:
            key = term.get("topologyKey")
            add_note(f"warning: '{owner_of(pod)}' is spread over '{key}', which is not modelled")


def _skew_of(term: Mapping[str, Any], name: str) -> float:
    """Return the largest difference between domains that a spread allows; raises InputError for others."""
    skew = 1 if term.get("maxSkew") is None else term["maxSkew"]
    if not isinstance(skew, int) or isinstance(skew, bool) or skew < 1:
        raise InputError(f"pods of '{name}': maxSkew is {str(skew)[:40]!r}, must be a whole number from 1")
    return float(skew)


def _domain_of(term: Mapping[str, Any]) -> str:
    key = term.get("topologyKey")
    return "host" if key == HOST_LABEL else "zone" if key in ZONE_LABELS else ""
