"""Vehicle states: position, link and state of every vehicle at one moment."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from simulator.files.messages import Doubt, counted
from simulator.roads.links import Links
from simulator.traffic.physics import LinkPhysics

FORCED_SHARE = 0.01
"""Of link crossings. On generated and real grids the vehicles that arrive within a run fall in number as demand grows
once between 0.25 % and 1.5 % of the crossings are forced; with a trip of some thirty links, 1 % is one trip in four."""
FORCED_PER_VEHICLE = 0.1
"""The same where link crossings are not counted, taking ten links to a trip."""
DUE_SHARE = 0.75
"""Of the vehicles that would have arrived at half of free-flow speed; more than all of them do in free-flowing traffic,
and cities lose at most about half of the free-flow speed in their worst hours."""
WAITING_SHARE = 1 / 3
"""Of the vehicles departed: above it, places say where trips start and not where vehicles drive."""
FEWEST_VEHICLES = 20


class State(IntEnum):
    """What a departed vehicle is doing."""

    WAITING = 1
    ON_ROAD = 2
    ARRIVED = 3
    ABSENT = 4
    """Seen before and perhaps again, but nobody knows where it is now: never asked, even where the parked are."""


@dataclass(frozen=True, eq=False)
class VehicleStates:
    """Where every departed vehicle is: on a link, at coordinates, or both; those not yet departed do not appear.

    Attributes
    ----------
    state
        (departed,) uint8, a `State`.
    link
        (departed,) int32: the link it is on, waits to enter, or ended its trip on; -1 where the engine knows none.
    fraction
        (departed,) float64: min(1, (t − entry) / free-flow time) of its link on the road, 0 waiting to enter,
        1 arrived.
    xy
        (departed, 2) float64, metres in the city's coordinate system, NaN where unknown; of engines that know
        coordinates. None where links and fractions say it all.
    site
        (departed,) int32: which of the recording's sites it is at; of engines whose vehicles are at known sites.
    """

    state: npt.NDArray[np.uint8]
    link: npt.NDArray[np.int32]
    fraction: npt.NDArray[np.float64]
    xy: npt.NDArray[np.float64] | None = None
    site: npt.NDArray[np.int32] | None = None

    @classmethod
    def from_coordinates(
        cls, state: npt.NDArray[np.uint8], xy: npt.NDArray[np.float64], link: npt.NDArray[np.int32] | None = None
    ) -> "VehicleStates":
        """Take places as coordinates; of vehicles on no known link if `link` is left out."""
        links = np.full(len(state), -1, dtype=np.int32) if link is None else link
        return cls(state, links, np.zeros(len(state)), xy)

    @classmethod
    def from_entries(
        cls,
        state: npt.NDArray[np.uint8],
        link: npt.NDArray[np.int32],
        entry_tick: npt.NDArray[np.int32],
        *,
        tick: float,
        step_s: float,
        free_flow_s: npt.NDArray[np.float64],
    ) -> "VehicleStates":
        """Compute fractions at moment `tick` from the ticks at which the vehicles entered their links."""
        elapsed_s = (tick - entry_tick) * step_s
        fraction = np.asarray(elapsed_s / free_flow_s[link], dtype=np.float64)
        np.minimum(fraction, 1.0, out=fraction)
        fraction[state == State.WAITING] = 0.0
        fraction[state == State.ARRIVED] = 1.0
        return cls(state, link, fraction)

    def __len__(self) -> int:
        return len(self.state)


def speeds_from_entries(
    state: npt.NDArray[np.uint8],
    link: npt.NDArray[np.int32],
    entry_tick: npt.NDArray[np.int32],
    *,
    tick: float,
    step_s: float,
    links: Links,
    physics: LinkPhysics,
) -> npt.NDArray[np.float64]:
    """Compute how fast every departed vehicle goes at moment `tick`.

    The spatial queue knows when a vehicle entered its link and no more, so this is what it implies: free-flow
    speed until the free-flow ticks are over; from then on, standing in the queue at the link's end, its average
    since it entered, length / (t − entry), which falls the longer it stands; 0 while it waits to enter, and once
    it has arrived.

    Parameters
    ----------
    state
        (departed,) uint8, a `State`.
    link
        (departed,) int32.
    entry_tick
        (departed,) int32, of those on the road.
    tick
        The moment, whole or not.
    step_s
        Seconds a tick.
    links, physics
        The network and its queue model.

    Returns
    -------
    numpy.ndarray
        (departed,) float64, metres per second; at most the link's free-flow speed.
    """
    speed: npt.NDArray[np.float64] = links.speed_mps[link]
    elapsed = tick - entry_tick
    queued = elapsed >= physics.free_ticks[link]
    # A link of exactly n ticks may take a last bit more than n: its average is not above its free-flow speed.
    average = links.length_m[link[queued]] / (elapsed[queued] * step_s)
    speed[queued] = np.minimum(average, speed[queued])
    speed[state != State.ON_ROAD] = 0.0
    return speed


@dataclass(frozen=True)
class Totals:
    """Vehicles by what they are doing; always departed = waiting + on_road + arrived + absent.

    `due` is how many would have arrived by then at half of free-flow speed on the routes they set out with; None where
    the engine does not know. `trip_time_s` is the sum over those arrived of the time from departure, waiting to enter
    included, to arrival.
    """

    departed: int
    waiting: int
    on_road: int
    arrived: int
    stuck_released: int
    link_crossings: int
    absent: int = 0
    trip_time_s: float = 0.0
    due: int | None = None

    @property
    def mean_trip_s(self) -> float:
        """Mean time from departure to arrival of those that have arrived, seconds; NaN of none."""
        return self.trip_time_s / self.arrived if self.arrived else float("nan")

    @property
    def crowding(self) -> float:
        """The largest ratio to a limit of `gridlock`, broken above 1; of fewer than 20 vehicles due none is late."""
        moves = self.link_crossings * FORCED_SHARE or self.departed * FORCED_PER_VEHICLE
        late = 1 - self.arrived / self.due if self.due and self.due >= FEWEST_VEHICLES else 0.0
        shares = (self.stuck_released / moves, self.waiting / (WAITING_SHARE * self.departed), late / (1 - DUE_SHARE))
        return max(shares)

    def gridlock(self, *, planned: int, when: str = "") -> list[Doubt]:
        """Say whether the roads were too full for the result to mean what it seems to.

        Parameters
        ----------
        planned
            Vehicles of the whole run.
        when
            The moment in words, where it is not the end of the run.

        Returns
        -------
        list of Doubt
            One sentence, with the rules that are broken, if vehicles were forced on, beyond the storage of a link or by
            a teleport, in more than 1 % of link crossings (a tenth of the vehicles departed, where crossings are not
            counted); if fewer than three quarters of `due` have arrived; or if more than a third of the vehicles
            departed wait to enter. Else, and of fewer than 20 vehicles, empty.
        """
        if self.departed < FEWEST_VEHICLES:
            return []
        moves, limit, of_what = self.link_crossings, FORCED_SHARE, "link crossings"
        if not moves:
            moves, limit, of_what = self.departed, FORCED_PER_VEHICLE, "vehicles departed"
        forced = f"blocked vehicles were forced past full links {counted(self.stuck_released, 'time')}"
        broken = []
        if self.stuck_released > limit * moves:
            broken.append(
                f"{forced} ({100 * self.stuck_released / moves:.2f} % of {of_what}; the limit is {100 * limit:g} %)"
            )
        if self.due is not None and self.arrived < DUE_SHARE * self.due:
            share = (
                f"{100 * self.arrived / self.due:.2f} % of the {self.due:,} that would have at half of free-flow speed"
            )
            broken.append(f"only {self.arrived:,} vehicles arrived ({share}; the limit is {100 * DUE_SHARE:g} %)")
        if self.waiting > WAITING_SHARE * self.departed:
            share = f"{100 * self.waiting / self.departed:.2f} % of vehicles departed"
            broken.append(
                f"{self.waiting:,} vehicles wait to enter ({share}; the limit is {100 * WAITING_SHARE:.2f} %)"
            )
        if not broken:
            return []
        also = "" if broken[0].startswith(forced) else f" and {forced}"
        return [
            Doubt(
                f"gridlock{when}: {'; '.join(broken)}; of {self.departed:,} vehicles departed, of {planned:,} planned, "
                f"{self.arrived:,} arrived and {self.waiting:,} still wait to enter{also}. Check the number of "
                "vehicles, capacities and lanes, and the length of the run"
            )
        ]
