"""`crowdveil explore`: its server, its page in a real browser, and its numbers beside a run's, a plan's and advice."""

import http.client
import json
import signal
import socket
import subprocess
import sys
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from mechanisms.planning import CityQuestion, Target, advise, plan
from simulator.api import run
from simulator.cli.explore import numbers_of, start_values
from simulator.pages.explorer import explorer_page
from simulator.results.claims import claims_in

EXPLORE = [sys.executable, "-m", "simulator.cli", "explore", "--no-browser"]
HOSTILE = '<script>alert("شارع")</script> حركة المرور'
DATA = "nodes => nodes.map((node) => ({...node.dataset}))"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address that a running `crowdveil explore` prints; at the end Ctrl-C ends it."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.txt").write_text("a secret")
    with subprocess.Popen(EXPLORE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder) as process:
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
        assert (process.returncode, stderr) == (0, "Ctrl-C ends it\n")


@pytest.fixture
def browse_served(chromium, address):
    """Return a function that opens the served page; a message or a request to elsewhere fails."""
    complaints, contexts, origin = [], [], address.partition("?")[0]

    def opened(fragment=""):
        contexts.append(chromium.new_context(viewport={"width": 1280, "height": 900}))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith((origin, "blob:")) or complaints.append(sent.url))
        page.goto(address + fragment)
        return ready(page)

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def ready(page):
    page.wait_for_selector("html[data-report=ready]", state="attached")
    return page


def request(address, path, *, host=None, method="GET", body=""):
    """Return the status and the text of the answer to a path, which is sent as it is."""
    at = urlsplit(address)
    with closing(http.client.HTTPConnection(at.hostname, at.port, timeout=20)) as connection:
        connection.request(method, path, body, {"Host": host or at.netloc})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_nobody_without_the_token_or_from_another_host_is_answered(address):
    query = urlsplit(address).query
    assert request(address, f"/?{query}")[0] == 200
    for path in ("/", "/?token=", "/?token=wrong", f"/?{query}x", "/numbers", "/secret.txt"):
        assert request(address, path)[0] == 403, path
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        assert request(address, f"/?{query}", host=host)[0] == 400, host
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", urlsplit(address).port), timeout=5)


def test_nothing_but_the_page_is_served(address, tmp_path):
    query = urlsplit(address).query
    for path in ("secret.txt", "../secret.txt", "%2e%2e/secret.txt", "..%2f..%2fetc/passwd", "/etc/passwd", "numbers"):
        assert request(address, f"/{path}?{query}") in {(404, "Not Found"), (405, "Method Not Allowed")}, path
    (tmp_path / "link.csv").symlink_to("/etc/passwd")
    asked = {"design": "a", "turn": 1, "counts": [30, 20], "colluding": 1, "seed": 1}
    for owners in ("/etc/passwd", "../secret.txt", str(tmp_path / "link.csv")):
        body = json.dumps({**asked, "toml": design("k_randomized_response", epsilon=1.0, owners=owners)})
        status, text = request(address, f"/numbers?{query}", method="POST", body=body)
        assert (status, "root:" in text, "a secret" in text) == (200, False, False)
    plug_in = json.dumps({**asked, "toml": design("os:system")})
    answer = request(address, f"/numbers?{query}", method="POST", body=plug_in)
    assert json.loads(answer[1])["fault"].startswith("mechanisms.m.kind: is refused")
    wrong = {"{": 400, "[]": 400, "{}": 400, json.dumps({**asked, "toml": "x"}): 400, "x" * 1_100_000: 413}
    for body, status in wrong.items():
        assert request(address, f"/numbers?{query}", method="POST", body=body)[0] == status, body[:80]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["manhatan"], "no scenario of this name is shipped (did you mean manhattan?)"),
        (["none.toml"], "there is no such file"),
        (["."], "run"),
        (["--port", "taken"], "--port must be free: address already in use; got "),
        (["lacking"], "explore needs starlette and uvicorn: pip install 'crowdveil[explore]'"),
    ],
)
def test_mistakes_end_in_one_message(call_in_process, tmp_path, monkeypatch, arguments, words):
    if arguments == ["lacking"]:
        monkeypatch.setitem(sys.modules, "uvicorn", None)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = [str(taken.getsockname()[1]) if each == "taken" else each for each in arguments]
        done = call_in_process("explore", "--no-browser", *given, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr[:11]) == (2, "", "crowdveil: ")
    assert words in done.stderr
    assert done.stderr.count("\n") <= 2


