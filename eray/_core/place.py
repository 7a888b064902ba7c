"""Where a command runs: on which node of which job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One host, and the job around it.

    ``nodes`` are the job's or step's in Slurm's order, empty where there is no job or its list cannot be read.
    ``name`` is Slurm's name of this node, the host's where it is none of them (``inside`` is false then). ``head`` is
    what the other nodes dial: a node's name, or what ERAY_HEAD says.
    """

    environment: str
    nodes: tuple[str, ...]
    name: str
    inside: bool
    head: str | None

    @property
    def several(self) -> bool:
        """Whether this host has to work with others."""
        return self.inside and len(self.nodes) > 1

    @property
    def is_head(self) -> bool:
        """Whether this is the head: the node that ERAY_HEAD names, else the first."""
        leader = self.head if self.head in self.nodes else next(iter(self.nodes), None)
        return self.inside and self.name == leader


def place_of(environment: str, nodes: tuple[str, ...], *, name: str | None, hostname: str, head: str | None) -> Place:
    """Find this host among the nodes: by Slurm's own word for it, else by its host name, with or without a domain."""
    short = hostname.partition(".")[0]
    own = name or next((node for node in nodes if node == hostname or node.partition(".")[0] == short), None)
    return Place(environment, nodes, own or hostname, own is not None, head or next(iter(nodes), None))
