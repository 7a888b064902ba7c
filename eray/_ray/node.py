"""``supervise``: one node of a cluster from its start to its end, as the head or as a member."""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, MutableMapping

from eray._core.nodespec import NodeSpec
from eray._core.outcome import keeps_logs
from eray._core.tracks import Recorder
from eray._io.channel import Channel
from eray._io.log_lines import log_change
from eray._io.threads import in_daemon_thread
from eray._io.ward import Ward
from eray._ray import home, job_home
from eray._ray.driver import HeadDriver
from eray._ray.head import Head
from eray._ray.noted import recorder
from eray._ray.notices import fault, say
from eray._ray.refusal import dial, tell_others
from eray._ray.signals import Signals
from eray._ray.supervisor import Message, Supervisor
from eray._ray.tenant import refused
from eray.errors import BeaconError, ChannelClosed, ClusterLostError, ErayError, NodeLockedError

logger = logging.getLogger(__name__)

HEAD_ACTS_S = 3.0
HOME_S = 3.0
"""How long the end of a cluster waits for the home: Ray's files, and we, are to be gone soon."""
POST_S = 2.0
EXIT_CLUSTER = ClusterLostError.exit_code
COME_AGAIN: None = None
"""Instead of a code: this node takes part anew."""
COME_AGAIN_S = 10.0
"""How long, at least, a node looks for a head that it has lost."""


def supervise(
    spec: NodeSpec,
    environ: MutableMapping[str, str],
    ray_environ: Mapping[str, str],
    listening: Callable[[], None] = lambda: None,
    *,
    led: bool = False,
) -> int:
    """Serve this node until the cluster ends, and return the exit code.

    Args:
        spec: the node.
        environ: this process's own, which the world's processes inherit; Ray's authentication is set in it.
        ray_environ: what Ray's processes inherit, without the ranks of the task that starts them.
        listening: called when the node's processes may connect.
        led: a launcher's word comes on standard input (``signals``).

    Raises:
        ErayError: the node cannot take part.
    """
    spans = recorder("supervisor")
    spans.begin("lock")
    try:
        with home.prepare(spec):
            spans.end("lock")
            ward = Ward([spec.ray_dir, spec.run_dir], ray_environ)
            try:
                return asyncio.run(_serve(spec, environ, ray_environ, ward, listening, spans, led=led))
            finally:
                ward.dismiss()
    except NodeLockedError as exc:
        return refused(spec, exc)  # the others see it themselves
    except BeaconError:
        raise  # the others cannot be told
    except ErayError as exc:
        tell_others(spec, exc)
        raise


async def _serve(
    spec: NodeSpec,
    environ: MutableMapping[str, str],
    ray_environ: Mapping[str, str],
    ward: Ward,
    listening: Callable[[], None],
    spans: Recorder,
    *,
    led: bool,
) -> int:
    try:
        patience_s = spec.cluster_timeout_s
        while True:
            supervisor = Supervisor(spec, environ, ray_environ, ward, spans)
            code = await _take_part(spec, supervisor, listening, patience_s, led=led)
            if code is not COME_AGAIN:
                return code
            patience_s = max(COME_AGAIN_S, 2 * spec.node_timeout_s)
            await asyncio.to_thread(home.renew, spec)
    finally:
        await asyncio.to_thread(home.clear, spec)


async def _take_part(
    spec: NodeSpec, supervisor: Supervisor, listening: Callable[[], None], patience_s: float, *, led: bool
) -> int | None:
    def told_listening() -> None:
        listening()
        supervisor.has_caller = spec.purpose == "tasks"

    supervisor.listen()
    home.announce_beacon(spec)
    watching = asyncio.create_task(home.watch_room(spec))
    code: int | None = EXIT_CLUSTER
    try:
        if spec.node_rank == 0:
            code = await _lead(spec, supervisor, told_listening, led=led)
        else:
            code = await _follow(spec, supervisor, told_listening, patience_s, led=led)
    except ErayError as exc:
        if not (supervisor.has_processes or supervisor.has_caller):
            raise
        supervisor.fail(exc)
        code = exc.exit_code
    finally:
        watching.cancel()
        await supervisor.stop()
        log_change(logger, "node-ended", node=spec.node, node_rank=spec.node_rank, code=code)
        await _leave_home(spec, EXIT_CLUSTER if code is COME_AGAIN else code)
    return code


async def _leave_home(spec: NodeSpec, code: int) -> None:
    """Keep the logs of a job; of a cluster of this machine alone only where the cluster failed."""
    if not keeps_logs(spec.job, code):
        return
    try:
        async with asyncio.timeout(HOME_S):
            await in_daemon_thread(_keep_logs, spec, code)
    except TimeoutError:
        say(f"the logs of node {spec.node} are not all kept: {spec.state_dir} does not take them within {HOME_S:g} s")