def design(kind, *, queries=1, owners="none.csv", **parameters):
    """Return the text of a scenario of one mechanism behind a trusted server."""
    return f"""
        scenario = {{name = "x", duration_s = {60 + 60 * queries}}}
        roads.source = "none"
        cells.kind = "locations"
        traffic = {{engine = "static", owners = "{owners}", columns = {{place = "zone", count = "vehicles"}}}}
        campaigns = [{{name = "c", start_s = 60, queries = {queries}, every_s = 60}}]
        [[mechanisms]]
        kind = "{kind}"
    """ + "\n".join(f"{name} = {json.dumps(value)}" for name, value in {"name": "m", **parameters}.items())


def explored(toml, counts):
    made = numbers_of({"toml": toml, "counts": counts, "colluding": 1, "seed": 1})
    return made["errors"][0], made["claims"][0]


def test_errors_and_claims_are_those_of_a_plan_and_of_advice():
    target = Target(cells=3, population=3000, occupancy=900, epsilon=1.5, view="linked_reports", queries=2)
    for made in plan(target, ["k_randomized_response", "oue", "randomized_response"]).plans:
        error, claim = explored(design(made.kind, queries=2, **made.parameters), [900, 1500, 600])
        planned = next(each for each in made.claims if each.view == "linked_reports")
        assert claim["view"] == planned.view
        assert (error, claim["epsilon"]) == pytest.approx((made.std_error, planned.epsilon), rel=1e-9)
    (row,) = advise(CityQuestion(people=2000, zones=2, epsilon=2.0, answers_per_day=1), ["nobody"])
    error, claim = explored(design(row.plan.kind, **row.plan.parameters), [1000, 1000])
    advised = (row.cells["mean"]["error"], row.learns[0].claim.epsilon)
    assert (error, claim["epsilon"]) == pytest.approx(advised, rel=1e-9)


@pytest.mark.parametrize(
    ("values", "letter"),
    [
        ("people=3000&cells=9&queries=3&a.kind=sampling_privacy&a.aggregation=shuffled&a.colluding=2", "a"),
        ("people=2000&cells=5&b.kind=oue&b.aggregation=secret_shared&b.servers=3&b.colluding=3&queries=2", "b"),
        ("people=500&cells=4&loss=0.1&a.kind=anonymized_local&a.aggregation=trusted", "a"),
    ],
)
def test_the_written_scenario_runs_and_gives_what_the_page_shows(browse_served, tmp_path, values, letter):
    page, files = browse_served(f"#{values}"), []
    page.on("download", lambda file: files.append(file))  # noqa: PLW0108 - playwright marks the function
    page.get_by_role("button", name=f"Write the scenario of design {letter.upper()}").click()
    while len(files) < 2:
        page.wait_for_timeout(50)
    for file in files:
        file.save_as(tmp_path / file.suggested_filename)
    done = run(tmp_path / files[0].suggested_filename, out=tmp_path / "out")
    own = page.locator(f"#design-{letter}")
    busy = own.locator("tbody tr").evaluate_all(DATA)[0]
    assert int(busy["count"]) == done.estimates["truth"].max()
    stated = {(each.view, each.adjacency, each.crowd, each.colluding): each for each in claims_in(done.claims)}
    usual, lossy, compared = max((key[2] or 0) for key in stated if key[0][0] == "r"), "loss" in values, 0
    for shown in own.locator(".claims-list li").evaluate_all(DATA):
        view, members = shown["view"], [each for each in shown["coalition"].split(",") if each]
        crowd = usual if view == "released_differences" else None
        claim = stated.get((view, "move", crowd, len(members) if view == "shares" else None))
        if claim is None or (view.startswith("released") and (members or lossy)):
            continue  # a run states it otherwise, or of the answers that arrived
        compared += 1
        assert (shown["kind"], float(shown["epsilon"])) == (claim.kind, pytest.approx(claim.epsilon, rel=1e-9)), shown
        assert float(shown["delta"]) == pytest.approx(dict(claim.points).get(1.0, 0.0), rel=1e-9), shown
    assert compared >= (1 if lossy else 2)
    if not lossy:
        theory = next(iter(done.record.mechanisms)).theory
        expected = theory.std_error[theory.occupancy.index(int(busy["count"]))]
        assert float(busy["error"]) == pytest.approx(expected, rel=1e-9)


