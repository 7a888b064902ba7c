"""Where the processes of a launched world go."""

from dataclasses import replace

import pytest

from eray._core.gang_layout import Ask, Room, ask_again, eligible, found, process_order, seats
from eray.errors import UsageError


def room(rank, cpus=8, gpus=0, free_cpus=None, free_gpus=None):
    free = (cpus if free_cpus is None else free_cpus, gpus if free_gpus is None else free_gpus)
    return Room(rank, f"n{rank}", f"id{rank}", cpus, gpus, *free)


def rows(ask, rooms):
    placed = seats(ask, rooms)
    return placed and [(seat.node_rank, seat.local_index, seat.local_count, seat.cpus, seat.gpus) for seat in placed]


TWO = (room(1), room(0))


@pytest.mark.parametrize(
    ("ask", "rooms", "expected"),
    [
        (Ask(), TWO, [(0, 0, 1, 8, 0), (1, 0, 1, 8, 0)]),
        (Ask(processes_per_node=2), TWO, [(0, 0, 2, 4, 0), (0, 1, 2, 4, 0), (1, 0, 2, 4, 0), (1, 1, 2, 4, 0)]),
        (Ask(processes=3), TWO, [(0, 0, 2, 4, 0), (0, 1, 2, 4, 0), (1, 0, 1, 8, 0)]),
        (Ask(processes=1), TWO, [(0, 0, 1, 8, 0)]),
        (Ask(processes=1), (room(0, free_cpus=7), room(1)), [(1, 0, 1, 8, 0)]),
        (Ask(processes=3), (room(0, 8), room(1, 1)), [(0, 0, 2, 4, 0), (0, 1, 2, 4, 0), (1, 0, 1, 1, 0)]),
        (Ask(processes_per_node=4), (room(0, 2),), [(0, at, 4, 0.5, 0) for at in range(4)]),
        (Ask(processes_per_node=3), (room(0, 2),), [(0, at, 3, 0.6666, 0) for at in range(3)]),
        (Ask(processes_per_node=3), (room(0, 8),), [(0, at, 3, 2, 0) for at in range(3)]),
        (Ask(cpus_per_process=0), (room(0, 8, free_cpus=0),), [(0, 0, 1, 0, 0)]),
        (Ask(cpus_per_process=9), TWO, None),
        (Ask(), (room(0), room(1, free_cpus=4)), None),
        (Ask(), (), None),
        # GPUs
        (Ask(), (room(0, gpus=4),), [(0, 0, 1, 8, 4)]),
        (Ask(processes_per_node=4), (room(0, gpus=4),), [(0, at, 4, 2, 1) for at in range(4)]),
        (Ask(processes_per_node=3, devices_per_process=1), (room(0, gpus=4),), [(0, at, 3, 2, 1) for at in range(3)]),
        (Ask(processes_per_node=8), (room(0, gpus=4),), None),
        (Ask(devices_per_process=5), (room(0, gpus=4),), None),
        (Ask(devices_per_process=0), (room(0, gpus=4),), [(0, 0, 1, 8, 0)]),
        (Ask(devices_per_process=3), (room(0),), [(0, 0, 1, 8, 0)]),
        (Ask(), (room(0), room(1, gpus=2)), [(1, 0, 1, 8, 2)]),
        (Ask(devices_per_process=0), (room(0), room(1, gpus=2)), [(0, 0, 1, 8, 0), (1, 0, 1, 8, 0)]),
        (
            Ask(processes=3, devices_per_process=2, cpus_per_process=1),
            (room(0, gpus=4, free_gpus=2), room(1, gpus=4)),
            [(0, 0, 1, 1, 2), (1, 0, 2, 1, 2), (1, 1, 2, 1, 2)],
        ),
        (Ask(processes=3, devices_per_process=2), (room(0, gpus=4, free_gpus=1), room(1, gpus=4)), None),
    ],
)
def test_seats_of(ask, rooms, expected):
    assert rows(ask, rooms) == expected


