"""Movements and signal timing of the General Modeling Network Specification (GMNS), both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from simulator.files.messages import counted
from simulator.files.tables import column_names
from simulator.formats.roads.gmns_tables import OWN_PREFIX, find_table, forbids, open_table, own_values
from simulator.roads.movements import RIGHTS_OF_WAY, TURNS, are_places, movement_table, signal_table, unnamed_turns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from simulator.files.tables import Table
    from simulator.roads.network import RoadNetwork

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
_OWN_NUMBERS = ("group", "length_m", "speed_mps", "place")
_OWN = ("turn", "right_of_way", "signal", "yields_to", "classes", *_OWN_NUMBERS)
"""Columns for which GMNS has none that states them exactly."""
_TIMING = {
    "signal_timing_plan": (("timing_plan_id", "controller_id"), ("cycle_length",)),
    "signal_timing_phase": (
        ("timing_phase_id", "timing_plan_id", "min_green", "ring", "barrier", "position"),
        ("max_green", "clearance"),
    ),
    "signal_phase_mvmt": (("timing_phase_id", "mvmt_id"), ("protection",)),
}
NO_USE = "closed"
"""``allowed_uses`` of a movement that no vehicle may make."""


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
    file = find_table(folder, "movement")
    if file is None:
        return movement_table(), signal_table(), []
    table = open_table(file, required=_MOVEMENT, optional=(*_LANES, "type", "ctrl_type", "allowed_uses"))
    ids = table.unique_identifiers("mvmt_id")
    labels = link_table.number.tolist()
    link_ids = pd.Index(link_table.identifiers("link_id") if link_table.has("link_id") else [], dtype="object")
    at = {
        name: known.get_indexer(pd.Index(table.identifiers(name), dtype="object"))
        for name, known in (
            ("node_id", nodes),
            ("ib_link_id", link_ids),
            ("ob_link_id", link_ids),
        )
    }
    for name, found in at.items():
        table.refuse(name, found < 0, f"in the {'node' if name == 'node_id' else 'link'} table")
    numbers = {name: table.checked_numbers(name, whole=True, optional=True) for name in _LANES}
    own = own_values(table, frozenset(_OWN_NUMBERS))
    for name in _OWN_NUMBERS:
        number = name in ("group", "place")
        values = table.checked_numbers(
            f"{OWN_PREFIX}{name}", at_least=-1 if number else 0, whole=number, optional=True
        ).tolist()
        for row, value in zip(own, values, strict=True):
            if not np.isnan(value):
                row[name] = int(value) if number else value
    for name, known in (("turn", TURNS), ("right_of_way", RIGHTS_OF_WAY)):
        wrong = np.array([values.get(name) not in (None, *known) for values in own])
        table.refuse(f"{OWN_PREFIX}{name}", wrong, f"one of {', '.join(known)}, in JSON")
    wrong = np.array([not isinstance(values.get("signal", ""), str | int) for values in own])
    table.refuse(f"{OWN_PREFIX}signal", wrong, "text or a whole number, in JSON")
    wrong = np.array([not isinstance(values.get("classes", ""), str) for values in own])
    table.refuse(f"{OWN_PREFIX}classes", wrong, "text, in JSON")
    wrong = np.array([not are_places(values.get("yields_to")) for values in own])
    table.refuse(f"{OWN_PREFIX}yields_to", wrong, "a list of whole numbers of at least 0, in JSON")
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
        signal = own[i].get("signal", controller)
        numbered = groups.setdefault(signal, {})
        group = numbered.setdefault(windows, len(numbered)) if windows else -1
        row = {
            "node": int(at["node_id"][i]),
            "from_link": start,
            "to_link": end,
            "allowed": not forbids(uses, wanted),
            "turn": _TYPES.get((kind or "").lower()),
            "right_of_way": _CONTROLS.get((control or "").lower()),
            "signal": signal,
            "group": group,
        } | {name: value for name, value in own[i].items() if name in _OWN}
        signals[row["signal"], row["group"]] = windows
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
        file = find_table(folder, name)
        if file is None:
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
    own_cycle_s, offset_s = (
        plan.checked_numbers(f"{OWN_PREFIX}{name}", optional=True) for name in ("cycle_s", "offset_s")
    )
    own_from_s, own_to_s = (phase.checked_numbers(f"{OWN_PREFIX}{name}", optional=True) for name in ("from_s", "to_s"))
    own_actuated = plan.texts(f"{OWN_PREFIX}actuated")
    for table in tables.values():
        table.check()
    green_s = np.nan_to_num(np.fmax(seconds["min_green"], seconds["max_green"]))
    frame = pd.DataFrame(order | {"plan": of_plan, "green_s": green_s}, index=phase_ids)
    frame["all_s"] = green_s + np.nan_to_num(seconds["clearance"])
    frame["varies"] = seconds["max_green"] > seconds["min_green"]
    frame["from_s"], frame["to_s"] = own_from_s, own_to_s
    first = {controller: row for row, controller in reversed([*enumerate(plan.identifiers("controller_id"))])}
    windows: dict[str, tuple[str, tuple[float, float], tuple[float, float, bool]]] = {}
    for owner, row in first.items():
        phases = frame[frame["plan"] == plan_ids[row]]
        starts, end_s = _starts(phases)
        length_s = np.fmax(cycle_s[row], end_s) if np.isnan(own_cycle_s[row]) else own_cycle_s[row]
        actuated = bool(phases["varies"].any()) or own_actuated[row] == "true"
        cycle = (float(length_s), float(np.nan_to_num(offset_s[row])), actuated)
        from_s = phases["from_s"].fillna(pd.Series(starts, dtype=np.float64))
        to_s = phases["to_s"].fillna(from_s + phases["green_s"])
        for name, *green in zip(phases.index.tolist(), from_s.tolist(), to_s.tolist(), strict=True):
            windows[name] = owner, (green[0], green[1]), cycle
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


def movement_tables(
    network: RoadNetwork, ids: Sequence[object]
) -> dict[str, tuple[pd.DataFrame, list[dict[Any, Any]]]]:
    """Make the tables of movements and of signal timing.

    Every group of a signal is a ring, in which each green window is a phase that the time until the next one, or the
    end of the cycle, clears. GMNS does not state the red before the first phase, which columns of this project add.

    Parameters
    ----------
    network
        Any network.
    ids
        Identifier of each node.

    Returns
    -------
    dict
        Name to table, and to what its rows have for which GMNS has no column; empty for a network without movements.
    """
    movements, lanes = network.movements, network.links.lanes
    if movements.empty:
        return {}
    types = {turn: kind for kind, turn in _TYPES.items()} | {"slight_left": "left", "slight_right": "right"}
    controls = {right: control for control, right in reversed(_CONTROLS.items())}
    inside = {
        end: (lanes[movements[f"{end}_link"]] - movements[f"{end}_lane"]).where(movements[f"{end}_lane"] >= 0)
        for end in ("from", "to")
    }
    table = pd.DataFrame(
        {
            "mvmt_id": movements.index,
            "node_id": [ids[node] for node in movements["node"]],
            "ib_link_id": movements["from_link"],
            "start_ib_lane": inside["from"].astype("Int64"),
            "ob_link_id": movements["to_link"],
            "start_ob_lane": inside["to"].astype("Int64"),
            "type": movements["turn"].map(types),
            "ctrl_type": movements["right_of_way"].map(controls).where(movements["signal"].isna(), "signal"),
            "allowed_uses": movements["allowed"].map({True: None, False: NO_USE}),
        }
    )
    own = movements[[*_OWN]].to_dict("records")
    return {"movement": (table, own)} | ({} if network.signals.empty else _timing_tables(network))


def _timing_tables(network: RoadNetwork) -> dict[str, tuple[pd.DataFrame, list[dict[Any, Any]]]]:
    """Make the tables of signal timing of a network that has green windows."""
    windows = network.signals.rename_axis("timing_phase_id").reset_index()
    plans = windows.drop_duplicates("signal", ignore_index=True)
    controller = windows["signal"].map({signal: number for number, signal in enumerate(plans["signal"])})
    group = windows.groupby(["signal", "group"])
    phases = pd.DataFrame(
        {
            "timing_phase_id": windows["timing_phase_id"],
            "timing_plan_id": controller,
            "signal_phase_num": windows["group"],
            "min_green": windows["to_s"] - windows["from_s"],
            "clearance": group["from_s"].shift(-1).fillna(windows["cycle_s"]) - windows["to_s"],
            "ring": windows["group"] + 1,
            "barrier": 1,
            "position": group.cumcount() + 1,
        }
    )
    movements = network.movements[["signal", "group"]].rename_axis("mvmt_id").reset_index()
    members = movements.merge(windows, on=["signal", "group"])
    members["protection"] = np.where(members["protected"], "protected", "permitted")
    members = members[["timing_phase_id", "mvmt_id", "protection"]].rename_axis("signal_phase_mvmt_id").reset_index()
    number = {"timing_plan_id": plans.index, "controller_id": plans.index, "cycle_length": plans["cycle_s"]}
    return {
        "signal_controller": (pd.DataFrame({"controller_id": plans.index}), []),
        "signal_timing_plan": (pd.DataFrame(number), plans[["cycle_s", "offset_s", "actuated"]].to_dict("records")),
        "signal_timing_phase": (phases, windows[["from_s", "to_s"]].to_dict("records")),
        "signal_phase_mvmt": (members, []),
    }