def test_a_run_and_a_scenario_give_start_values(tmp_path):
    text = design("k_randomized_response", epsilon=3.0, queries=2, owners="v.csv")
    (tmp_path / "شارع.toml").write_text(text, "utf-8")
    (tmp_path / "v.csv").write_text("zone,vehicles\nsouth,30\nشمال,10\n", "utf-8")
    run(tmp_path / "شارع.toml", out=tmp_path / "out")
    for source in ("out", "شارع.toml"):
        start = start_values(str(tmp_path / source))["start"]
        assert (start["people"], start["cells"], start["queries"], start["a.epsilon"]) == (40, 2, 2, 3.0), source


def test_sliders_keyboard_address_and_history_work_together(browse_served):
    page = browse_served()
    first, sentence = page.url, page.locator("#difference").inner_text()
    error = page.locator("#design-a tr[data-cell=usual]").get_attribute("data-error")
    page.get_by_role("slider", name="Sampling probability π_s").first.focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    assert page.locator("#a-sampling").input_value() == "0.43"
    assert "a.sampling=0.43" in ready(page).url
    assert float(page.locator("#design-a tr[data-cell=usual]").get_attribute("data-error")) > float(error)
    page.locator("#b-kind").select_option("anonymized_local")  # which has no closed form
    expect(page.locator("#design-b tbody tr")).to_have_count(4)
    shown = ready(page).locator("main").inner_text()
    assert sentence not in shown
    assert browse_served("#" + page.url.partition("#")[2]).locator("main").inner_text() == shown
    for _ in range(21):  # 20 presses of a key, and a choice
        page.go_back()
    assert ready(page).url.partition("#")[2] == first.partition("#")[2]
    assert page.locator("#difference").inner_text() == sentence
    page.locator("#a-blank_zero").fill("0.9")
    page.keyboard.press("Tab")
    expect(page.locator("#design-a .fault")).to_contain_text("blank_zero")
    expect(page.locator("#design-a .results")).to_be_hidden()


EVERY_SLIDER = """async () => {
  const taken = [];
  for (const slide of document.querySelectorAll("[type=range]")) for (slide.value of [0, 1000, 500]) {
    const began = performance.now();
    slide.dispatchEvent(new Event("input"));
    await new Promise(requestAnimationFrame);
    taken.push(performance.now() - began);
  }
  return taken;
}"""


def site(folder, **words):
    """Write the page of the site, and return its path."""
    (folder / "explorer.html").write_text(explorer_page("page", **words), encoding="utf-8")
    return folder / "explorer.html"


def test_closed_forms_follow_each_slider_within_a_tenth_of_a_second(open_page, tmp_path):
    page, taken = open_page(site(tmp_path)), []
    for kind in page.locator("#a-kind option").evaluate_all("options => options.map(each => each.value)"):
        page.locator("#a-kind").select_option(kind)
        taken += page.evaluate(EVERY_SLIDER)
        assert page.locator("#design-a .fault").inner_text() == ""
    assert sorted(taken)[len(taken) * 9 // 10] < 100.0  # others use the processors too


def test_hostile_names_and_addresses_are_text(open_page, tmp_path):
    address = (
        "#people=%3Cscript%3Ealert(1)%3C/script%3E&a.kind=%3Cimg%20src=x%3E&b.aggregation=%22%0Akind=%22x&cells=1e9"
    )
    words = {"title": HOSTILE, "source": HOSTILE, "notes": [HOSTILE], "start": {HOSTILE: HOSTILE}}
    page = open_page(site(tmp_path, **words), fragment=address)
    assert page.locator("h1").inner_text() == page.title() == HOSTILE
    assert page.locator("script").count() == 3
    values = {name: page.locator(f"#{name}").input_value() for name in ("people", "cells", "a-kind", "b-aggregation")}
    assert values == {"people": "10000", "cells": "5000", "a-kind": "sampling_privacy", "b-aggregation": "per_round"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_the_page_is_accessible(open_page, tmp_path, width, scheme):
    page = open_page(site(tmp_path), width=width, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
