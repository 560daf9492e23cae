"""For any failure of SUMO the message is clear, no process is left, every wait ends, and warnings are kept."""

import gzip
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from sumo_by_hand import ROUTES, Driven, engine, inputs

from simulator.files.errors import InputError
from simulator.files.messages import texts_of
from simulator.sumo.inputs import LONGEST_ERROR_TEXT, SumoInputs, error_text
from simulator.sumo.process import SumoLog, SumoProcess


def process_of(driven):
    return driven.sumo._process._process


def gone(process):
    return process.poll() is not None


def test_killed_sumo_gives_an_error_with_time_and_cause(net):
    with Driven(engine(inputs(net))) as driven:
        driven.to(10)
        process = process_of(driven)
        process.kill()
        process.wait()
        with pytest.raises(InputError, match=r"at 11 s of SUMO's time: SUMO ended.* killed by signal 9"):
            driven.to(11)
        for ask in (driven.sumo.places, driven.sumo.totals):
            with pytest.raises(InputError):
                ask()
    assert gone(process)


def test_error_reaches_the_caller_of_the_environment_unchanged(net):
    """SimPy re-creates an error raised in a process from its arguments: faults must survive that."""
    with Driven(engine(inputs(net))) as driven:
        driven.to(10)
        process_of(driven).kill()
        with pytest.raises(InputError) as caught:
            driven.env.run(until=200)
        (fault,) = caught.value.faults
        assert fault.startswith("at 11 s of SUMO's time: SUMO ended")
        assert str(caught.value) == fault


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ('<routes><vehicle id="v" depart="0"><route edges="A0B0 nowhere"/></vehicle></routes>', "nowhere"),
        ('<routes><vehicle id="v" depart="soon"><route edges="A0B0"/></vehicle></routes>', "must be one of"),
        ('<routes><flow id="f" begin="0" end="9" number="2" period="3" from="A0B0" to="B0C0"/></routes>', "f"),
    ],
    ids=["edge", "depart", "flow"],
)
def test_invalid_route_file_gives_the_message_of_sumo(net, routes, words):
    with pytest.raises(InputError) as caught, Driven(engine(inputs(net, routes))) as driven:
        driven.to(5)
    (fault,) = caught.value.faults
    assert "SUMO" in fault
    assert words in fault
    assert "\n" not in fault
    assert "proj" not in fault


def test_route_fault_during_the_run_is_reported_with_its_time(net):
    routes = """<routes><trip id="fine" depart="0" from="A0B0" to="B0C0"/>
      <trip id="fine2" depart="600" from="A0B0" to="B0C0"/>
      <vehicle id="late" depart="900"><route edges="A0B0 nowhere"/></vehicle></routes>"""
    with Driven(engine(inputs(net, routes), until_s=1000.0)) as driven:
        with pytest.raises(InputError, match=r"at \d+ s of SUMO's time: .*nowhere"):
            driven.to(950)
        process = process_of(driven)
    assert gone(process)


@pytest.mark.parametrize("content", [b"<net>", b"<routes/>"], ids=["cut", "other"])
def test_invalid_network_is_refused(net, content):
    given = inputs(net)
    bad = net.parent / "bad.net.xml"
    bad.write_bytes(content)
    with (
        pytest.raises(InputError, match="SUMO does not start: "),
        Driven(engine(SumoInputs(net=bad, routes=given.routes, additional=(), seed=1))),
    ):
        pass


def test_unsupported_configuration_is_refused(net):
    config = net.parent / "bad.sumocfg"
    for content, words in (
        ('<configuration><bogus value="1"/></configuration>', "bogus"),
        ('<configuration><route-files value="x.rou.xml"/></configuration>', "must name a network"),
        ('<configuration><net-file value="small.net.xml"/><step-length value="0.1"/></configuration>', "step_s = 0.1"),
        ("<configuration>", "not well-formed"),
        ('<!DOCTYPE x [<!ENTITY e "e">]><configuration/>', "DOCTYPE"),
    ):
        config.write_text(content)
        with pytest.raises(InputError, match=words) as caught:
            SumoInputs.from_config(config, seed=1, step_s=1.0)
        assert all(str(config) in fault for fault in caught.value.faults)


def test_configuration_that_names_an_unpacked_network_is_told_of_the_packed_one(net):
    (net.parent / "packed.net.xml.gz").write_bytes(gzip.compress(net.read_bytes()))
    config = net.parent / "packed.sumocfg"
    config.write_text('<configuration><input><net-file value="packed.net.xml"/></input></configuration>')
    with pytest.raises(InputError, match=r"packed.net.xml, which does not exist, but packed.net.xml.gz does"):
        SumoInputs.from_config(config, seed=1, step_s=1.0)


