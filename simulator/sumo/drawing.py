"""Vehicles that SUMO itself draws for other engines: those of flows, between zones, and on distributions of routes."""

import math
import tempfile
from pathlib import Path

from simulator.files.errors import InputError
from simulator.files.xml_elements import elements_of
from simulator.formats.sumo.route_file import Course, SumoFile, Vehicle, most_of_flow
from simulator.sumo.inputs import SumoInputs, refuse_connection
from simulator.sumo.process import SumoProcess
from simulator.traffic.trips import too_many

_POINT_LIKE = '<vType id="{0}" vClass="{0}" length="0.01" minGap="0" tau="0.01"/>'
"""Type of vehicles of which no two are in each other's way when they depart."""


def draw_vehicles(
    held: SumoFile, net: Path, *, begin_s: float, end_s: float, step_s: float, vehicle_class: str | None, seed: int
) -> list[Vehicle]:
    """Have SUMO draw the departures and routes of flows, and of vehicles between zones or by distributions of routes.

    SUMO runs without traffic: each vehicle is removed as soon as it departs.

    Parameters
    ----------
    held
        The files with the flows.
    net
        SUMO's network.
    begin_s, end_s
        Begin and end of the run, in seconds of the files.
    step_s
        SUMO's step: SUMO draws a flow with a probability once a step.
    vehicle_class
        SUMO's vehicle class, whose lanes the routes keep to; None for that of each vehicle, or the first of its types.
    seed
        SUMO's seed.

    Raises
    ------
    InputError
        If the run has no end, a flow has too many vehicles, or SUMO is not installed or rejects an element.
    """
    flows = [node for node in held.drawn if node.name == "flow"]
    if not math.isfinite(end_s):
        raise InputError([f"{held.drawn[0].where}: a flow without an end needs a run that ends"])
    most = 0
    for flow in flows:
        most += most_of_flow(flow.attributes, begin_s=begin_s, end_s=end_s, step_s=step_s, where=flow.where)
        if fault := too_many(most):
            raise InputError([f"{flow.where}: {fault}"])
    # Scenarios that are not trusted may have flows, so SUMO must read and write no other file.
    for element in elements_of(net):
        refuse_connection(element, net)
        if not {"file", "href"}.isdisjoint(element.attributes or ()):
            raise InputError(
                [f"{net}: line {element.line}: a network on which SUMO draws flows must name no other file"]
            )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "drawn.add.xml"
        nodes = held.drawn_by_class(vehicle_class)
        types = "".join(_POINT_LIKE.format(name) for name in sorted({node.attributes["type"] for node in nodes}))
        text = held.xml() + "".join(node.xml() for node in nodes)
        file.write_text(f"<additional>{types}{text}</additional>", encoding="utf-8")
        zones = {"junction-taz": "true"} if "Junction=" in text else {}
        inputs = SumoInputs(net, (), (file,), seed, step_s=step_s, begin_s=begin_s, mesoscopic=True, options=zones)
        process = SumoProcess.launch(inputs)
        try:
            steps = math.ceil((end_s - begin_s) / step_s) + 1
            names, depart_s, numbers, routes = process.ask("draw", steps, what="while it draws vehicles")
        finally:
            process.close()
    return [
        Vehicle(name, leaves, Course(tuple(routes[number]), given=True, where=f"vehicle {name!r}"))
        for name, leaves, number in zip(names, depart_s, numbers, strict=True)
    ]
