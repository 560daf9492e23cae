"""Read reports: the rows that a road reader used, replaced and left out, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, Unpack

import numpy as np

from simulator.files.errors import InputError
from simulator.files.messages import SHOWN_ROWS, Note, counted, notes_of, numbers_in_words
from simulator.roads.connectivity import largest_part_for_trips, lost_zones
from simulator.roads.network import RoadNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import networkx as nx
    from numpy.typing import NDArray

    from simulator.roads.connectivity import Loss

SHOWN_ZONES = 20


@dataclass(frozen=True)
class DroppedRows:
    """Rows that could not be used, all for one reason.

    Parameters
    ----------
    reason
        Why, in words.
    rows
        The first 20 row numbers, from 1, header not counted.
    total
        The number of all such rows.
    """

    reason: str
    rows: tuple[int, ...]
    total: int

    def __str__(self) -> str:
        """Return a text with the rows and the reason."""
        return f"{numbers_in_words(self.rows, total=self.total)}: {self.reason}"


@dataclass(frozen=True)
class FilledDefault:
    """Rows in which a value was missing or unusable and was replaced by a default.

    Parameters
    ----------
    name
        The value's name in the schema.
    default
        The value used instead, in words.
    total
        The number of such rows.
    """

    name: str
    default: str
    total: int


@dataclass(frozen=True, eq=False, repr=False)
class LinkValues:
    """Values of the links that were kept, in the units of the schema, and where they come from.

    Parameters
    ----------
    columns
        Attributes of :mod:`simulator.roads.schema` by name, float64, each of shape (links,).
    defaults
        Values filled in.
    remarks
        How values were derived, one sentence each.
    warnings
        Indications that units, or the periods to which capacities refer, are wrong.
    """

    columns: dict[str, NDArray[np.float64]]
    defaults: tuple[FilledDefault, ...]
    remarks: tuple[str, ...]
    warnings: tuple[Note, ...]

    def edges(self, classes: Sequence[str | None]) -> Iterator[dict[str, Any]]:
        """Yield the attributes of each link as they are added to a graph, with its class unless that is None."""
        rows = zip(*(values.tolist() for values in self.columns.values()), strict=True)
        for row, kind in zip(rows, classes, strict=True):
            data: dict[str, Any] = dict(zip(self.columns, row, strict=True))
            data["lanes"] = int(data["lanes"])
            yield data if kind is None else data | {"class": kind}


@dataclass(frozen=True, kw_only=True)
class ReadReport:
    """Report on reading a road network: rows read, dropped and filled in, losses and warnings.

    Parameters
    ----------
    links_file
        The file of links, as given.
    node_rows, link_rows
        Numbers of nodes and links in the files.
    row
        The word for one entry of the links file: "row" or "link".
    dropped
        Rows of links dropped, one entry per reason.
    defaults
        Values filled in, among the links that were kept.
    remarks
        Further remarks on how the files were read, one sentence each.
    loss
        Nodes and links outside the largest part.
    lost_zones
        Zones that have no node left.
    nodes, links
        Numbers of nodes and links that were kept.
    warnings
        Indications that units or the coordinate system are wrong.
    """

    links_file: str
    node_rows: int
    link_rows: int
    row: str = "link"
    dropped: Sequence[DroppedRows] = ()
    defaults: Sequence[FilledDefault] = ()
    remarks: Sequence[str] = ()
    loss: Loss
    lost_zones: Sequence[int | str] = ()
    nodes: int
    links: int
    warnings: Sequence[Note] = ()

    def notes(self) -> list[Note]:
        """Return the differences between files and network, warnings first.

        Returns
        -------
        list of Note
            Of code "dropped", "filled" or "remark" if not a warning; empty if every row was used unchanged.
        """
        of_all = f"of {counted(self.link_rows, self.row)}"
        taken = (f"{one.name} taken as {one.default} in {one.total:,} {of_all}" for one in self.defaults)
        return [
            *self.warnings,
            *notes_of("dropped", (f"{self.links_file}: dropped {dropped}" for dropped in self.dropped)),
            *notes_of("filled", (f"{self.links_file}: {words}" for words in taken)),
            *notes_of("remark", self.remarks),
        ]


class RowFields(TypedDict):
    """Fields of a `ReadReport` on the rows of the files."""

    links_file: str
    node_rows: int
    link_rows: int
    row: NotRequired[str]
    dropped: NotRequired[Sequence[DroppedRows]]


def network_and_report(
    graph: nx.MultiDiGraph[Any],
    values: LinkValues,
    *,
    part_of: Callable[[nx.MultiDiGraph[Any]], tuple[nx.MultiDiGraph[Any], Loss]] = largest_part_for_trips,
    remarks: Iterable[str] = (),
    warnings: Iterable[Note] = (),
    **rows: Unpack[RowFields],
) -> tuple[RoadNetwork, ReadReport]:
    """Compile the part of a graph that is kept, and report what it lacks.

    Parameters
    ----------
    graph
        The graph of all links that can be used.
    values
        Values of these links.
    part_of
        Function that returns the part to keep, and what it lacks.
    remarks
        Those of the report; those on what was left out are added.
    warnings
        Those of the reader, in addition to those of `values`.
    rows
        Fields of the report on the rows of the files.

    Returns
    -------
    network : RoadNetwork
        The part.
    report : ReadReport
        With remarks on the nodes, links and zones that were left out.

    Raises
    ------
    InputError
        If there is no such part.
    """
    part, loss = part_of(graph)
    network = RoadNetwork.from_graph(part)
    nodes, links = len(network.node_names), len(network.links)
    extended = [*remarks]
    if loss.nodes:
        extended.append(loss.beside(nodes=nodes, links=links))
    if zones := lost_zones(graph, part):
        shown = ", ".join(map(str, zones[:SHOWN_ZONES])) + (" …" if len(zones) > SHOWN_ZONES else "")
        what = f"{counted(len(zones), 'zone')} cannot be reached, or cannot be left"
        extended.append(f"{what}, and no trip to or from there can be made: {shown}")
    report = ReadReport(
        defaults=values.defaults,
        remarks=extended,
        loss=loss,
        lost_zones=zones,
        nodes=nodes,
        links=links,
        warnings=(*warnings, *values.warnings),
        **rows,
    )
    return network, report


def parallel_remarks(file: str, graph: nx.MultiDiGraph[Any]) -> list[str]:
    """Return a remark on the number of links parallel to another, or an empty list if there are none."""
    parallel = graph.number_of_edges() - len({(start, end) for start, end, _ in graph.edges})
    if not parallel:
        return []
    links = counted(parallel, "link connects", "links connect")
    return [f"{file}: {links} the same nodes in the same direction as another; all are kept as parallel links"]


def usable_rows(
    reasons: Mapping[str, NDArray[np.bool_]], *, file: str | Path, what: str
) -> tuple[NDArray[np.bool_], tuple[DroppedRows, ...]]:
    """Separate usable rows from all others; a row is dropped for the first reason that applies.

    Parameters
    ----------
    reasons
        For each reason in words, the rows to which it applies, bool, shape (rows,); at least one reason.
    file
        The file, for the message.
    what
        The word for a row, "edge" or "link".

    Returns
    -------
    usable : ndarray
        bool, shape (rows,).
    dropped : tuple of DroppedRows
        One entry per reason that applies.

    Raises
    ------
    InputError
        If no row can be used; it states the reasons.
    """
    usable = np.ones(len(next(iter(reasons.values()))), dtype=np.bool_)
    dropped = []
    for reason, wrong in reasons.items():
        numbers = (np.flatnonzero(wrong & usable) + 1).tolist()
        if numbers:
            dropped.append(DroppedRows(reason, tuple(numbers[:SHOWN_ROWS]), len(numbers)))
        usable &= ~wrong
    if not usable.any():
        listed = "; ".join(map(str, dropped))
        raise InputError([f"{file}: the road network is empty: no {what} can be used ({listed})"])
    return usable, tuple(dropped)
