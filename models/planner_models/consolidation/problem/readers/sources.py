"""Sources of problems of system `consolidation`: files of clusters and hypervisors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.hypervisors import openstack, virsh
from planner_models.consolidation.problem.readers.kubectl import kubectl
from planner_models.consolidation.problem.readers.prometheus import prometheus
from planner_models.consolidation.problem.readers.vsphere import vsphere

SOURCES: Final[dict[str, Callable[..., Consolidation]]] = {
    "kubectl": kubectl,
    "virsh": virsh,
    "openstack": openstack,
    "vsphere": vsphere,
    "prometheus": prometheus,
}
