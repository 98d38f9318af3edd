from __future__ import annotations

import os
import threading

from child import finish, start
from fake_agent import FakeAgent

import switchyard
from switchyard import _session


def test_an_agent_that_restarts_is_found_again(agent: FakeAgent) -> None:
    switchyard.progress(7, 10)
    agent.wait_for("progress")
    agent.hang_up()
    switchyard.progress(10, 10)
    agent.heard.clear()
    agent.listen()
    agent.wait_for("progress")
    assert agent.said("hello") == [{"rank": 0, "pid": os.getpid()}]
    assert agent.said("progress")[-1] == {"step": 10, "total": 10}, "what it missed last is told again"
    agent.stop()
    agent.wait(lambda: switchyard.stop_reason() is not None)
    assert switchyard.should_stop()


def test_an_agent_that_comes_later_is_found(agent: FakeAgent) -> None:
    agent.hang_up()
    assert not switchyard.should_stop()
    agent.listen()
    agent.wait_for("hello")


def test_words_it_does_not_know_are_passed_over(agent: FakeAgent) -> None:
    assert not switchyard.should_stop()
    agent.wait_for("hello")
    with agent._changed:
        agent._connections[0].sendall(b'{"sing":{}}\n{"stop":5}\nno json\n[1, 2]\n"text"\n\xff\n')
    agent.tell({"hold": {}})
    agent.wait_for("boundary")
    assert switchyard.stop_reason() is None


def test_a_hold_is_answered_from_inside_a_step(agent: FakeAgent) -> None:
    for step in switchyard.steps(10):
        if step == 3:
            agent.tell({"hold": {}})
            agent.wait_for("boundary")
            agent.stop(at=5)
            agent.wait(lambda: switchyard.stop_reason() is not None)
    assert agent.said("boundary") == [{"step": 4}] and step == 4


def test_a_forked_child_is_left_alone_and_leaves_the_agent_alone(agent: FakeAgent) -> None:
    assert not switchyard.should_stop()
    agent.wait_for("hello")
    child = os.fork()
    if child == 0:
        switchyard.progress(99, 100)
        os._exit(0 if not switchyard.should_stop() and not switchyard.stopped() else 1)
    assert os.waitpid(child, 0)[1] == 0
    switchyard.progress(1, 2)
    agent.wait_for("progress")
    assert agent.said("progress") == [{"step": 1, "total": 2}]


def test_a_forked_child_dies_of_the_signal_as_it_would_without_us() -> None:
    program = """
import os, signal, switchyard
switchyard.should_stop()
ready, say_ready = os.pipe()
child = os.fork()
if child == 0:
    os.write(say_ready, b".")
    signal.pause()
os.read(ready, 1)
os.kill(child, signal.SIGTERM)
print(os.WTERMSIG(os.waitpid(child, 0)[1]), switchyard.should_stop())
"""
    assert finish(start(program)) == "15 False\n"


def test_no_thread_is_left_when_the_session_ends(agent: FakeAgent) -> None:
    switchyard.progress(1, 2)
    agent.wait_for("progress")
    _session.current().close()
    assert not [thread for thread in threading.enumerate() if thread.name == "switchyard"]
    agent.wait(lambda: agent.connected() == 0)


def test_a_program_ends_at_once_whether_or_not_the_agent_is_there(agent: FakeAgent) -> None:
    program = "import switchyard; switchyard.progress(3, 3)"
    finish(start(program, YARD_SOCKET=agent.path))
    agent.wait(lambda: agent.said("progress") == [{"step": 3, "total": 3}])
    finish(start(program, YARD_SOCKET=agent.path + ".none"))


def test_an_agent_that_does_not_listen_does_not_stop_training(agent: FakeAgent) -> None:
    """It accepts and never reads: messages are given up once the socket is full."""
    import socket

    deaf = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deaf.bind(agent.path + ".deaf")
    deaf.listen(1)
    program = """
import switchyard
from switchyard import _link, _session
_link._SEND_S = 1
session = _session.current()
for step in range(20000):
    session.progress(step, None, now=True)
print("through")
"""
    assert finish(start(program, YARD_SOCKET=agent.path + ".deaf")) == "through\n"
