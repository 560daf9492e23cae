"""Movements and signal timing of the General Modeling Network Specification (GMNS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.files.messages import counted
from simulator.files.tables import column_names
from simulator.formats.gmns.tables import find_table, forbids, open_table
from simulator.roads.movements import movement_table, signal_table, unnamed_turns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from simulator.files.tables import Table

_TYPES = {"left": "left", "right": "right", "uturn": "u_turn", "thru": "straight"}
_CONTROLS = {
    "no_control": "priority",
    "yield": "yield",
    "stop": "stop",
    "stop_2_way": "stop",
    "stop_4_way": "all_way_stop",
}
_SIGNALS = ("signal", "signal_with_rtor")
_LANES = ("start_ib_lane", "end_ib_lane", "start_ob_lane", "end_ob_lane")
_MOVEMENT = ("mvmt_id", "node_id", "ib_link_id", "ob_link_id")
_TIMING = {
    "signal_timing_plan": (("timing_plan_id", "controller_id"), ("cycle_length",)),
    "signal_timing_phase": (
        ("timing_phase_id", "timing_plan_id", "min_green", "ring", "barrier", "position"),
        ("max_green", "clearance"),
    ),
    "signal_phase_mvmt": (("timing_phase_id", "mvmt_id"), ("protection",)),
}


def read_movements(
    folder: Path, nodes: pd.Index[Any], links: pd.DataFrame, link_table: Table, modes: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Read movements and, if the folder has them, the green windows of their signals.

    Parameters
    ----------
    folder
        The folder of the network.
    nodes
        Identifiers of the nodes, in the order of their rows.
    links
        The links that are used, as in :class:`~simulator.roads.raw_network.RawNetwork`, by the numbers of their rows.
    link_table
        The table of all links.
    modes
        A movement is allowed if its ``allowed_uses`` name one of these, or none at all.

    Returns
    -------
    movements, signals : pandas.DataFrame
        Tables of :mod:`simulator.roads.movements`; turns that a node with movements does not list are not allowed.
    remarks : list of str
        What was left out.

    Raises
    ------
    InputError
        If a table lacks a column, or a value is not allowed in its column, naming file, rows, rule and value.
    """
    if (file := find_table(folder, "movement")) is None:
        return movement_table(), signal_table(), []
    table = open_table(file, required=_MOVEMENT, optional=(*_LANES, "type", "ctrl_type", "allowed_uses"))
    ids = table.unique_identifiers("mvmt_id")
    labels = link_table.number.tolist()
    link_ids = pd.Index(link_table.identifiers("link_id") if link_table.has("link_id") else [], dtype="object")
    at = {
        name: known.get_indexer(pd.Index(table.identifiers(name), dtype="object"))
        for name, known in (("node_id", nodes), ("ib_link_id", link_ids), ("ob_link_id", link_ids))
    }
    for name, found in at.items():
        table.refuse(name, found < 0, f"in the {'node' if name == 'node_id' else 'link'} table")
    numbers = {name: table.checked_numbers(name, whole=True, optional=True) for name in _LANES}
    table.check()
    of_movement, remarks = _read_windows(folder)
    lanes = dict(zip(links.index.tolist(), links["lanes"].tolist(), strict=True))
    texts = (table.identifiers("node_id"), *map(table.texts, ("type", "ctrl_type", "allowed_uses")))
    wanted = {mode.lower() for mode in modes}
    rows, signals = [], {}
    groups: dict[object, dict[_Windows, int]] = {}
    for i, (node, kind, control, uses) in enumerate(zip(*texts, strict=True)):
        start, end = labels[at["ib_link_id"][i]], labels[at["ob_link_id"][i]]
        controller, windows = of_movement.get(ids[i], (None, ()))
        if controller is None and (control or "").lower() in _SIGNALS:
            controller = node
        numbered = groups.setdefault(controller, {})
        group = numbered.setdefault(windows, len(numbered)) if windows else -1
        row = {
            "node": int(at["node_id"][i]),
            "from_link": start,
            "to_link": end,
            "allowed": not forbids(uses, wanted),
            "turn": _TYPES.get((kind or "").lower()),
            "right_of_way": _CONTROLS.get((control or "").lower()),
            "signal": controller,
            "group": group,
        }
        signals[controller, group] = windows
        before, after = (
            _lanes(numbers[first][i], numbers[last][i], lanes.get(link, np.nan))
            for first, last, link in (("start_ib_lane", "end_ib_lane", start), ("start_ob_lane", "end_ob_lane", end))
        )
        for place in range(max(len(before), len(after))):
            pair = {"from_lane": before[min(place, len(before) - 1)], "to_lane": after[min(place, len(after) - 1)]}
            rows.append(row | pair)
    listed = {row["node"] for row in rows}
    closed = [
        {"node": node, "from_link": a, "to_link": b, "allowed": False}
        for node, a, b in unnamed_turns(links, rows)
        if node in listed
    ]
    green = [
        {"signal": signal, "group": group} | dict(zip(_WINDOW, window, strict=True))
        for (signal, group), windows in signals.items()
        for window in windows
    ]
    return movement_table([*rows, *closed]), signal_table(green), remarks


