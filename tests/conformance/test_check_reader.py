"""The checks of users' own readers of roads, each with a reader that has its fault."""

import random  # noqa: TID251 - what a reader must not use

import numpy as np
import pandas as pd
import pytest

from crowdveil import RawNetwork
from simulator.kits.readers import CHECKS, check_reader


class Square:
    """Four nodes, joined in a ring of roads in both directions."""

    def read(self):
        """Return the tables."""
        return RawNetwork(nodes=self.nodes(), links=self.links(), crs="EPSG:32632", file="square")

    def nodes(self):
        """Return the four corners."""
        return pd.DataFrame({"node": list("abcd"), "x": [0.0, 100.0, 100.0, 0.0], "y": [0.0, 0.0, 100.0, 100.0]})

    def links(self):
        """Return the four sides."""
        return pd.DataFrame({"from": [0, 1, 2, 3], "to": [1, 2, 3, 0], "two_way": True})


class NoMethod:
    """Has another method."""

    def load(self):
        """Return nothing."""


class NoRawNetwork(Square):
    def read(self):
        return self.nodes(), self.links()


class NoPlaces(Square):
    def nodes(self):
        return super().nodes().drop(columns="x")


class NamesOfNodes(Square):
    def links(self):
        return super().links().assign(to=list("bcda"))


class UnknownNode(Square):
    def links(self):
        return super().links().assign(to=[1, 2, 3, 4])


class EndlessSpeed(Square):
    def links(self):
        return super().links().assign(speed=np.inf)


class OtherSpeeds(Square):
    def links(self):
        return super().links().assign(speed=np.random.default_rng().uniform(5.0, 10.0, 4))


class GlobalNumbers(Square):
    def read(self):
        random.random()  # noqa: S311
        return super().read()


FAULTS = {
    NoMethod: "interface",
    NoRawNetwork: "interface",
    NoPlaces: "interface",
    NamesOfNodes: "interface",
    UnknownNode: "interface",
    EndlessSpeed: "interface",
    OtherSpeeds: "repeatable",
    GlobalNumbers: "randomness",
}


def test_a_correct_reader_passes():
    report = check_reader(Square)
    report.raise_for_failures()
    assert report["repeatable"].figures == {"nodes": 4, "links": 8}


@pytest.mark.parametrize("wrong", FAULTS)
def test_each_fault_is_found(wrong):
    assert [result.name for result in check_reader(wrong).failures] == [FAULTS[wrong]]


def test_every_check_has_a_fault():
    assert set(FAULTS.values()) == {"interface", *CHECKS}


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (NoRawNetwork, "read must return a RawNetwork, got tuple"),
        (NoPlaces, "read: nodes: must have a column 'x'"),
        (NamesOfNodes, "read: links: rows 0, 1, 2, 3: to must be a row of nodes, 0 … 3, got 'b'"),
        (UnknownNode, "read: links: row 3: to must be a row of nodes, 0 … 3, got '4'"),
        (EndlessSpeed, "rows 0, 1, 2, 3: speed must be a finite number, 0 or more, got 'inf'"),
    ],
)
def test_faults_name_table_row_column_rule_and_value(wrong, fault):
    assert fault in check_reader(wrong)["interface"].detail
