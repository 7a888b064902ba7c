"""The checks of `eray doctor`: facts in, findings out."""

from dataclasses import dataclass
from typing import Any

from eray._core.checkup_network import Network, check_network
from eray._core.checkup_node import Node, check_node
from eray._core.checkup_software import Software, check_software
from eray._core.finding import Finding, Status
from eray._core.place import Place


@dataclass(frozen=True)
class Facts:
    """All that was found out on one node."""

    place: Place
    network: Network
    node: Node
    software: Software


@dataclass(frozen=True)
class Checkup:
    """The findings on one node, in a fixed order."""

    node: str
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """3 where there is an error, else 0."""
        return 3 if any(finding.status is Status.ERROR for finding in self.findings) else 0

    def records(self) -> list[dict[str, Any]]:
        """Return a record a finding, as JSON types, with the stable field names of ``eray doctor --json``."""
        return [{"node": self.node, **finding.to_json()} for finding in self.findings]


def check(facts: Facts) -> Checkup:
    """Judge what was found on a node."""
    place = facts.place
    findings = (
        *check_software(place, facts.software),
        *check_network(place, facts.network),
        *check_node(place, facts.node),
    )
    return Checkup(place.name, findings)
