"""SIGTERM stays the program's own, whatever a library sets meanwhile; who catches a signal can be seen."""

import ctypes
import os
import signal
import subprocess
import sys
import threading

import pytest

from eray._io.signals import Caught, catches, kept_sigterm


@pytest.fixture
def received():
    """Count SIGTERM in a handler of our own, for one test."""
    numbers = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def set_in_python():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def set_in_c():
    ctypes.CDLL(None).signal(signal.SIGTERM, 1)  # SIG_IGN, as Python does not learn of it


def body(meanwhile):
    with kept_sigterm():
        meanwhile()


@pytest.mark.parametrize("meanwhile", [set_in_python, set_in_c])
def test_sigterm_handler_is_restored(received, meanwhile):
    body(meanwhile)
    os.kill(os.getpid(), signal.SIGTERM)
    assert received == [signal.SIGTERM]


def test_sigterm_handler_is_restored_from_a_thread(received):
    thread = threading.Thread(target=body, args=(set_in_c,))
    thread.start()
    thread.join()
    os.kill(os.getpid(), signal.SIGTERM)
    assert received == [signal.SIGTERM]


def test_sigterm_default_is_restored():
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        body(set_in_c)
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM


def test_process_that_catches_a_signal_is_known():
    script = "import signal, sys; signal.signal(signal.SIGUSR1, print); print('ready', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        assert [catches(child.pid, number) for number in (signal.SIGUSR1, signal.SIGUSR2)] == [True, False]
        assert not catches(child.pid, signal.SIGTERM)
    finally:
        child.communicate()
    assert not catches(child.pid, signal.SIGUSR1)


def test_caught_sigterm_warns_once():
    pid = os.fork()
    if pid == 0:
        numbers = []
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        Caught(numbers.append).catch([signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)
        if numbers == [signal.SIGTERM]:
            os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM


def test_caught_in_a_thread_changes_nothing():
    before = signal.getsignal(signal.SIGUSR1)
    thread = threading.Thread(target=Caught(print).catch, args=([signal.SIGUSR1],))
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGUSR1) == before
