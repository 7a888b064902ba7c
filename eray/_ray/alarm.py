"""What the head does when the job is about to end: everybody is told, once."""

import logging

from eray._io.log_lines import log_change
from eray._ray.driver import HeadDriver
from eray._ray.news import News
from eray._ray.nodes import Nodes
from eray._ray.notices import say
from eray._ray.supervisor import Message

logger = logging.getLogger(__name__)


class Alarm:
    """Keeps the first warning and tells it to people, to the coordinator and to the nodes, to later ones too."""

    def __init__(self, nodes: Nodes, driver: HeadDriver, news: News) -> None:
        self._nodes, self._driver, self._news = nodes, driver, news
        self._reason: str | None = None

    def raise_for(self, reason: str) -> None:
        """Take a warning of a node or a process."""
        if self._reason is None:
            self._spread(reason)
            self._news.tell(self._driver.warn, reason)

    def heard(self, notice: Message | None) -> None:
        """Take what the coordinator knows; a process that no supervisor serves may have told it."""
        if notice is not None and self._reason is None:
            self._spread(str(notice["reason"]))

    def repeat(self, rank: int) -> None:
        """Tell a node that has just come."""
        if self._reason is not None:
            self._nodes.send(rank, {"type": "preemption", "reason": self._reason})

    def _spread(self, reason: str) -> None:
        self._reason = reason
        log_change(logger, "preemption", reason=reason)
        say(f"{reason}: this job is about to end; its processes are told")
        self._nodes.broadcast({"type": "preemption", "reason": reason})
