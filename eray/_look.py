"""Look at a cluster from anywhere: from its nodes, the batch script, the login node, while it runs or afterwards."""

from eray._bringup import Site
from eray._core.picture import Picture
from eray.errors import RayAttachError


class Window:
    """An open view of one cluster; ``picture()`` draws it anew."""

    def __init__(self, site: Site, wanted: str | None = None) -> None:
        """Find the cluster of the job ``wanted``, of the job around, or the one of this machine.

        Raises:
            RayAttachError: there is none.
            UsageError: there are several.
        """
        raise RayAttachError(site.node, "not yet", "later")

    def picture(self) -> Picture:
        """Return the cluster as it is now, or how it was at its end."""
        raise NotImplementedError

    def close(self) -> None:
        """Hang up."""