@pytest.mark.parametrize("ask", [Ask(processes=count, cpus_per_process=1) for count in range(1, 25)])
def test_seats_are_as_many_as_asked_and_never_more_than_a_node_has(ask):
    rooms = [room(0, 3), room(1, 16, free_cpus=5), room(2, 16)]
    placed = seats(ask, rooms)
    assert len(placed) == ask.processes
    for each in rooms:
        own = [seat for seat in placed if seat.node_rank == each.node_rank]
        assert sum(seat.cpus for seat in own) <= each.free_cpus
        assert [seat.local_index for seat in own] == list(range(len(own)))
        assert all(seat.local_count == len(own) for seat in own)
    assert [seat.node_rank for seat in placed] == sorted(seat.node_rank for seat in placed)


def test_more_than_all_nodes_have_has_no_seats():
    assert seats(Ask(processes=25, cpus_per_process=1), [room(0, 3), room(1, 16, free_cpus=5), room(2, 16)]) is None


def test_processes_count_by_node_and_then_by_their_lowest_device():
    (one,) = seats(Ask(), [room(0, gpus=12)])
    placed = [replace(one, local_index=at) for at in range(3)] + [replace(one, node_rank=1)]
    assert process_order(placed, [["10", "9"], ["2"], ["11"], ["0"]]) == [1, 0, 2, 3]
    assert process_order(placed, [["GPU-b"], ["GPU-a"], ["GPU-c"], []]) == [1, 0, 2, 3]
    assert process_order(placed, [[], [], [], []]) == [0, 1, 2, 3]


def test_next_generation_keeps_its_processes_where_the_nodes_left_hold_them():
    ask = Ask(processes=4, cpus_per_process=2)
    rooms = [room(rank, 4) for rank in range(2)]
    placed = seats(ask, rooms)
    assert ask_again(ask, rooms, placed) == ask
    assert ask_again(ask, [room(0, 8, free_cpus=0)], placed) == ask
    assert ask_again(ask, [room(0, 4)], placed) == Ask(None, 2, None, 2)
    assert ask_again(Ask(), [room(0)], placed) == Ask()


def test_nodes_with_gpus_are_the_ones_that_count_unless_none_are_wanted():
    rooms = [room(1), room(0, gpus=1)]
    assert [each.node_rank for each in eligible(Ask(), rooms)] == [0]
    assert [each.node_rank for each in eligible(Ask(devices_per_process=0), rooms)] == [0, 1]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"processes": 0}, "processes=0: must be a whole number, 1 or more"),
        ({"processes": 10**6}, "1000000 processes: a world has 100000 at most"),
        ({"processes": True}, "processes=True"),
        ({"processes_per_node": 1.5}, "processes_per_node=1.5"),
        ({"devices_per_process": -1}, "devices_per_process=-1: must be a whole number, 0 or more"),
        ({"cpus_per_process": -1}, "cpus_per_process=-1: must be a number, 0 or more"),
        ({"cpus_per_process": float("nan")}, "cpus_per_process=nan"),
        ({"cpus_per_process": "2"}, "cpus_per_process='2'"),
    ],
)
def test_ask_that_makes_no_sense_is_refused_with_its_name(fields, words):
    with pytest.raises(UsageError) as caught:
        Ask(**fields).check()
    assert str(caught.value).startswith(words)


def test_what_is_asked_and_found_reads_well():
    assert str(Ask(processes=2, devices_per_process=4)) == "processes with 4 devices each, 2 in all"
    assert str(Ask()) == "processes, 1 on each node"
    words = found([room(1, gpus=4, free_gpus=1), room(0, 8, free_cpus=2.5)])
    assert words == "n0 has 2.5 of 8 CPUs free; n1 has 8 of 8 CPUs and 1 of 4 GPUs free"
    assert found([room(rank) for rank in range(10)]).endswith("; and 2 nodes more")


def test_default_share_is_never_next_to_nothing():
    assert len(seats(Ask(processes=200), [room(0, 2)])) == 200
    assert seats(Ask(processes=201), [room(0, 2)]) is None
    assert seats(Ask(processes=100_000), [room(rank, 2) for rank in range(400)]) is None
