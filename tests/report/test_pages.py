"""Pages in a real browser: at both widths, in both themes, by mouse, touch and keyboard, for readers of the screen."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from browser import THEMES, WIDTHS, opened, until
from grids import make
from runs import many_classes, record, save

from devdan import DEVDAN, DEVDANFleet
from devdan.bench import write_tables
from devdan.evaluation.loop import prequential
from devdan.report import RunReport, write_picture, write_report
from devdan.streams import open_stream, sea


def keyed(n):
    """A stream of a hundred devices, all of which drift in the middle."""
    random = np.random.default_rng(0)
    device, X = (100 * random.random(n) ** 3).astype(int), random.random((n, 2))
    y = X[:, 0] > np.where(np.arange(n) < n // 2, X[:, 1], 1 - X[:, 1])
    table = pd.DataFrame({"device": [f"pump {k}" for k in device], "x": X[:, 0], "z": X[:, 1], "y": y})
    return open_stream(table, target="y", chunk=200)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    stream = sea(20_000)
    learned = list(prequential(stream, DEVDAN(random_state=0)))
    run = save(folder / "run", learned, n_samples=20_000, drifts=list(stream.drifts))
    columns = [{"name": f"f{k}", "became": "number"} for k in range(9)] + [{"name": "city", "became": "nominal"}]
    model = DEVDAN(random_state=0).fit(*next(iter(stream)))
    told = {"columns": columns, "notes": ["the column id is left out"], **model.describe()}
    (run / "summary.json").write_text(json.dumps(told))
    drifts = [record(chunk, n=500, hits=300 + chunk % 200, drifts=(0, chunk % 3 == 0)) for chunk in range(400)]
    found = {"run": run}
    found["many classes"] = save(folder / "classes", many_classes(30))
    found["many drifts"] = save(folder / "drifts", drifts)
    found["one chunk"] = save(folder / "one", learned[:1])
    other = save(folder / "other", learned[:30], finished=False, seed=1)
    found["fleet"] = save(folder / "fleet", list(prequential(keyed(6000), DEVDANFleet(random_state=0), key="device")))
    paths = {}
    for name, where in found.items():
        paths[name] = where / "report.html"
        write_report([where], paths[name])
    paths["in progress"], paths["comparison"] = folder / "progress.html", folder / "comparison.html"
    RunReport(other, paths["in progress"]).write(goes_on=True)
    write_report([run, other, found["many drifts"]], paths["comparison"])
    table = make(folder / "table", ["sea", "hyperplane", "weather"], ["devdan", "devdan-paper", "river-arf"], seeds=2)
    write_tables(table)
    paths["table"] = table / "table.html"
    return paths


KINDS = ("run", "fleet", "many classes", "many drifts", "one chunk", "in progress", "comparison", "table")


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_can_read_it_at_each_width_and_in_each_theme(browser, pages, kind):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed").Axe()
    for width, theme in zip(WIDTHS, THEMES, strict=True):  # not all pairs: it takes long
        with opened(browser, pages[kind], width, theme) as page:
            if kind == "in progress":
                page.get_by_role("button", name="Pause").click()
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[width], "it scrolls sideways"
            found = axe.run(page).response["violations"]
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (width, theme)


def contrast(one, other):
    """Of two colours, as in WCAG 2."""

    def luminance(colour):
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_the_texts_of_charts_stand_out(browser, pages, theme):
    """Which axe-core does not look at: 3 for what is drawn, 4.5 for what is written."""
    with opened(browser, pages["run"], theme=theme) as page:
        style = page.evaluate("""() => {
            const style = getComputedStyle(document.documentElement);
            const names = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
                .filter((rule) => rule.selectorText === ":root").flatMap((rule) => [...rule.style]);
            return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name)]));
        }""")
    colours = {name: "#" + "".join(2 * c for c in v[1:]) if len(v) == 4 else v for name, v in style.items()}
    for name in ("blue", "blue-soft", "orange", "grey", "ink", "s0", "s1", "s2", "s3", "s4"):
        assert contrast(colours[f"--{name}"], colours["--card"]) >= 3, name
    for name in ("ink", "soft", "blue", "s0", "s1", "s2", "s3", "s4"):
        assert contrast(colours[f"--{name}"], colours["--card"]) >= 4.5, name
    assert contrast(colours["--soft"], colours["--page"]) >= 4.5


def shown(page):
    """The first and the last sample that are shown; in all charts the same."""
    spans = page.evaluate("""() => [...document.querySelectorAll(".plot .moves")].map((moves) => {
        const width = parseFloat(moves.getAttribute("width")), x = parseFloat(moves.getAttribute("x") ?? "0");
        return [-x / width, (100 - x) / width];
    })""")
    end = json.loads(page.locator("#points").text_content())["end"]
    assert spans
    assert all(span == pytest.approx(spans[0]) for span in spans)
    return tuple(round(share * end) for share in spans[0])


def middle(page, share=0.5, n=0):
    """A place in a chart."""
    page.locator(".plot").nth(n).scroll_into_view_if_needed()
    box = page.locator(".plot").nth(n).bounding_box()
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


def test_the_mouse_zooms_and_moves_all_charts_together(browser, pages):
    with opened(browser, pages["run"]) as page:
        mouse, nearly = page.mouse, lambda *span: pytest.approx(span, abs=40)
        assert shown(page) == (0, 20_000)
        mouse.move(*middle(page, 0.25))
        mouse.down()
        mouse.move(*middle(page, 0.4), steps=3)
        assert page.locator(".chosen").count() == 1
        mouse.move(*middle(page, 0.5), steps=3)
        mouse.up()
        assert shown(page) == nearly(5000, 10_000)
        assert page.locator(".chosen").count() == 0
        assert page.locator(".told").text_content().startswith("Samples ")
        labels = page.locator(".plot").first.locator(".below text").all_text_contents()
        assert labels == ["5,000", "6,000", "7,000", "8,000", "9,000", "10,000"][-len(labels) :]
        page.keyboard.down("Shift")
        mouse.move(*middle(page, 0.5))
        mouse.down()
        mouse.move(*middle(page, 0.3), steps=3)
        mouse.up()
        page.keyboard.up("Shift")
        assert shown(page) == nearly(6000, 11_000)
        mouse.wheel(-250, 0)
        until(page, "!document.querySelector('.told').textContent.includes('6,0')")
        assert shown(page)[0] < 5900
        before = shown(page)
        page.keyboard.down("Control")
        mouse.wheel(0, -300)
        page.keyboard.up("Control")
        until(page, f"document.querySelector('.told').textContent.indexOf('{before[0]:,} ') < 0")
        assert shown(page)[1] - shown(page)[0] < 0.7 * (before[1] - before[0])
        page.locator(".plot").first.dblclick()
        assert shown(page) == (0, 20_000)
        assert page.locator(".plot").first.locator(".below text").all_text_contents()[-1] == "20k"


def test_the_wheel_alone_scrolls_the_page(browser, pages):
    with opened(browser, pages["run"]) as page:
        page.mouse.move(*middle(page))
        page.mouse.wheel(0, 300)
        until(page, "window.scrollY > 100")
        assert shown(page) == (0, 20_000)


def test_the_keyboard_reaches_everything(browser, pages):
    with opened(browser, pages["run"]) as page:
        names = []
        for _ in range(40):
            page.keyboard.press("Tab")
            names.append(
                page.evaluate("""() => {
                const one = document.activeElement;
                return one.getAttribute("aria-label") ?? one.textContent.trim();
            }""")
            )
            if names[-1] == "Copy":
                break
        for name in ("Zoom in", "Accuracy: ", "Hidden units: ", "Recall of each class: ", "Class balance: ", "Columns"):
            assert any(found.startswith(name) for found in names), name
        page.locator(".plot").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        said = page.locator(".unseen").text_content()
        assert re.fullmatch(r"Sample 1,000: accuracy \d\d\.\d %, moving mean \d\d\.\d %, hidden units \d+, .*", said)
        assert page.locator(".tip").is_visible()
        page.keyboard.press("+")
        page.keyboard.press("+")
        assert shown(page) == pytest.approx((0, 5000), abs=800)
        page.keyboard.press("Shift+ArrowRight")
        assert shown(page)[0] > 500
        page.keyboard.press("End")
        assert shown(page)[1] == 20_000
        assert page.locator(".unseen").text_content().startswith("Sample 20,000: ")
        page.keyboard.press("-")
        page.keyboard.press("Escape")
        assert not page.locator(".tip").is_visible()
        page.keyboard.press("0")
        assert shown(page) == (0, 20_000)


def cells(page, column):
    return page.locator(f"#all-keys tbody tr > :nth-child({column})").all_text_contents()


def test_the_table_of_keys_is_sorted_and_searched_by_keyboard(browser, pages):
    with opened(browser, pages["fleet"]) as page:
        samples = [int(text.replace(",", "")) for text in cells(page, 2)]
        assert len(samples) == 50
        assert samples == sorted(samples, reverse=True)
        head = page.locator("#all-keys thead button")
        head.nth(2).focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Enter")
        accuracy = [float(text.removesuffix(" %")) for text in cells(page, 3) if text != "–"]
        assert accuracy == sorted(accuracy)
        assert page.locator("#all-keys [aria-sort=ascending]").text_content() == "Accuracy"
        head.nth(0).press("Enter")
        names = cells(page, 1)
        assert names == sorted(names, key=lambda name: int(name.split()[1]))  # 9 before 10
        page.locator("#all-keys .more button").press("Enter")
        assert len(cells(page, 1)) > 50
        search = page.get_by_label("Search")
        search.press_sequentially("PUMP 7")
        found = cells(page, 1)
        assert found
        assert all(name.startswith("pump 7") for name in found)
        assert page.locator("#all-keys [role=status]").text_content() == f"{len(found)} found"
        search.fill("nobody")
        assert cells(page, 1) == []


def test_fingers_pinch_and_move(browser, pages):
    with opened(browser, pages["run"], "phone") as page:
        page.locator(".plot").first.scroll_into_view_if_needed()
        hand = page.context.new_cdp_session(page)

        def touch(kind, *shares):
            places = [middle(page, share) for share in shares]
            hand.send(
                "Input.dispatchTouchEvent",
                {"type": kind, "touchPoints": [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(places)]},
            )

        touch("touchStart", 0.4)
        touch("touchStart", 0.4, 0.6)
        for wider in (0.05, 0.1, 0.2, 0.3):
            touch("touchMove", 0.4 - wider, 0.6 + wider)
        touch("touchEnd")
        before = shown(page)
        assert 4000 < before[0] < before[1] < 16_000
        touch("touchStart", 0.5)
        for further in (0.4, 0.3):
            touch("touchMove", further)
        touch("touchEnd")
        assert shown(page)[0] > before[0] + 500
        assert shown(page)[1] - shown(page)[0] == pytest.approx(before[1] - before[0], abs=2)


def test_the_buttons_zoom_and_the_address_keeps_it(browser, pages):
    with opened(browser, pages["comparison"]) as page:
        for name in ("Zoom in", "Zoom in", "Later samples"):
            page.get_by_role("button", name=name).click()
        before = shown(page)
        until(page, f"location.hash === '#samples={before[0]}-{before[1]}'")  # each click puts its address off
        page.reload()
        assert shown(page) == pytest.approx(before, abs=2)
        page.get_by_role("button", name="Whole stream").click()
        assert shown(page)[0] == 0
        assert page.get_by_role("button", name="Zoom out").is_disabled()
    with opened(browser, pages["run"], place="#samples=5000-9000") as page:
        assert shown(page) == (5000, 9000)
    with opened(browser, pages["run"], place="#samples=-7-x") as page:
        assert shown(page) == (0, 20_000)


def test_a_page_in_progress_loads_itself_again_unless_it_is_paused(browser, pages):
    with opened(browser, pages["in progress"], still=True) as page:
        page.evaluate("window.mine = true")
        page.clock.run_for(4000)
        assert page.evaluate("window.mine") is True
        page.get_by_role("button", name="Pause").click()
        page.clock.run_for(60_000)
        assert page.evaluate("window.mine") is True
        page.get_by_role("button", name="Go on").click()
        with page.expect_navigation():
            page.clock.run_for(2000)  # to second 66: at 65 it loads itself again, and at 70 it would once more
        assert page.evaluate("window.mine") is None
        page.get_by_role("button", name="Pause").click()
        page.clock.run_for(5000)  # years after it was written
        assert re.search(r"Nothing new for \d+ min: .* or it was stopped", page.locator("#running").text_content())


def test_on_phones_long_lists_are_folded_and_tables_show_that_there_is_more(browser, pages):
    for width in WIDTHS:
        with opened(browser, pages["run"], width) as page:
            assert page.get_by_text("Machine", exact=True).is_visible() == (width == "desktop")
            page.get_by_text("What was run").click()
            assert page.get_by_text("Machine", exact=True).is_visible() == (width == "phone")
        with opened(browser, pages["table"], width) as page:
            table = page.locator(".scroll").first
            assert table.evaluate("(one) => one.classList.contains('more-right')") == (width == "phone")
            if width == "phone":
                table.evaluate("(one) => { one.scrollLeft = one.scrollWidth; }")
                until(page, "document.querySelector('.scroll').classList.contains('more-left')")
                assert not table.evaluate("(one) => one.classList.contains('more-right')")


def test_a_table_uses_the_width(browser, pages):
    with opened(browser, pages["table"]) as page:
        page.set_viewport_size({"width": 1900, "height": 1000})
        cards = [card.bounding_box() for card in page.locator(".sheets > .card").all()]
        assert any(a["y"] == b["y"] and a["x"] < b["x"] for a in cards for b in cards), "none is beside another"
        assert max(card["x"] + card["width"] for card in cards) > 1600


def test_without_scripts_the_page_is_complete(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{pages['run']}")
    assert page.locator(".chart").first.is_visible()
    assert page.get_by_text("Machine", exact=True).is_visible()
    context.close()


def test_a_run_of_ten_million_samples_has_a_page_below_a_megabyte(browser, tmp_path):
    """Charts at their full resolution, drifts and changes everywhere; how fast it opens, benchmarks/pages.py says."""
    records = [
        record(chunk, n=1250, hits=800 + chunk * 37 % 400, growths=(chunk % 7 == 0, 0), drifts=(chunk % 2, chunk % 3))
        for chunk in range(8000)
    ]
    path = tmp_path / "page.html"
    write_report([save(tmp_path / "run", records, n_samples=10_000_000)], path)
    assert path.stat().st_size < 1_000_000
    with opened(browser, path) as page:
        page.locator(".plot").first.focus()
        page.keyboard.press("End")
        assert page.locator(".unseen").text_content().startswith("Sample 10,000,000: ")


def test_an_animated_picture_uncovers_its_curves_once(browser, tmp_path, sea_records):
    write_picture(save(tmp_path / "run", sea_records), tmp_path / "run.svg", animated=True)
    covered = "getComputedStyle(document.querySelector('.moves')).clipPath"
    with opened(browser, tmp_path / "run.svg") as page:
        page.evaluate("document.getAnimations().forEach((one) => { one.pause(); one.currentTime = 3000; })")
        assert page.evaluate(covered).split(" ", 1)[1].startswith("calc(75%")  # of the width, from the right
        page.evaluate("document.getAnimations().forEach((one) => one.finish())")
        assert page.evaluate(covered).split(" ", 1)[1].startswith("calc(0% - 9px)")
        page.emulate_media(reduced_motion="reduce")
        assert (page.evaluate(covered), page.evaluate("document.getAnimations().length")) == ("none", 0)