_WINDOW = ("from_s", "to_s", "protected", "cycle_s", "offset_s", "actuated")
_Windows = tuple[tuple[float, float, bool, float, float, bool], ...]


def _lanes(start: float, end: float, lanes: float) -> list[int]:
    """Convert a range of lanes, counted from the inside from 1, to lanes counted from the outside from 0.

    A single -1 stands for any lane: where none is stated, the link's lanes are unknown, or a lane is one that the link
    does not count, as a pocket for a turn.
    """
    last = start if np.isnan(end) else end
    if not (1 <= start <= lanes and 1 <= last <= lanes):
        return [-1]
    step = 1 if last >= start else -1
    return [int(lanes) - lane for lane in range(int(start), int(last) + step, step)]


def _read_windows(folder: Path) -> tuple[dict[str, tuple[str, _Windows]], list[str]]:
    """Return the controller and the green windows of each movement, by the first plan of each controller."""
    tables: dict[str, Table] = {}
    for name, (required, optional) in _TIMING.items():
        if (file := find_table(folder, name)) is None:
            return {}, []
        if lacking := set(required).difference(column_names(file)):
            return {}, [f"{file}: signal timing was not read: it lacks {', '.join(sorted(lacking))}"]
        tables[name] = open_table(file, required=required, optional=optional)
    plan, phase, movement = tables.values()
    plan_ids, phase_ids = plan.unique_identifiers("timing_plan_id"), phase.unique_identifiers("timing_phase_id")
    of_plan = phase.identifiers("timing_plan_id")
    unknown = np.array([name not in plan_ids for name in of_plan])
    phase.refuse("timing_plan_id", unknown, "in the signal_timing_plan table")
    of_phase = movement.identifiers("timing_phase_id")
    unknown = np.array([name not in phase_ids for name in of_phase])
    movement.refuse("timing_phase_id", unknown, "in the signal_timing_phase table")
    seconds = {
        name: phase.checked_numbers(name, at_least=0, optional=True) for name in ("min_green", "max_green", "clearance")
    }
    order = {name: phase.checked_numbers(name, whole=True) for name in ("barrier", "ring", "position")}
    cycle_s = plan.checked_numbers("cycle_length", at_least=0, optional=True)
    for table in tables.values():
        table.check()
    longest_s = np.nan_to_num(np.fmax(seconds["min_green"], seconds["max_green"]))
    frame = pd.DataFrame(order | {"plan": of_plan, "green_s": longest_s}, index=phase_ids)
    frame["all_s"] = longest_s + np.nan_to_num(seconds["clearance"])
    frame["varies"] = seconds["max_green"] > seconds["min_green"]
    first = {controller: row for row, controller in reversed([*enumerate(plan.identifiers("controller_id"))])}
    windows: dict[str, tuple[str, tuple[float, float], tuple[float, float, bool]]] = {}
    for owner, row in first.items():
        phases = frame[frame["plan"] == plan_ids[row]]
        starts, end_s = _starts(phases)
        cycle = (float(np.fmax(cycle_s[row], end_s)), 0.0, bool(phases["varies"].any()))
        for name, green_s in zip(phases.index.tolist(), phases["green_s"].tolist(), strict=True):
            windows[name] = owner, (starts[name], starts[name] + green_s), cycle
    remarks = []
    if others := len(plan) - len(first):
        remarks.append(f"{plan.file}: left out {counted(others, 'timing plan')}: the first of each controller is read")
    found: dict[str, tuple[str, _Windows]] = {}
    names = zip(movement.identifiers("mvmt_id"), of_phase, movement.texts("protection"), strict=True)
    for movement_id, phase_id, protection in names:
        if not movement_id or phase_id not in windows or (protection or "").lower() == "rtor":
            continue
        controller, (begin_s, stop_s), of_plan_cycle = windows[phase_id]
        window = (begin_s, stop_s, (protection or "protected").lower() == "protected", *of_plan_cycle)
        found[movement_id] = controller, tuple(sorted({*found.get(movement_id, ("", ()))[1], window}))
    return found, remarks


def _starts(phases: pd.DataFrame) -> tuple[dict[str, float], float]:
    """Return the second at which each phase begins, and at which the last ends.

    Phases of a ring follow each other; all rings wait for each other at a barrier.
    """
    starts: dict[str, float] = {}
    barrier_s = 0.0
    for _, between in phases.groupby("barrier"):
        rings = [ring.sort_values("position")["all_s"].cumsum() for _, ring in between.groupby("ring")]
        for ends in rings:
            starts |= (barrier_s + ends - phases.loc[ends.index, "all_s"]).to_dict()
        barrier_s += max(float(ends.iloc[-1]) for ends in rings)
    return starts, barrier_s