def test_folder_names_with_blanks_and_commas(net):
    folder = net.parent / "my cities, all"
    folder.mkdir()
    there = folder / net.name
    there.write_bytes(net.read_bytes())
    with pytest.raises(InputError, match="must have no comma in its path"):
        inputs(there)
    blank = (net.parent / "my cities").resolve()
    folder.rename(blank)
    given = inputs(blank / net.name)
    config = blank / "all of it.sumocfg"
    config.write_text(
        f'<configuration><net-file value="{net.name}"/><route-files value="by_hand.rou.xml"/></configuration>'
    )
    read = SumoInputs.from_config(config, seed=1, step_s=1.0)
    assert (read.net, read.routes) == (given.net, given.routes)
    with Driven(engine(read)) as driven:
        assert driven.to(5).totals().departed > 0


def test_close_ends_sumo_at_any_time_and_is_idempotent(net):
    sumo = engine(inputs(net))
    sumo.close()
    with Driven(engine(inputs(net))) as driven:
        process = process_of(driven)
        assert not gone(process)
        driven.sumo.close()
        assert gone(process)
        with pytest.raises(InputError, match="SUMO is closed"):
            driven.to(5)
        assert driven.sumo.totals().departed == 0
        assert texts_of(driven.sumo.notes())


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_exception_during_a_request_ends_sumo_at_once(net):
    with Driven(engine(inputs(net))) as driven:
        process = process_of(driven)
        os.kill(process.pid, signal.SIGSTOP)
        previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            driven.sumo._process.ask("step", what="now")
        signal.signal(signal.SIGALRM, previous)
        before = time.monotonic()
    assert gone(process)
    assert time.monotonic() - before < 20


def test_failed_launch_leaves_no_process(net, monkeypatch):
    started = []
    popen = subprocess.Popen

    def remember(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr("simulator.sumo.process.subprocess.Popen", remember)
    monkeypatch.setattr(SumoProcess, "_load", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        SumoProcess.launch(inputs(net))
    assert len(started) == 1
    assert gone(started[0])


@pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="looks for child processes in /proc, which is not here"
)
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_no_sumo_process_outlives_its_parent(net, which):
    inputs(net)
    script = net.parent / "own.py"
    script.write_text(
        textwrap.dedent(f"""
        import faulthandler, sys
        faulthandler.dump_traceback_later(90)
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from sumo_by_hand import Driven, engine, inputs
        with Driven(engine(inputs(Path({str(net)!r})), until_s=1e6)) as driven:
            print(driven.sumo._process._process.pid, flush=True)
            driven.to(1_000_000)
        """)
    )
    owner = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        child = int(owner.stdout.readline())
        assert alive(child)
        time.sleep(0.3)
        owner.send_signal(which)
        errors = ended(owner, after_s=60)
        # Python may drop an interrupt in a callback of its own, and then says so: a user would press Ctrl-C again.
        if owner.returncode is None:
            owner.send_signal(which)
            errors = ended(owner, after_s=60)
            assert "Exception ignored" in errors
        assert owner.returncode is not None, errors
    finally:
        owner.kill()
        owner.communicate()
    end = time.monotonic() + 60
    while alive(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(child)


def ended(process, *, after_s):
    """Wait for a process, and return what it has written to standard error."""
    try:
        return process.communicate(timeout=after_s)[1]
    except subprocess.TimeoutExpired as still:
        return (still.stderr or b"").decode()


def alive(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_error_text_is_one_line_of_limited_length():
    text = "pj_obj_create: Cannot find proj.db\nWarning: a\nError: b\n\nError:  c\nQuitting (on error)."
    assert error_text(text) == "b c"
    assert error_text("one\ntwo\nthree\nfour") == "two three four"
    assert error_text("Quitting (on error).\n") == "SUMO gave no reason"
    assert len(error_text("Error: " + "x" * 10_000)) == LONGEST_ERROR_TEXT


def test_missing_sumo_gives_an_install_hint(net, monkeypatch):
    given = inputs(net, ROUTES)
    monkeypatch.setitem(sys.modules, "libsumo", None)
    with pytest.raises(InputError, match=r"pip install 'crowdveil\[sumo\]'"):
        SumoProcess.launch(given)


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
