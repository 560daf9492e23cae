"""Courses: the ways that vehicles of SUMO's route files take, as the files give them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simulator.traffic.errors import TrafficError

IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Course:
    """Edges a vehicle drives over.

    Attributes
    ----------
    edges
        SUMO's edge ids, in driving order.
    given
        Whether they are the whole route; else they are those a trip starts on, goes by, and ends on.
    where
        File and line, for messages.
    """

    edges: tuple[str, ...]
    given: bool
    where: str


@dataclass(frozen=True)
class Choice:
    """One of several courses, each with its weight.

    Attributes
    ----------
    options
        Numbers of courses.
    weights
        As many, not negative, their sum above 0.
    where
        File and line, for messages.
    """

    options: tuple[int, ...]
    weights: tuple[float, ...]
    where: str


@dataclass(frozen=True)
class Named:
    """The route or distribution of routes of this name, wherever in the files it stands."""

    name: str
    where: str


class Courses:
    """Every course of some files, no two alike, by number."""

    def __init__(self) -> None:
        self._all: list[Course | Choice | Named] = []
        self._known: dict[tuple[object, bool], int] = {}
        self._named: dict[str, int] = {}
        self._referred: dict[str, int] = {}

    def number(self, edges: str | tuple[str, ...], *, given: bool, where: str) -> int:
        """Return the number of a course; text is edge ids with blanks between them.

        Raises
        ------
        TrafficError
            If it has no edge.
        """
        known = self._known.get((edges, given))
        if known is not None:
            return known
        ids = tuple(edges.split()) if isinstance(edges, str) else edges
        if not ids:
            raise TrafficError([f"{where}: a route must have at least one edge"])
        self._known[edges, given] = self.add(Course(ids, given, where))
        return len(self._all) - 1

    def add(self, course: Course | Choice | Named) -> int:
        """Return the number of something new."""
        self._all.append(course)
        return len(self._all) - 1

    def refer(self, name: str, *, where: str) -> int:
        """Return the number of a route that is known by name."""
        if name not in self._referred:
            self._referred[name] = self.add(Named(name, where))
        return self._referred[name]

    def define(self, name: str, number: int, *, where: str) -> None:
        """Give a course a name.

        Raises
        ------
        TrafficError
            If another has it.
        """
        if name in self._named:
            raise TrafficError([f"{where}: another route has the id {name!r}"])
        self._named[name] = number

    def of(self, numbers: IntArray, *, rng: np.random.Generator) -> tuple[list[Course], IntArray]:
        """Follow names, and draw from distributions.

        Parameters
        ----------
        numbers
            (vehicles,) int32.
        rng
            Decides in distributions.

        Returns
        -------
        tuple
            Courses, and (vehicles,) int32 which of them each vehicle takes.

        Raises
        ------
        TrafficError
            If a name is none's, or names go round in a circle.
        """
        ends = numbers.copy()
        for _ in range(len(self._all) + 1):
            used = [int(number) for number in np.unique(ends)]
            open_ones = [number for number in used if not isinstance(self._all[number], Course)]
            if not open_ones:
                place = {number: at for at, number in enumerate(used)}
                renumbered = np.array([place.get(number, -1) for number in range(len(self._all))], dtype=np.int32)
                courses = [course for number in used if isinstance(course := self._all[number], Course)]
                return courses, renumbered[ends] if len(ends) else ends
            for number in open_ones:
                these = ends == number
                ends[these] = self._one_step(self._all[number], int(these.sum()), rng)
        first = self._all[open_ones[0]]
        raise TrafficError([f"{first.where}: distributions of routes must not refer to one another in a circle"])

    def _one_step(self, course: Course | Choice | Named, vehicles: int, rng: np.random.Generator) -> IntArray:
        if isinstance(course, Named):
            if course.name not in self._named:
                raise TrafficError([f"{course.where}: there is no route with the id {course.name!r}"])
            return np.full(vehicles, self._named[course.name], dtype=np.int32)
        if isinstance(course, Choice):
            share = np.array(course.weights) / sum(course.weights)
            return np.array(course.options, dtype=np.int32)[rng.choice(len(share), size=vehicles, p=share)]
        raise TypeError("a course is the end of the way")
