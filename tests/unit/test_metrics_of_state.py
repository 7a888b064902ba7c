"""What is measured of a state and when it is shown, and that the page and the dashboard name what there is."""

import json
import re
import time
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace

import pytest

from eray._core import events
from eray._core.metrics import JOB, METRICS, gauges, job_name, observations
from eray._core.rendezvous import State, apply
from eray._core.topology import Node, Phase
from eray._core.world import Facts, JoinRequest, Stage
from eray._ray.metrics import Metrics

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "examples/grafana/eray.json"
SUFFIXES = r"(?:_bucket|_count|_sum)?"
NAMES = {metric.name: metric for metric in METRICS}


class Story:
    """Feeds the real core with events at told times, and keeps what each adds to the histograms."""

    def __init__(self, job=None):
        self.state, self.observed = State(job=job), []

    def at(self, now, *happened):
        for event in happened:
            before = self.state
            self.state = apply(before, event, now)
            for name, world in self.state.worlds.items():
                if before.worlds.get(name) is not world:
                    found = observations(before.worlds.get(name), world)
                    self.observed += [(sample.tags["until"], sample.value) for sample in found]

    def gauges(self):
        found = {}
        for sample in gauges(self.state):
            metric = NAMES[sample.name]
            assert metric.kind == "gauge"
            assert set(sample.tags) == set(metric.tags)
            key = (sample.name, *sample.tags.values())
            assert key not in found, "a series has two values"
            found[key] = sample.value
        return found


class Schedule:
    """As much of an event loop as timers need, with a clock that the test moves."""

    def __init__(self):
        self.now, self.due = 100.0, []

    def time(self):
        return self.now

    def call_at(self, when, call):
        timer = [when, call]
        self.due.append(timer)
        return SimpleNamespace(cancel=lambda: timer in self.due and self.due.remove(timer))

    def move_to(self, now):
        while self.due and min(self.due, key=itemgetter(0))[0] <= now:
            timer = min(self.due, key=itemgetter(0))
            self.due.remove(timer)
            self.now = max(self.now, timer[0])
            timer[1]()
        self.now = now


class Watched:
    """The metrics of a story, and what they set at which time."""

    def __init__(self):
        self.story, self.schedule, self.set = Story({"key": "local-1"}), Schedule(), []
        self.metrics = Metrics("local-1", {name: self.instrument(name) for name in NAMES}, lambda: self.schedule)

    def instrument(self, name):
        return lambda value, tags: self.set.append((self.schedule.now, name, value, tags))

    def happen(self, now, *happened):
        self.schedule.move_to(now)
        for event in happened:
            before = self.story.state
            self.story.at(now, event)
            for name, world in self.story.state.worlds.items():
                self.metrics.observe(before.worlds.get(name), world)
            self.metrics.offer(self.story.state)
        self.schedule.move_to(now)

    def values(self, name):
        return [(now, value) for now, named, value, tags in self.set if named == name]


def joined(index, count=2, world="main", generation=None):
    facts = Facts(node="n0", pid=100 + index)
    return events.Joined(
        JoinRequest(
            world=world,
            generation=generation,
            process_index=index,
            process_count=count,
            join_id=f"{generation}-{index}",
            facts=facts,
        )
    )


def running(index, world="main", generation=1):
    return events.Reported(world, generation, index, Stage.RUNNING)


def node(rank):
    return events.NodeAdded(Node(node_rank=rank, name=f"n{rank}"))


def test_empty_cluster_has_every_value_that_is_known():
    found = Story().gauges()
    assert found.pop(("eray_coordinator_epoch",)) == 1
    assert set(found.values()) == {0}
    assert {name for name, *_ in found} == {
        "eray_nodes",
        "eray_worlds",
        "eray_restarts",
        "eray_preemption_notice",
    }
    assert {key[1] for key in found if key[0] == "eray_worlds"} == set(Phase)


def test_gauges_follow_nodes_joins_and_phases():
    story = Story({"id": "4711", "key": "4711.0", "node_count": 3})
    story.at(100.0, node(0), node(1), joined(0), joined(0, count=3, world="other"))
    story.at(101.0, events.NodeLost(1, "silent"), events.Warned("USR1 at n0"))
    found = story.gauges()
    assert (found["eray_nodes",], found["eray_nodes_expected",]) == (1, 3)
    assert (found["eray_processes_joined", "main"], found["eray_processes_expected", "main"]) == (1, 2)
    assert (found["eray_processes_joined", "other"], found["eray_processes_expected", "other"]) == (1, 3)
    assert (found["eray_worlds", "forming"], found["eray_worlds", "running"]) == (2, 0)
    assert found["eray_preemption_notice",] == 1
    assert job_name(story.state) == "4711"


def test_job_without_slurm_goes_by_the_key_of_its_cluster():
    assert job_name(State(job={"id": None, "key": "local-1a2b3c4d"})) == "local-1a2b3c4d"
    assert job_name(State(job={})) == job_name(State()) == ""


def test_join_is_timed_from_the_first_process_and_not_from_the_declaration():
    story = Story()
    story.at(100.0, events.WorldDeclared("main", 2, 1, None))
    story.at(110.0, joined(0))
    assert story.observed == []
    story.at(112.5, joined(1))
    story.at(114.0, running(0))
    story.at(117.0, running(1))
    story.at(118.0, running(1), events.Reported("main", 1, 0, Stage.LEFT))
    assert story.observed == [("planned", 2.5), ("running", 7.0)]


