"""SUMO opens no port, every wait for it has a limit, and its warnings are kept."""

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from sumo_by_hand import Driven, engine, inputs, make_net

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.sumo.inputs import SumoInputs
from simulator.sumo.process import SumoLog, SumoProcess


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return make_net(tmp_path_factory.mktemp("net"))


def gone(process):
    return process.poll() is not None


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks for sockets in /proc, which is not here")
@pytest.mark.parametrize("configured", [False, True], ids=["files", "config that asks for a port"])
def test_sumo_opens_no_socket_even_if_its_configuration_requests_one(net, configured):
    given = inputs(net)
    if configured:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        config = net.parent / "listens.sumocfg"
        config.write_text(
            f'<configuration><net-file value="{net.name}"/><route-files value="{given.routes[0].name}"/>'
            f'<remote-port value="{port}"/></configuration>'
        )
        given = SumoInputs.from_config(config, seed=1, step_s=1.0)
    with Driven(engine(given)) as driven:
        assert driven.to(5).totals().departed > 0
        folder = Path(f"/proc/{driven.sumo._process._process.pid}/fd")
        opened = [str(file.readlink()) for file in folder.iterdir()]
    assert not any(link.startswith("socket:") for link in opened)
    assert any(link.startswith("pipe:") for link in opened)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_unresponsive_sumo_times_out(net, monkeypatch):
    monkeypatch.setattr("simulator.sumo.process._ANSWER_S", 0.5)
    monkeypatch.setattr("simulator.sumo.process._ENDING_S", 0.5)
    server = SumoProcess.launch(inputs(net))
    os.kill(server._process.pid, signal.SIGSTOP)
    with pytest.raises(InputError, match=r"^at 3 s: SUMO has not answered for 0\.5 s$"):
        server.ask("step", what="at 3 s")
    server.close()
    assert gone(server._process)
    polite = SumoProcess.launch(inputs(net))
    os.kill(polite._process.pid, signal.SIGSTOP)
    polite.close()
    assert gone(polite._process)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_sumo_that_does_not_start_times_out(net, monkeypatch):
    popen = subprocess.Popen

    def stopped(*arguments, **options):
        process = popen(*arguments, **options)
        os.kill(process.pid, signal.SIGSTOP)
        return process

    monkeypatch.setattr("simulator.sumo.process.subprocess.Popen", stopped)
    monkeypatch.setattr("simulator.sumo.process._LOADING_S", 0.5)
    with pytest.raises(InputError, match=r"SUMO has not read its files after 0\.5 s"):
        SumoProcess.launch(inputs(net))


def test_configuration_not_read_in_time_is_refused(net, monkeypatch):
    config = net.parent / "slow.sumocfg"
    config.write_text('<configuration><net-file value="small.net.xml"/></configuration>')
    monkeypatch.setattr("simulator.sumo.inputs._PATIENCE_S", 0.0)
    with pytest.raises(InputError, match="SUMO has not read it after 0 s"):
        SumoInputs.from_config(config, seed=1, step_s=1.0)


def test_warnings_are_counted_by_kind():
    log = SumoLog()
    log.file.write(b"Warning: ignoring 'e'!\n")
    for number in range(30_000):
        log.file.write(f"Warning: Teleporting vehicle 'f.{number}'; waited too long, time={number}.00.\n".encode())
    log.file.write(b"Error: \xff\nWarning: ignoring 'g'!\n")
    log.file.flush()
    for _ in range(2):
        assert log.warned() == (
            (2, "ignoring 'e'!"),
            (30_000, "Teleporting vehicle 'f.0'; waited too long, time=0.00."),
        )
        assert len(log.read()) <= 1 << 20
        log.close()
    many = SumoLog()
    many.file.writelines(b"Warning: " + b"x" * number + b"\n" for number in range(1, 151))
    many.file.flush()
    assert [one.times for one in many.warned()] == [1] * 100 + [50]
    many.close()


def test_sumo_warning_appears_in_the_notes(net):
    routes = """<routes><trip id="a" depart="20" from="A0B0" to="B0C0"/>
      <trip id="late" depart="3" from="A0B0" to="B0C0"/>
      <trip id="later" depart="5" from="A0B0" to="B0C0"/></routes>"""
    with Driven(engine(inputs(net, routes))) as driven:
        driven.to(60)
        notes = texts_of(driven.sumo.notes())
    assert "SUMO warned 2 times, first: Route file should be sorted by departure time, ignoring 'late'!" in notes
