"""SUMO is reached by a port that others may take, and no wait for it is without end."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from sumo_by_hand import Driven, engine, inputs, make_net

from simulator.traffic.errors import TrafficError
from simulator.traffic.sumo import SumoInputs
from simulator.traffic.sumo.port import reserved_port
from simulator.traffic.sumo.said import Said
from simulator.traffic.sumo.server import SumoServer


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return make_net(tmp_path_factory.mktemp("net"))


def gone(process):
    return process.poll() is not None


def lend(ports, monkeypatch):
    """Have launches take these ports, one after the other, and then such as are free."""
    lent = list(ports)

    @contextlib.contextmanager
    def reserved():
        if lent:
            yield lent.pop(0)
        else:
            with reserved_port() as port:
                yield port

    monkeypatch.setattr("simulator.traffic.sumo.server.reserved_port", reserved)
    return lent


def test_a_port_that_another_has_taken_is_not_used(net, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        left = lend([taken.getsockname()[1]], monkeypatch)
        with Driven(engine(inputs(net))) as driven:
            assert driven.to(5).totals().departed > 0
    assert left == []


def test_two_runs_with_the_same_port_both_drive(net, monkeypatch):
    """Either may connect to the other's SUMO first, and has to leave it: then that one has lost its own."""
    monkeypatch.setattr("simulator.traffic.sumo.server._DYING_S", 1.0)
    given = inputs(net)
    for _ in range(2):
        with reserved_port() as port:
            pass
        left = lend([port, port], monkeypatch)
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda _: SumoServer.launch(given), range(2)))
        for server in both:
            with server.asking(what="now") as connection:
                connection.simulationStep()
            server.close()
        assert left == []


def test_a_reserved_port_is_given_to_nobody_else_while_sumo_may_listen_there():
    with reserved_port() as port:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
            pass


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_a_sumo_that_does_not_answer_is_not_waited_for_without_end(net, monkeypatch):
    monkeypatch.setattr("simulator.traffic.sumo.server._ANSWER_S", 0.5)
    monkeypatch.setattr("simulator.traffic.sumo.server._ENDING_S", 0.5)
    server = SumoServer.launch(inputs(net))
    os.kill(server._process.pid, signal.SIGSTOP)
    with (
        pytest.raises(TrafficError, match=r"^at 3 s: SUMO has not answered for 0\.5 s$"),
        server.asking(what="at 3 s") as connection,
    ):
        connection.simulationStep()
    server.close()
    assert gone(server._process)
    polite = SumoServer.launch(inputs(net))
    os.kill(polite._process.pid, signal.SIGSTOP)
    polite.close()
    assert gone(polite._process)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_a_sumo_that_does_not_come_up_is_not_waited_for_without_end(net, monkeypatch):
    popen = subprocess.Popen

    def stopped(*arguments, **options):
        process = popen(*arguments, **options)
        os.kill(process.pid, signal.SIGSTOP)
        return process

    monkeypatch.setattr("simulator.traffic.sumo.server.subprocess.Popen", stopped)
    monkeypatch.setattr("simulator.traffic.sumo.server._LOADING_S", 0.5)
    with pytest.raises(TrafficError, match=r"SUMO has not read its files after 0\.5 s"):
        SumoServer.launch(inputs(net))


def test_who_answers_on_sumos_port_and_is_not_sumo_is_left(net, monkeypatch):
    """It takes the connection and closes it, or resets it: neither is an error of ours."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        taken.settimeout(60)

        def reset():
            with taken.accept()[0] as accepted:
                accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        lend([taken.getsockname()[1]], monkeypatch)
        with ThreadPoolExecutor(1) as pool:
            answered = pool.submit(reset)
            with Driven(engine(inputs(net))) as driven:
                assert driven.to(5).totals().departed > 0
            answered.result()


def test_a_configuration_that_sumo_does_not_read_in_time_is_told(net, monkeypatch):
    config = net.parent / "slow.sumocfg"
    config.write_text('<configuration><net-file value="small.net.xml"/></configuration>')
    monkeypatch.setattr("simulator.traffic.sumo.inputs._PATIENCE_S", 0.0)
    with pytest.raises(TrafficError, match="SUMO has not read it after 0 s"):
        SumoInputs.from_config(config, seed=1, step_s=1.0)


def test_warnings_are_counted_by_kind_from_the_first_to_the_last():
    said = Said()
    said.file.write(b"Warning: ignoring 'e'!\n")
    for number in range(30_000):
        said.file.write(f"Warning: Teleporting vehicle 'f.{number}'; waited too long, time={number}.00.\n".encode())
    said.file.write(b"Error: \xff\nWarning: ignoring 'g'!\n")
    said.file.flush()
    for _ in range(2):
        assert said.warned() == (
            (2, "ignoring 'e'!"),
            (30_000, "Teleporting vehicle 'f.0'; waited too long, time=0.00."),
        )
        assert len(said.read()) <= 1 << 20
        said.close()
    many = Said()
    many.file.writelines(b"Warning: " + b"x" * number + b"\n" for number in range(1, 151))
    many.file.flush()
    assert [one.times for one in many.warned()] == [1] * 100 + [50]
    many.close()


def test_a_warning_is_among_the_notes(net):
    routes = """<routes><trip id="a" depart="20" from="A0B0" to="B0C0"/>
      <trip id="late" depart="3" from="A0B0" to="B0C0"/>
      <trip id="later" depart="5" from="A0B0" to="B0C0"/></routes>"""
    with Driven(engine(inputs(net, routes))) as driven:
        driven.to(60)
        notes = driven.sumo.notes()
    assert "SUMO warned 2 times, first: Route file should be sorted by departure time, ignoring 'late'!" in notes
