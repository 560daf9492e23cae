"""`crowdveil explore`: a page to play with two designs, and the local server that computes its numbers."""

import json
import math
import secrets
import socket
import threading
import webbrowser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from mechanisms.local import LocalMechanism, NotEstimableError
from mechanisms.parameter import ParameterError
from mechanisms.privacy import ReleasedCounts, ReleasedDifferences, View
from scenarios import Scenario, ScenarioError
from scenarios.overrides import parse_toml
from scenarios.references import Permissions
from simulator.aggregation.deployment import Deployment
from simulator.aggregation.transcript import MIXER, NETWORK
from simulator.arrays import IntArray
from simulator.cli.advise import city_of
from simulator.cli.common import load_scenario
from simulator.cli.finished_runs import browser_name, opened_run
from simulator.cli.options import command, scenario_names
from simulator.experiment.assembly.campaigns import build_deployment, faults_of_servers
from simulator.experiment.assembly.mechanisms import build_mechanisms
from simulator.experiment.assembly.own_kinds import check_own_kinds
from simulator.experiment.deployment_record import EPSILON, NOTHING, Coalition, CountedReports, coalitions
from simulator.files.errors import InputError
from simulator.files.extras import import_extra
from simulator.pages.explorer import explorer_page
from simulator.results.statements import learns
from simulator.sensing.query import keeps_randomness
from simulator.streams import Streams

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

HOST = "127.0.0.1"
MOST_BYTES, MOST_CELLS = 10**6, 5000
"""Greatest size of a request, and number of cells."""
SERVERS = ("trusted", "per_round", "shuffled", "secret_shared")
"""Kinds of servers that the page offers."""
FEWER = 5.0
"""So many standard deviations below the expected number of answers lies the number that claims rely on."""


@command
def explore(
    source: Annotated[str | None, typer.Argument(autocompletion=scenario_names)] = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65_535)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser")] = True,
) -> None:
    """Open a page with sliders: two designs side by side, their errors, and what each party learns.

    Parameters
    ----------
    source : [RUN|SCENARIO]
        A finished run, a shipped name or a file, from which the start values are taken.
    port : PORT
        Port of this computer at which the page is; by default any that is free.
    browser
        Whether the page is opened in the browser.
    """
    for package in ("starlette", "uvicorn"):
        import_extra(package, needed="explore needs starlette and uvicorn", extra="explore")
    import uvicorn  # noqa: PLC0415 - an extra

    page, token = explorer_page("server", **start_values(source)), secrets.token_urlsafe(24)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
            listening.listen()
        except OSError as error:
            raise InputError([f"--port must be free: {(error.strerror or str(error)).lower()}; got {port}"]) from None
        address = f"http://{HOST}:{listening.getsockname()[1]}/?token={token}"
        typer.echo(address)
        typer.echo("Ctrl-C ends it", err=True)
        if browser and browser_name() is not None:
            webbrowser.open(address)
        config = uvicorn.Config(application(page, token), log_level="critical", server_header=False)
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:  # which uvicorn raises again after it has closed
            return


def application(page: str, token: str) -> "Starlette":
    """Return the server of the page and of the numbers of a design; it answers nobody without the token."""
    from starlette.applications import Starlette  # noqa: PLC0415 - an extra
    from starlette.concurrency import run_in_threadpool  # noqa: PLC0415 - the same
    from starlette.middleware import Middleware  # noqa: PLC0415 - the same
    from starlette.middleware.base import BaseHTTPMiddleware  # noqa: PLC0415 - the same
    from starlette.middleware.trustedhost import TrustedHostMiddleware  # noqa: PLC0415 - the same
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse  # noqa: PLC0415 - the same
    from starlette.routing import Route  # noqa: PLC0415 - the same

    turn, newest = threading.Lock(), dict[str, int]()

    async def guarded(request: "Request", answer: Any) -> "Response":
        if not secrets.compare_digest(request.query_params.get("token", "").encode(), token.encode()):
            return PlainTextResponse("The address needs the token that crowdveil explore printed.", 403)
        response: Response = await answer(request)
        response.headers.update({"cache-control": "no-store", "x-content-type-options": "nosniff"})
        response.headers.update({"x-frame-options": "DENY", "cross-origin-resource-policy": "same-origin"})
        return response

    def in_turn(asked: Mapping[str, Any]) -> dict[str, Any]:
        with turn:  # a slider asks faster than claims are computed: what is no longer shown is not computed
            return numbers_of(asked) if newest[asked["design"]] == asked["turn"] else {}

    async def numbers(request: "Request") -> "Response":
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return PlainTextResponse("The request is too large.", 413)
        try:
            asked = json.loads(body)
            newest[asked["design"]] = asked["turn"]
            return JSONResponse(await run_in_threadpool(in_turn, asked))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            return PlainTextResponse(f"The request is not as the page makes it: {error}", 400)

    routes = [Route("/", lambda _: HTMLResponse(page)), Route("/numbers", numbers, methods=["POST"])]
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])
    return Starlette(routes=routes, middleware=[hosts, Middleware(BaseHTTPMiddleware, guarded)])


