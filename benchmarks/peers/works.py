"""One work, done by crowdveil or by a peer in a process of its own, which prints CPU seconds and amount as JSON.

A work is called as ``python works.py WORK PROGRAM SIZE FOLDER`` by the Python of the program's environment, so modules
are imported where they are used. The folder holds the case of traffic: roads, departures and routes, the same for all.
"""

import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

CELLS, EPSILON, SAMPLING, VEHICLE_M = 1_000, 1.0, 0.45, 7.5
# Beyond so many vehicles the hour is longer, so that as many are on the road as before.
AN_HOUR = 100_000


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds, user and system, of this process and its children while `work` runs."""
    before = time.process_time() + sum(os.times()[2:4])
    work()
    return time.process_time() + sum(os.times()[2:4]) - before


def truths(size: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """Return the cells of the devices, all in one: pure-ldp's unary encoding has no value for "outside"."""
    return np.random.default_rng(1).integers(1, CELLS + 1, size=size).astype(np.int32)


def write_case(size: int, folder: Path) -> tuple[float, int]:
    """Write the roads of `grid20`, and departures and routes of its vehicles, as arrays."""
    engines, hours = import_module("engines"), max(1, size // AN_HOUR)
    built, links, fresh, ticks = engines.build(vehicles=size, hours=hours)
    columns = {name: getattr(links, name) for name in ("from_node", "to_node", "length_m", "speed_mps", "lanes")}
    departure_s = built.trips.departure_tick * (3600 * hours / ticks)
    trips = {"departure_s": departure_s, "offsets": built.routes.offsets, "links": built.routes.links}
    crossings = engines.crossings_per_second(fresh(), ticks=ticks)[1]
    np.savez(folder / "case.npz", **columns, **trips, crossings=crossings, end_s=3600 * hours)
    return 0.0, crossings


def traffic_by_crowdveil(size: int, _: Path) -> tuple[float, int]:
    """Drive the vehicles by the fleet engine, after a few that are not timed: they load the compiled code."""
    engines = import_module("engines")
    for vehicles in (100, size):
        _, _, fresh, ticks = engines.build(vehicles=vehicles, hours=max(1, size // AN_HOUR))
        engine = fresh()
        taken = cpu_seconds(lambda engine=engine, ticks=ticks: engines.crossings_per_second(engine, ticks=ticks))
    return taken, engine.totals().link_crossings


def traffic_by_simpy(_: int, folder: Path) -> tuple[float, int]:
    """Drive them by a lean model: a process a vehicle, and a link that has room for some and lets them out in turn."""
    simpy, case = import_module("simpy"), np.load(folder / "case.npz")
    environment = simpy.Environment()
    room = (case["length_m"] * case["lanes"] / VEHICLE_M).astype(int).tolist()
    places = [simpy.Resource(environment, capacity=each) for each in room]
    free_s, headway_s = (case["length_m"] / case["speed_mps"]).tolist(), (2.0 / case["lanes"]).tolist()
    last_out = [0.0] * len(room)

    def vehicle(departure_s: float, route: list[int]) -> Iterator[object]:
        yield environment.timeout(departure_s)
        behind = None
        for link in route:
            place = places[link].request()
            yield place
            if behind is not None:
                behind[0].release(behind[1])
            behind = (places[link], place)
            last_out[link] = max(environment.now + free_s[link], last_out[link] + headway_s[link])
            yield environment.timeout(last_out[link] - environment.now)
        behind[0].release(behind[1])

    offsets, links = case["offsets"].tolist(), case["links"].tolist()
    for number, departure_s in enumerate(case["departure_s"].tolist()):
        environment.process(vehicle(departure_s, links[offsets[number] : offsets[number + 1]]))
    return cpu_seconds(lambda: environment.run(until=int(case["end_s"]))), int(case["crossings"])


def traffic_by_uxsim(_: int, folder: Path, *, platoon: int) -> tuple[float, int]:
    """Drive them by UXsim's engine in C++, in platoons of so many vehicles on the route of the first one."""
    case = np.load(folder / "case.npz")
    world = import_module("uxsim").World(
        cpp=True,
        deltan=platoon,
        tmax=int(case["end_s"]),
        print_mode=0,
        save_mode=0,
        show_mode=0,
        random_seed=1,
        vehicle_logging_timestep_interval=-1,  # no trajectories
        duo_update_time=10**9,  # no search for routes, which are given
    )
    for node in range(int(case["from_node"].max()) + 1):
        world.addNode(str(node), node, node * node)
    columns = [case[name].tolist() for name in ("from_node", "to_node", "length_m", "speed_mps", "lanes")]
    roads = [
        world.addLink(str(link), str(start), str(end), length, free_flow_speed=speed, number_of_lanes=lanes)
        for link, (start, end, length, speed, lanes) in enumerate(zip(*columns, strict=True))
    ]
    offsets, links = case["offsets"].tolist(), case["links"].tolist()
    for number, departure_s in enumerate(case["departure_s"].tolist()):
        if number % platoon == 0:
            route = links[offsets[number] : offsets[number + 1]]
            ends = columns[0][route[0]], columns[1][route[-1]]
            vehicle = world.addVehicle(str(ends[0]), str(ends[1]), departure_s, name=str(number))
            vehicle.enforce_route([roads[link] for link in route])
    return cpu_seconds(world.exec_simulation), int(case["crossings"])


def traffic_by_sumo(_: int, folder: Path, *, meso: bool) -> tuple[float, int]:
    """Drive them by SUMO with one lane changer less: its models of vehicles, or of queues (meso), reading its files."""
    case, home = np.load(folder / "case.npz"), Path(import_module("sumo").SUMO_HOME)
    side = round((int(case["from_node"].max()) + 1) ** 0.5)
    nodes = [f'<node id="{n}" x="{n % side * 500}" y="{n // side * 500}"/>' for n in range(side * side)]
    columns = [case[name].tolist() for name in ("from_node", "to_node", "speed_mps", "lanes")]
    edges = [
        f'<edge id="{link}" from="{start}" to="{end}" speed="{speed}" numLanes="{lanes}"/>'
        for link, (start, end, speed, lanes) in enumerate(zip(*columns, strict=True))
    ]
    offsets, links = case["offsets"].tolist(), case["links"].tolist()
    vehicles = [
        f'<vehicle id="{n}" depart="{at}"><route edges="{" ".join(map(str, links[offsets[n] : offsets[n + 1]]))}"/>'
        "</vehicle>"
        for n, at in enumerate(case["departure_s"].tolist())
    ]
    for name, lines in (("nodes", nodes), ("edges", edges), ("routes", vehicles)):
        (folder / f"{name}.xml").write_text(f"<{name}>{''.join(lines)}</{name}>", encoding="utf-8")
    programs = home / "bin"
    net = [programs / "netconvert", "-n", folder / "nodes.xml", "-e", folder / "edges.xml", "-o", folder / "net.xml"]
    subprocess.run(net, check=True, capture_output=True)
    run = [programs / "sumo", "-n", folder / "net.xml", "-r", folder / "routes.xml", "--end", str(int(case["end_s"]))]
    run += ["--mesosim"] if meso else []
    return cpu_seconds(lambda: subprocess.run([*run, "--no-warnings"], check=True, capture_output=True)), int(
        case["crossings"]
    )


def rounds_by_crowdveil(size: int, _: Path) -> tuple[float, int]:
    """Answer two rounds of Sampling Privacy, coins and tallies included."""
    local, rng = import_module("mechanisms.local"), np.random.default_rng(1)
    mechanism = local.SamplingPrivacy(cells=CELLS, sampling=SAMPLING)
    return reported(mechanism, truths(size), rng)


def rounds_by_numpy(size: int, _: Path) -> tuple[float, int]:
    """Do the same in straightforward numpy, without optimisation."""
    truth, rng = truths(size), np.random.default_rng(1)

    def both() -> None:
        sampled = rng.random(size) < SAMPLING
        blank = rng.integers(CELLS + 1, size=size)
        np.bincount(np.where(sampled, 0, blank), minlength=CELLS + 1)
        np.bincount(np.where(sampled, truth, blank), minlength=CELLS + 1)

    both()
    return cpu_seconds(both), size


def reported(mechanism: Any, truth: Any, rng: np.random.Generator) -> tuple[float, int]:
    """Collect the reports of all devices in batches, after a run that is not timed."""

    def collect() -> None:
        for start in range(0, len(truth), mechanism.batch):
            batch = truth[start : start + mechanism.batch]
            coins = mechanism.toss(mechanism.enrol(len(batch), rng=rng), rng=rng)
            for number in range(mechanism.rounds):
                mechanism.tally(mechanism.answer(number + 1, batch, coins))

    collect()
    return cpu_seconds(collect), len(truth)


def reports_by_crowdveil(size: int, _: Path, *, oracle: str) -> tuple[float, int]:
    """Collect the reports of one of the frequency oracles."""
    local = import_module("mechanisms.local")
    made = {"oue": local.OptimisedUnary, "krr": local.KRandomizedResponse, "olh": local.LocalHashing}
    return reported(made[oracle](cells=CELLS, epsilon=EPSILON), truths(size), np.random.default_rng(1))


def reports_by_pure_ldp(size: int, _: Path, *, oracle: str) -> tuple[float, int]:
    """Collect the same by pure-ldp."""
    # The package imports all its oracles, and one of them needs a dependency that its requirements do not list.
    package = types.ModuleType("pure_ldp.frequency_oracles")
    package.__path__ = [str(Path(str(import_module("pure_ldp").__file__)).parent / "frequency_oracles")]
    sys.modules[package.__name__] = package
    folder, letters, more = {
        "oue": ("unary_encoding", "UE", {"use_oue": True}),
        "krr": ("direct_encoding", "DE", {}),
        "olh": ("local_hashing", "LH", {"use_olh": True}),
    }[oracle]
    module = import_module(f"{package.__name__}.{folder}")
    domain = {"epsilon": EPSILON, "d": CELLS, "index_mapper": lambda cell: cell - 1, **more}
    device, server = (getattr(module, letters + part)(**domain) for part in ("Client", "Server"))
    cells = truths(size).tolist()
    return cpu_seconds(lambda: [server.aggregate(device.privatise(cell)) for cell in cells]), size


def reports_by_multi_freq_ldpy(size: int, _: Path, *, oracle: str) -> tuple[float, int]:
    """Make the same reports by multi-freq-ldpy, and add up those that are vectors."""
    name = {"oue": "UE", "krr": "GRR", "olh": "LH"}[oracle]
    client = getattr(import_module(f"multi_freq_ldpy.pure_frequency_oracles.{name}"), f"{name}_Client")
    cells, total = (truths(size) - 1).tolist(), np.zeros(CELLS)

    def collect() -> None:
        for cell in cells:
            report = client(cell, CELLS, EPSILON)
            if oracle == "oue":
                np.add(total, report, out=total)

    client(0, CELLS, EPSILON)  # compiles
    return cpu_seconds(collect), size


def noise_by_crowdveil(size: int, _: Path) -> tuple[float, int]:
    """Draw exact discrete Laplace noise of so many counts."""
    draw, rng = import_module("mechanisms.central.grid_noise").draw_laplace, np.random.default_rng(1)
    draw(1.0 / EPSILON, 1_000, rng=rng)
    return cpu_seconds(lambda: draw(1.0 / EPSILON, size, rng=rng)), size


def noise_by_opendp(size: int, _: Path) -> tuple[float, int]:
    """Do the same by OpenDP, which adds it to a list."""
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measure, counts = dp.m.make_laplace(*space, scale=1.0 / EPSILON), [0] * size
    return cpu_seconds(lambda: measure(counts)), size


def composition_by_crowdveil(size: int, _: Path) -> tuple[float, int]:
    """Compute ε at δ = 1e-6 of so many truthful bits, each with ε = 0.05, after some that are not timed."""
    local, view = import_module("mechanisms.local"), import_module("mechanisms.privacy.view")
    mechanism = local.KRandomizedResponse(cells=1, epsilon=0.05)
    mechanism.claim(view.Report(1, 100)).epsilon_at(1e-6)
    return cpu_seconds(lambda: mechanism.claim(view.Report(1, size)).epsilon_at(1e-6)), 1


def composition_by_dp_accounting(size: int, _: Path) -> tuple[float, int]:
    """Do the same by dp-accounting."""
    made = import_module("dp_accounting.pld.privacy_loss_distribution").from_randomized_response
    flipped = 2.0 / (np.exp(0.05) + 1.0)
    return cpu_seconds(lambda: made(flipped, 2).self_compose(size).get_epsilon_for_delta(1e-6)), 1


def routes(size: int, _: Path, *, by: str) -> tuple[float, int]:
    """Draw the ends of so many gravity trips on 11,025 nodes and find their routes; wall time, on all cores."""
    routing = import_module("routing")
    links, origin, share, mass = routing.case(size)
    work = {"crowdveil": routing.ours, "scipy": routing.reference}[by]
    work(links, origin[:1_000], share[:1_000], mass)
    began = time.perf_counter()
    work(links, origin, share, mass)
    return time.perf_counter() - began, size


def oracles(oracle: str) -> dict[str, Callable[[int, Path], tuple[float, int]]]:
    """Return who collects the reports of an oracle."""
    by = (reports_by_crowdveil, reports_by_pure_ldp, reports_by_multi_freq_ldpy)
    return {each.__name__.removeprefix("reports_by_"): partial(each, oracle=oracle) for each in by}


WORKS: dict[str, dict[str, Callable[..., tuple[float, int]]]] = {
    "case": {"crowdveil": write_case},
    "traffic": {
        "crowdveil": traffic_by_crowdveil,
        "simpy": traffic_by_simpy,
        "uxsim": partial(traffic_by_uxsim, platoon=1),
        "uxsim_platoons": partial(traffic_by_uxsim, platoon=5),
        "sumo_micro": partial(traffic_by_sumo, meso=False),
        "sumo_meso": partial(traffic_by_sumo, meso=True),
    },
    "rounds": {"crowdveil": rounds_by_crowdveil, "numpy": rounds_by_numpy},
    **{oracle: oracles(oracle) for oracle in ("oue", "krr", "olh")},
    "noise": {"crowdveil": noise_by_crowdveil, "opendp": noise_by_opendp},
    "composition": {"crowdveil": composition_by_crowdveil, "dp_accounting": composition_by_dp_accounting},
    "routes": {by: partial(routes, by=by) for by in ("crowdveil", "scipy")},
}


def main() -> None:
    """Do one work and print what it took: seconds, amount, and the greatest memory in megabytes."""
    import resource

    sys.path.insert(0, str(Path(__file__).parents[1]))
    work, program, size, folder = sys.argv[1:]
    seconds, amount = WORKS[work][program](int(size), Path(folder))
    most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1e3
    print(json.dumps({"seconds": seconds, "amount": amount, "peak_mb": most}))


if __name__ == "__main__":
    main()
