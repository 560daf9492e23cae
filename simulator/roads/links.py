"""Links of a road network as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class Links:
    """The attributes of every link that a traffic engine needs, as arrays.

    Link ids are positions in these arrays. Links are sorted by (from node, to node, key of a parallel edge), so
    the links that leave node ``i`` are the range ``first_out[i]:first_out[i + 1]``. The arrays are shared:
    copy one before changing it.

    Parameters
    ----------
    from_node, to_node
        Node indices, int32, shape (links,).
    length_m
        Metres, float64, shape (links,).
    speed_mps
        Free-flow speed in metres per second, float64, shape (links,).
    lanes
        Lanes, int32, shape (links,).
    capacity_vph
        Vehicles per hour and lane, float64, shape (links,).
    first_out
        Id of the first link that leaves each node, and at the end the number of links; int32, shape (nodes + 1,).

    Raises
    ------
    ValueError
        If the arrays differ in length, or ``first_out`` does not index ``from_node``.
    """

    from_node: NDArray[np.int32]
    to_node: NDArray[np.int32]
    length_m: NDArray[np.float64]
    speed_mps: NDArray[np.float64]
    lanes: NDArray[np.int32]
    capacity_vph: NDArray[np.float64]
    first_out: NDArray[np.int32]

    def __post_init__(self) -> None:
        """Check that the arrays are consistent."""
        for name in ("to_node", "length_m", "speed_mps", "lanes", "capacity_vph"):
            shape, wanted = getattr(self, name).shape, self.from_node.shape
            if shape != wanted:
                raise ValueError(f"{name} must have the shape of from_node, {wanted}, got {shape}")
        if not np.array_equal(self.first_out, _first_out(self.from_node, len(self.first_out) - 1)):
            raise ValueError("first_out must say where the links of each node begin in from_node")

    @classmethod
    def from_columns(
        cls,
        *,
        nodes: int,
        from_node: NDArray[np.int32],
        to_node: NDArray[np.int32],
        length_m: NDArray[np.float64],
        speed_mps: NDArray[np.float64],
        lanes: NDArray[np.int32],
        capacity_vph: NDArray[np.float64],
    ) -> Links:
        """Build the links from columns that are already sorted by (from node, to node, key).

        Parameters
        ----------
        nodes
            The number of nodes of the network.
        from_node, to_node, length_m, speed_mps, lanes, capacity_vph
            As in the class, each of shape (links,).

        Returns
        -------
        Links
            The columns and the index ``first_out``.
        """
        return cls(
            from_node=from_node,
            to_node=to_node,
            length_m=length_m,
            speed_mps=speed_mps,
            lanes=lanes,
            capacity_vph=capacity_vph,
            first_out=_first_out(from_node, nodes),
        )

    @property
    def free_flow_s(self) -> NDArray[np.float64]:
        """Free-flow travel time of each link in seconds, shape (links,)."""
        return self.length_m / self.speed_mps

    def __len__(self) -> int:
        """Count the links."""
        return len(self.from_node)

    def __repr__(self) -> str:
        """Return a text with the numbers of links and nodes."""
        return f"Links({len(self)} links, {len(self.first_out) - 1} nodes)"


def _first_out(from_node: NDArray[np.int32], nodes: int) -> NDArray[np.int32]:
    """Return the first outgoing link of each node; raise ValueError if ``from_node`` is not sorted."""
    if len(from_node) and np.any(np.diff(from_node) < 0):
        raise ValueError("from_node must ascend")
    return np.searchsorted(from_node, np.arange(nodes + 1)).astype(np.int32)
