"""The pages in a real browser: complete without a script, alive with one, safe whatever names and labels say."""

import random
import re

import pytest
from browser import until
from served import metric, served_here
from served import until as learned

from devdan.service.auth import Tokens

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with served_here(tmp_path_factory.mktemp("served") / "data") as opened:
        opened.put("/v1/streams/s", json={})
        taught(opened, "s", 400, 0)
        yield opened


def taught(http, stream, n, seed):
    source, before = random.Random(seed), http.get(f"/v1/streams/{stream}").json()["labels"]
    for k in range(0, n, 50):
        rows = [{"id": f"{seed}-{k + j}", "features": {"x": source.random()}} for j in range(50)]
        http.post(f"/v1/streams/{stream}/predict", json={"rows": rows}).raise_for_status()
        labels = [{"id": row["id"], "label": "big" if row["features"]["x"] > 0.5 else HOSTILE} for row in rows[:40]]
        http.post(f"/v1/streams/{stream}/labels", json={"labels": labels}).raise_for_status()
        before += 40
        learned(http, f"/v1/streams/{stream}", lambda shown, n=before: shown["labels"] >= n)


@pytest.fixture
def page(browser, http):
    context = browser.new_context(viewport={"width": 390, "height": 900})
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    opened.on("request", lambda asked: complaints.append(asked.url) if f":{http.port}/" not in asked.url else None)
    opened.address = f"http://127.0.0.1:{http.port}/"
    yield opened
    context.close()
    assert [one for one in complaints if "favicon" not in one] == []


def figure(page, name):
    return page.locator(".tile", has_text=name).locator(".figure").first.inner_text()


def test_it_follows_what_happens(page, http):
    page.goto(page.address)
    assert page.title() == "s"
    assert figure(page, "Rows") == "400"
    headings = [name for name in page.get_by_role("heading").all_inner_texts() if "by the clock" not in name]
    assert metric(http, "devdan_predictions_total") == 400 - 50  # all but those before the first label
    assert 0 <= metric(http, "devdan_recall_ratio") <= 2
    assert 0 <= float(figure(page, "Average precision")) <= 1
    assert 0 <= metric(http, "devdan_average_precision") <= 2
    assert metric(http, "devdan_log_loss") > 0
    for key, title in (("roc_auc", "ROC-AUC"), ("brier", "Brier score"), ("mcc", "Matthews' coefficient")):
        lately = re.search(
            rf'^devdan_{key}{{rows="latest",stream="s"}} (\S+)$', http.get("/metrics").text, re.MULTILINE
        )
        assert figure(page, title) == f"{float(lately[1]):.3f}"
    assert "devdan_cost{" not in http.get("/metrics").text
    assert "always the commonest" in page.locator(".tile", has_text="Accuracy").first.inner_text()
    assert headings == ["s", "Classes", "Accuracy", "Labels", "Label delay", "Structure", "Columns", "Latest rows"]
    until(page, "document.getElementById('told').textContent == 'Follows the service.'")
    taught(http, "s", 100, 1)
    until(page, "document.querySelectorAll('.tile .figure')[2].textContent == '500'")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("img").count() == 0  # which a label tried to be


def test_two_rows_are_enough_for_a_page(page, http):
    """On a phone: nothing is wider than it, and figures that need more are left out."""
    http.put("/v1/streams/two", json={}).raise_for_status()
    samples = [{"id": f"two-{label}", "features": {"amount": 3.2, "note": "x" * 150}} for label in ("ok", "fraud")]
    for n, row in enumerate(samples, start=1):
        http.post("/v1/streams/two/predict", json={"rows": [row]}).raise_for_status()
        label = {"labels": [{"id": row["id"], "label": row["id"][4:]}]}
        http.post("/v1/streams/two/labels", json=label).raise_for_status()
        learned(http, "/v1/streams/two", lambda shown, n=n: shown["labels"] >= n)
    page.goto(f"{page.address}?stream=two")
    assert figure(page, "Rows") == "2"
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert "NaN" not in page.content()
    assert "nan " not in page.locator("#live").inner_text()
    assert page.locator(".tile", has_text="Average precision").count() == 0
    http.delete("/v1/streams/two")