def test_world_that_is_started_again_counts_a_restart_and_is_timed_anew():
    story = Story()
    story.at(100.0, joined(0), joined(1), events.ProcessDied("main", 1, 1, "signal 9", -9))
    story.at(150.0, joined(0, generation=2))
    story.at(151.0, joined(1, generation=2))
    found = story.gauges()
    assert (found["eray_restarts",], found["eray_world_generation", "main"]) == (1, 2)
    assert story.observed == [("planned", 0.0), ("planned", 1.0)]


def test_world_that_had_closed_is_not_started_again_by_the_next_of_its_name():
    story = Story()
    story.at(100.0, joined(0, count=1), running(0), events.Reported("main", 1, 0, Stage.LEFT))
    story.at(200.0, joined(0, count=1, generation=2))
    found = story.gauges()
    assert (found["eray_restarts",], found["eray_world_generation", "main"]) == (0, 2)


def test_restarts_count_on_when_a_world_forgets_its_oldest():
    story = Story()
    for generation in range(1, 41):
        died = events.ProcessDied("main", generation, 0, "signal 9", -9)
        story.at(float(generation), joined(0, count=1, generation=generation), died)
    assert story.gauges()["eray_restarts",] == 39
    assert len(story.state.worlds["main"].restarts) < 39


def test_clock_that_jumps_back_makes_no_negative_time():
    story = Story()
    story.at(100.0, joined(0))
    story.at(40.0, joined(1))
    assert story.observed == [("planned", 0.0)]


def test_gauges_show_the_newest_state_at_once_and_then_once_a_second():
    watched = Watched()
    watched.happen(200.0, node(0))
    watched.happen(200.25, node(1))
    watched.happen(200.5, node(2))
    watched.happen(202.5, node(3))
    assert watched.values("eray_nodes") == [(200.0, 1), (201.0, 3), (202.5, 4)]


def test_gauges_are_set_again_while_nothing_happens():
    watched = Watched()
    watched.happen(200.0, node(0))
    watched.schedule.move_to(210.0)
    assert watched.values("eray_nodes") == [(200.0, 1), (204.0, 1), (208.0, 1)]
    assert len(watched.schedule.due) == 1


def test_histogram_misses_nothing_that_happens_between():
    watched = Watched()
    watched.happen(200.0, joined(0, count=1))
    watched.happen(200.1, running(0), events.Reported("main", 1, 0, Stage.LEFT))
    watched.happen(200.2, joined(0, count=1, generation=2), running(0, generation=2))
    seen = [(tags[JOB], tags["until"]) for _, name, _, tags in watched.set if name == "eray_join_seconds"]
    assert seen == [("local-1", "planned"), ("local-1", "running")] * 2


def test_ten_thousand_processes_cost_as_much_as_two():
    def cost_s(count):
        story = Story()
        story.at(1.0, events.WorldDeclared("main", count, 1, None), joined(0, count=count))
        times = []
        for _ in range(20):
            began = time.perf_counter()
            list(gauges(story.state))
            times.append(time.perf_counter() - began)
        return min(times)

    assert cost_s(10_000) < 10 * cost_s(2)


def test_page_lists_each_metric_with_its_type_and_tags():
    page = (ROOT / "docs/metrics.md").read_text()
    rows = dict(re.findall(r"^\| `ray_(eray_\w+)` \| ([^|]+ \| [^|]*) \|", page, re.MULTILINE))
    assert rows == {
        name: f"{metric.kind} | {', '.join(f'`{tag}`' for tag in metric.tags)}".rstrip()
        if metric.tags
        else f"{metric.kind} | "
        for name, metric in NAMES.items()
    }


def panels_of(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


@pytest.fixture(scope="module")
def dashboard():
    return json.loads(DASHBOARD.read_text())


def test_dashboard_panels_have_ids_of_their_own_and_room(dashboard):
    panels = list(panels_of(dashboard))
    assert len({panel["id"] for panel in panels}) == len(panels) > 5
    places = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, f"{panel['title']} lies on another panel"
        places |= cells


def test_dashboard_asks_for_metrics_and_tags_that_there_are(dashboard):
    known = "|".join(re.escape(name) for name in NAMES)
    asked, text = set(), json.dumps(dashboard)
    for word in re.findall(r"\w*eray_\w+", text):
        match = re.fullmatch(rf"ray_({known}){SUFFIXES}", word)
        assert match is not None or word == JOB, f"{word} is no metric"
        if match is not None:
            asked.add(match[1])
            assert (word != f"ray_{match[1]}") == (NAMES[match[1]].kind == "histogram"), word
    assert asked == set(NAMES), "each metric has its panel"
    tags = {JOB, "le", *(tag for metric in METRICS for tag in metric.tags)}
    for panel in panels_of(dashboard):
        for target in panel.get("targets", []):
            for group in re.findall(r"by ?\(([^)]*)\)", target["expr"]):
                assert {tag.strip() for tag in group.split(",")} <= tags
            assert set(re.findall(r"(\w+)[=!]~?\"", target["expr"])) <= tags
            assert set(re.findall(r"{{(\w+)}}", target.get("legendFormat", ""))) <= tags


def test_dashboard_imports_anywhere(dashboard):
    assert {given["name"] for given in dashboard["__inputs"]} == {"DS_PROMETHEUS"}
    assert dashboard["id"] is None
    for panel in panels_of(dashboard):
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${DS_PROMETHEUS}"}
