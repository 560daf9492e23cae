"""``[aggregation]``: the keys of each kind, and the faults of invalid sections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scenarios import ScenarioError
from scenarios.channel import Aggregation

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("given", "resolved"),
    [
        ({}, ("trusted", None, False, False, "device")),
        ({"kind": "trusted", "paired": True}, ("trusted", None, True, False, "device")),
        ({"kind": "trusted", "servers": 1}, ("trusted", 1, False, False, "device")),
        ({"kind": "per_round", "handles": "query"}, ("per_round", None, False, False, "query")),
        ({"kind": "shuffled", "robust": True}, ("shuffled", None, False, True, "device")),
        ({"kind": "secret_shared"}, ("secret_shared", 2, False, False, "device")),
        ({"kind": "secret_shared", "servers": 5, "handles": "query"}, ("secret_shared", 5, False, False, "query")),
        ({"kind": "secret_shared", "paired": True}, ("secret_shared", 2, True, False, "query")),
        ({"kind": "secret_shared", "paired": True, "robust": True}, ("secret_shared", 2, True, True, "query")),
    ],
)
def test_defaults_follow_from_the_kind(given: dict[str, Any], resolved: tuple[Any, ...]) -> None:
    section = Aggregation(**given)
    assert (section.kind, section.servers, section.paired, section.robust, section.handles) == resolved
    again = Aggregation(**section.model_dump(exclude_none=True))
    assert again == section


# overrides of the small scenario, key path of the only fault, fragments of the message
SPOILED = [
    (["kind='share'"], "aggregation.kind", ["trusted", "per_round", "shuffled", "secret_shared", '"share"']),
    (["kind='secret_shared'", "servers=1"], "aggregation.servers", ["at least 2", "a single server", "1"]),
    (["kind='secret_shared'", "servers=0"], "aggregation.servers", ["at least 1", "0"]),
    (["kind='secret_shared'", "servers=256"], "aggregation.servers", ["at most 255", "256"]),
    (["kind='secret_shared'", "servers=2.0"], "aggregation.servers", ["whole number", "2.0"]),
    (["servers=2"], "aggregation.servers", ["secret_shared", "trusted has one server", "2"]),
    (["kind='shuffled'", "servers=3"], "aggregation.servers", ["secret_shared", "shuffled has one server", "3"]),
    (["kind='per_round'", "servers=2"], "aggregation.servers", ["secret_shared", "a server for each round", "2"]),
    (["kind='per_round'", "paired=true"], "aggregation.paired", ["must be false", "per_round", "link the answers"]),
    (
        ["kind='shuffled'", "paired=true"],
        "aggregation.paired",
        ["must be false", "shuffled", "nothing that distinguishes"],
    ),
    (
        ["kind='secret_shared'", "paired=true", "handles='device'"],
        "aggregation.handles",
        ['must be "query"', "one-time pseudonyms", '"device"'],
    ),
    (["kind='shuffled'", "handles='query'"], "aggregation.handles", ["must be left out", "shuffled", "mixer"]),
    (["paired=1"], "aggregation.paired", ["true or false", "1"]),
    (["handles='none'"], "aggregation.handles", ["device", "query", '"none"']),
    (["server=2"], "aggregation.server", ["unknown key", "did you mean servers?"]),
]


@pytest.mark.parametrize(("overrides", "path", "fragments"), SPOILED, ids=[" ".join(case[0]) for case in SPOILED])
def test_each_invalid_section_gives_one_fault_with_its_path(
    load: Callable[..., Any], only_fault: Callable[..., Any], overrides: list[str], path: str, fragments: list[str]
) -> None:
    only_fault(lambda: load(overrides=[f"aggregation.{override}" for override in overrides]), path, *fragments)


def test_several_faults_of_one_section_are_reported_together(load: Callable[..., Any]) -> None:
    with pytest.raises(ScenarioError) as caught:
        load(overrides=["aggregation={kind='shuffled', servers=4, paired=true}"])
    assert [fault.path for fault in caught.value.faults] == ["aggregation.servers", "aggregation.paired"]


def test_aggregation_is_set_by_file_and_overrides(load: Callable[..., Any]) -> None:
    shared = load(overrides=["aggregation.kind='secret_shared'", "aggregation.servers=3"]).aggregation
    assert (shared.kind, shared.servers, shared.handles) == ("secret_shared", 3, "device")
    paired = load(overrides=["aggregation={kind='secret_shared', servers=3}", "aggregation.paired=true"]).aggregation
    assert (paired.servers, paired.paired, paired.handles) == (3, True, "query")


def test_a_campaign_may_have_an_aggregation_of_its_own(load: Callable[..., Any]) -> None:
    scenario = load(overrides=["campaigns.rush.aggregation={kind='secret_shared', servers=3}"])
    rush, late = scenario.campaigns
    assert (rush.aggregation.kind, rush.aggregation.servers) == ("secret_shared", 3)
    assert late.aggregation is None
    assert scenario.aggregation.kind == "trusted"


@pytest.mark.parametrize(
    ("value", "path", "fragment"),
    [
        ("{kind='shuffled', paired=true}", "campaigns.rush.aggregation.paired", "must be false"),
        ("{kind='mixed'}", "campaigns.rush.aggregation.kind", "secret_shared"),
        ("{server=3}", "campaigns.rush.aggregation.server", "did you mean servers?"),
    ],
)
def test_aggregation_of_a_campaign_is_checked(
    load: Callable[..., Any], only_fault: Callable[..., Any], value: str, path: str, fragment: str
) -> None:
    only_fault(lambda: load(overrides=[f"campaigns.rush.aggregation={value}"]), path, fragment)