def numbers_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a design, as JSON has them.

    Parameters
    ----------
    asked
        ``toml``, the text of a scenario of one mechanism, of which no file is read; ``counts``, the vehicles in each
        cell; ``colluding``, how many of the parties collude; ``seed`` of the draw.

    Returns
    -------
    dict
        ``errors`` and ``estimates`` of the cells in vehicles, null if infinite; ``claims``, a row for each party, for
        the coalition, and for readers, whose ``coalition`` is empty. Or ``fault``, why there are none.

    Raises
    ------
    ValueError
        If it is not TOML, or the counts are none.
    """
    truth = np.array(asked["counts"], dtype=np.int64)
    if truth.ndim != 1 or not 0 < len(truth) <= MOST_CELLS or truth.min() < 0:
        raise ValueError(f"counts must be a list of 1..{MOST_CELLS} numbers, none negative")
    tables, permissions = parse_toml(asked["toml"]), Permissions(untrusted=True)
    try:
        scenario = Scenario.from_tables(
            tables, Path(), (), source="The design", seed=None, permissions=permissions, files_exist=False
        )
        check_own_kinds(scenario)
        mechanisms, campaign = build_mechanisms(scenario, len(truth)), scenario.campaigns[0]
        # The servers that the page offers do not depend on where the cells are.
        deployment = build_deployment(scenario, campaign, None)  # type: ignore[arg-type]
        if faults := [*faults_of_servers(scenario, campaign, deployment, mechanisms)]:
            return {"fault": "; ".join(map(str, faults))}
        mechanism, share = next(iter(mechanisms.values())), scenario.population.participation
        received = (1.0 - scenario.channel.losses[-1]) ** (len(deployment.route(1)) if deployment.sharing else 1)
        there = np.append(0, np.floor(truth * share + 0.5)).astype(np.int64)
        devices = int(there.sum())
        counted = min(devices, max(1, math.floor(devices * received + 0.5)))
        account = {"asked": [devices] * mechanism.rounds, "counted": [counted] * mechanism.rounds}
        errors = mechanism.std_error(there, **account)
        drawn = _drawn(mechanism, there, counted, rng=Streams(int(asked["seed"])).of("explore"))
        # The estimate of those who are asked is scaled up: that each of them takes part adds a binomial variance.
        shown = {"errors": np.sqrt(errors**2 + truth * share * (1.0 - share)) / share}
        shown["estimates"] = mechanism.estimate(drawn, **account).count / share
        mean = truth.sum() * share * received
        least = max(1, min(counted, math.floor(mean - FEWER * math.sqrt(mean * (1.0 - share * received)))))
        complete, matched = share * received == 1.0, mechanism.rounds == 1 or received == 1.0
        reports = CountedReports((least,) * mechanism.rounds, devices, received < 1.0, complete, matched)
        usual, colluding = max(1, int(there[1:][(len(truth) - 1) // 2])), int(asked["colluding"])
        claims = [*_claims(mechanism, deployment, reports, campaign.queries, colluding, usual)]
    except (ScenarioError, ParameterError, NotEstimableError) as error:
        return {"fault": "; ".join(map(str, getattr(error, "faults", [error])))}
    finite = {name: [each if math.isfinite(each) else None for each in row.tolist()] for name, row in shown.items()}
    return {**finite, "claims": claims}


def _drawn(mechanism: LocalMechanism, there: IntArray, counted: int, *, rng: np.random.Generator) -> IntArray:
    """Return one draw of the counts; where messages are lost, a sample of the answers of each round remains."""
    counts, devices = mechanism.sample_counts(there, rng=rng), int(there.sum())
    rows = counts.reshape(-1, counts.shape[-1])
    if counted == devices:
        return counts
    if (rows.sum(axis=1) == devices).all():
        kept = [rng.multivariate_hypergeometric(row, counted, method="marginals") for row in rows]
        return np.array(kept).reshape(counts.shape)
    return rng.hypergeometric(counts, devices - counts, counted)  # each report supports several cells


def _claims(
    mechanism: LocalMechanism, deployment: Deployment, reports: CountedReports, queries: int, colluding: int, crowd: int
) -> Iterator[dict[str, Any]]:
    """Yield a row for each party alone, for those that collude, and for readers of what is published."""
    parties = (*deployment.servers_of(mechanism), *({MIXER} & {*deployment.parties(mechanism)}))
    members: list[Coalition] = [
        each for each in coalitions(deployment, mechanism) if len(each) == 1 and each != (NETWORK,)
    ]
    members += [parties[:colluding]] if min(colluding, len(parties)) > 1 else []
    # What devices keep from query to query hides them only among devices that are in every query.
    devices = 1 if queries > 1 and keeps_randomness(mechanism) else reports.fewest[0]
    seen: list[tuple[Coalition, View | None]] = [
        (each, deployment.view(each, mechanism, devices=devices, queries=queries)) for each in members
    ]
    seen.append(((), ReleasedCounts(None, queries, adjacency="move")))
    if mechanism.rounds > 1:
        seen.append(((), ReleasedDifferences(crowd, queries=queries, adjacency="move")))
    for coalition, view in seen:
        claim = NOTHING if view is None else reports.claim(mechanism, view).about(view, rounds=mechanism.rounds)
        row: dict[str, Any] = {"coalition": coalition, "queries": queries}
        row |= {name: getattr(claim, name) for name in ("view", "crowd", "kind", "delta_kind", "basis")}
        row |= {"epsilon": claim.epsilon if claim.has_finite_epsilon else None, "delta": claim.delta(EPSILON)}
        yield {**row, "sentence": learns(claim.listed(0.0, EPSILON))}


def start_values(source: str | None) -> dict[str, Any]:
    """Return title, start values, where they are from, and what is left out, as the page takes them."""
    if source is None:
        return {"source": "The start values are the page's own."}
    if Path(source).is_dir():
        with opened_run(Path(source)) as run:
            scenario, record = run.scenario, run.record
            asked = max([own.theory.asked or 0 for own in record.mechanisms if own.theory], default=0)
            people = round(asked / (record.participation or 1.0)) or record.vehicles
            city: dict[str, Any] = {"people": people, "zones": record.city.cells}
            city |= {"participation": record.participation, "loss": scenario.channel.losses[-1]}
            words = f"The start values are of the run in {source}; vehicles are those of its greatest query."
    else:
        scenario = load_scenario(source)
        city, words = city_of(scenario), f"The start values are of the scenario {scenario.name}."
    campaign = scenario.campaigns[0]
    servers, shown = campaign.aggregation or scenario.aggregation, scenario.mechanisms[:2]
    start: dict[str, Any] = {"people": city["people"], "cells": city["zones"], "participation": city["participation"]}
    start |= {"loss": city["loss"], "queries": campaign.queries}
    left_out = [f"mechanism {each.name}" for each in scenario.mechanisms[2:]]
    left_out += [] if servers.kind in SERVERS else [f"servers of kind {servers.kind}"]
    for letter, section in zip("ab", shown, strict=False):
        given: dict[str, Any] = {
            "kind": section.kind,
            "aggregation": servers.kind,
            "servers": getattr(servers, "servers", None),
            **section.parameters,
        }
        start |= {f"{letter}.{name}": value for name, value in given.items() if isinstance(value, str | float | int)}
        left_out += [f"{section.name}.{name}" for name, value in section.parameters.items() if isinstance(value, tuple)]
    notes = [f"Of the scenario the page leaves out {', '.join(left_out)}."] if left_out else []
    return {"title": scenario.name, "source": words, "start": start, "notes": notes}