def test_where_a_stream_decides_by_costs_they_are_shown(page, http):
    settings = {"options": {"decide": {"big": {"missed": 20, "false": 3}}, "random_state": 0}}
    http.put("/v1/streams/costly", json=settings).raise_for_status()
    source, cost, n = random.Random(0), 0, 0
    for k in range(10):
        given = [("big" if source.random() < 0.2 else "small", f"{k}-{j}") for j in range(20)]
        rows = [{"id": id_, "features": {"x": source.gauss(label == "big", 1)}} for label, id_ in given]
        answers = http.post("/v1/streams/costly/predict", json={"rows": rows}).raise_for_status().json()["predictions"]
        for (label, _), answer in zip(given, answers, strict=True):
            if answer["label"] is not None:
                n, cost = n + 1, cost + (0 if answer["label"] == label else 20 if label == "big" else 3)
        labels = [{"id": id_, "label": label} for label, id_ in given]
        http.post("/v1/streams/costly/labels", json={"labels": labels}).raise_for_status()
        learned(http, "/v1/streams/costly", lambda shown, n=20 * k + 20: shown["labels"] >= n)
    assert metric(http, "devdan_cost") == pytest.approx(2 * cost / n)  # of the latest rows, and of all
    page.goto(f"{page.address}?stream=costly")
    assert figure(page, "Cost per row") == f"{cost / n:.3f}"
    assert "always calling one class costs" in page.locator(".tile", has_text="Cost per row").inner_text()
    http.delete("/v1/streams/costly")


@pytest.mark.parametrize("path", ["", "docs"])
def test_everybody_can_read_it(page, path):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed").Axe()
    page.goto(page.address + path)
    found = axe.run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []


def test_several_streams_are_listed(page, http):
    http.put("/v1/streams/other", json={})
    page.goto(f"{page.address}?stream=other")
    assert page.title() == "other"
    assert "nothing to show yet" in page.locator("#live").inner_text()
    page.get_by_role("link", name="s", exact=True).click()
    until(page, "document.title == 's'")
    http.delete("/v1/streams/other")


def test_the_documentation_sends_requests(page, http):
    page.goto(f"{page.address}docs")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    card = page.locator(".card", has=page.get_by_role("heading", name="PUT /v1/streams/{stream}", exact=True))
    card.get_by_label("stream").fill("from-docs")
    card.get_by_label("body").fill('{"wait": 60}')
    card.get_by_role("button", name="Send").click()
    until(page, "document.body.innerText.includes('201\\n')")
    assert http.get("/v1/streams/from-docs").json()["settings"]["wait"] == 60
    http.delete("/v1/streams/from-docs")


def test_without_a_stream_it_says_how_to_make_one(browser, tmp_path):
    with served_here(tmp_path / "data") as http:
        assert "PUT /v1/streams/" in http.get("/").text
        assert http.get("/?stream=none").status_code == 404


def test_requests_of_the_documentation_have_the_token_that_is_given_there(browser, tmp_path):
    own, admin = "p" * 20, "a" * 20
    (tmp_path / "t").write_text(f"{own} predict\n{admin} admin\n")
    with served_here(tmp_path / "data", tokens=Tokens(tmp_path / "t")) as http:
        context = browser.new_context(http_credentials={"username": "me", "password": own})
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{http.port}/docs")
        form = page.locator("form[data-method=PUT]")
        form.locator("[name=stream]").fill("s")
        for token, status in (("", "403"), (admin, "201")):
            page.locator("#authorize input").fill(token)
            form.get_by_role("button").click()
            until(page, f"[...document.querySelectorAll('pre')].some((one) => one.textContent.startsWith('{status}'))")
        context.close()