def _keep_logs(spec: NodeSpec, code: int) -> None:
    kept = job_home.keep_logs(spec)
    if kept is not None and code == EXIT_CLUSTER:
        say(f"the logs of node {spec.node} are in {kept}")


async def _lead(spec: NodeSpec, supervisor: Supervisor, listening: Callable[[], None], *, led: bool) -> int:
    loop = asyncio.get_running_loop()
    if spec.auth == "disabled":
        say("ERAY_AUTH=disabled: whoever reaches a port of this cluster can run programs in it as you")
    driver = HeadDriver(spec, supervisor.environ, attached=lambda: loop.call_soon_threadsafe(signals.heed))
    head = Head(spec, supervisor, driver)

    def on_signal(number: int) -> None:
        if head.finish(128 + number) and spec.purpose != "tasks":
            say(f"{signal.Signals(number).name}: stopping")

    signals = Signals(on_signal, supervisor.warn, supervisor.forward, warnings=spec.preemption_signals, led=led)

    def load() -> None:
        with supervisor.spans.during("import ray"):
            driver.load()

    beside = [asyncio.create_task(in_daemon_thread(load)), asyncio.create_task(in_daemon_thread(job_home.begin, spec))]
    supervisor.spans.begin("roll-call")
    code = await head.run(listening)
    for task in beside:
        task.cancel()
    return code


async def _follow(
    spec: NodeSpec, supervisor: Supervisor, listening: Callable[[], None], patience_s: float, *, led: bool
) -> int | None:
    """Take part under the head's orders: they end the node, or the loss of the head does.

    Where the cluster goes on without it, a node that lost its head, or is sent away, comes again with nothing of its
    own left (COME_AGAIN): the network may be back in a moment.
    """
    listening()
    outbox: asyncio.Queue[Message] = asyncio.Queue()
    supervisor.emit = outbox.put_nowait
    loop = asyncio.get_running_loop()
    stop = loop.create_future()

    def on_signal(number: int) -> None:
        # The head gets the same signal from Slurm, or acts on ours; it says stop, so that all nodes end in order.
        outbox.put_nowait({"type": "signal", "number": number})
        loop.call_later(HEAD_ACTS_S, lambda: None if stop.done() else stop.set_result(128 + number))

    Signals(on_signal, supervisor.warn, supervisor.forward, warnings=spec.preemption_signals, led=led)
    supervisor.spans.begin("roll-call")
    dialling = asyncio.create_task(
        dial(spec, patience_s, lambda text: supervisor.handle({"type": "progress", "text": text}))
    )
    await asyncio.wait({dialling, stop, supervisor.idle}, return_when=asyncio.FIRST_COMPLETED)
    if not dialling.done():
        dialling.cancel()
        return int(stop.result()) if stop.done() else 0
    channel = dialling.result()
    await channel.send(supervisor.report().to_dict())
    supervisor.spans.end("roll-call")
    sender = asyncio.create_task(_post(channel, outbox))
    reader = asyncio.create_task(_obey(channel, supervisor))
    await asyncio.wait({sender, reader, stop, supervisor.idle}, return_when=asyncio.FIRST_COMPLETED)
    if supervisor.idle.done() and not reader.done():
        posted = asyncio.create_task(outbox.join())
        await asyncio.wait({posted, sender, reader}, timeout=POST_S, return_when=asyncio.FIRST_COMPLETED)
        await supervisor.stop()
        return 0
    sender.cancel()
    if stop.done():
        return int(stop.result())
    may_come_again = spec.purpose == "up" or (spec.world is not None and spec.world.rule.max_restarts > 0)
    try:
        if await reader == "come-again":
            return COME_AGAIN
        await supervisor.stop()
        await channel.close()  # the head waits for it: the node is clean now
        return 0
    except ChannelClosed as exc:
        found = f"the head's supervisor is gone ({exc.reason})"
        if may_come_again:
            say(f"node {spec.node}: {found}; its processes are ended, and it looks for the head to take part again")
            supervisor.abandon(found)
            return COME_AGAIN
        error = ClusterLostError(spec.nodes[0], found, "see the first error of this job, and the logs of that node")
    except Exception as exc:
        error = fault(spec.node, exc)
    supervisor.fail(error)
    return error.exit_code


async def _post(channel: Channel, outbox: "asyncio.Queue[Message]") -> None:
    while True:
        await channel.send(await outbox.get())
        outbox.task_done()


async def _obey(channel: Channel, supervisor: Supervisor) -> str:
    """Carry out the head's orders until one ends this node, and return that; raises ChannelClosed without a head."""
    while True:
        message = await channel.receive()
        if message["type"] in ("stop", "come-again"):
            return str(message["type"])
        supervisor.handle(message)
