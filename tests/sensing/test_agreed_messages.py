"""Reports of which some messages suffice: which ones the servers agree on, and what becomes of each report."""

import numpy as np

from simulator.aggregation.rounds import ServerAccounts
from simulator.sensing.channel import Deliveries, DeliveryStatus, Transmission, status_of

ROUTE = (("server:1",), ("server:2",), ("server:3",))
COUNTED, LATE, LOST = DeliveryStatus


def test_servers_with_the_most_messages_come_first_and_equal_ones_in_order():
    sent = Transmission(1, 0.0, 10.0, ROUTE, needed=2)
    for received, first in (((5, 5, 5), (0, 1)), ((1, 5, 5), (1, 2)), ((5, 1, 5), (0, 2)), ((1, 1, 5), (0, 2))):
        agreed = sent.agreed(received)
        assert agreed.counted == tuple(ROUTE[message] for message in first)
        assert sorted(agreed.route) == sorted(ROUTE)
    assert Transmission(1, 0.0, 10.0, ROUTE).agreed((1, 2, 3)).counted == ROUTE


def test_only_messages_that_must_arrive_decide_on_a_report():
    never, at_s = np.inf, {}
    at_s["server:1"] = np.array([1.0, never, 1.0, 30.0])
    at_s["server:2"] = np.array([1.0, 1.0, 30.0, never])
    at_s["server:3"] = np.array([never, 1.0, 1.0, 1.0])
    within = tuple(times < 10.0 for times in at_s.values())
    fate = status_of(zip(ROUTE, within, strict=True), at_s)
    deliveries = Deliveries(fate, at_s, within, np.ones(4, dtype=bool), np.zeros(4, dtype=bool))
    assert fate.tolist() == [LOST, LOST, LATE, LOST]
    assert deliveries.received(ROUTE) == [2, 2, 3]
    assert deliveries.counted_by(ROUTE, ROUTE[1:]).status.tolist() == [LOST, COUNTED, LATE, LOST]
    assert deliveries.counted_by(ROUTE, ROUTE[:2]).status.tolist() == [COUNTED, LOST, LATE, LOST]


def test_messages_that_are_not_needed_are_accounted_for_and_not_used():
    servers = ServerAccounts(ROUTE)
    for path in ROUTE:
        servers.add_message(path, in_time=7, late=2, link_down=1)
    servers.use(ROUTE[:2])
    accounts = servers.close(6)
    assert [account.used for account in accounts] == [6, 6, 0]
    assert all(account.sent == account.arrived + account.late + account.lost == 10 for account in accounts)
