"""The page in a browser: quiet, moved by every key, the same numbers as scikit-learn's."""

import base64
import re

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import confusion_matrix

from browser.conftest import Judged, judged_of
from real_data import real_file

WIDTHS = (390, 1280)
THEMES = ("light", "dark")


def number(text):
    return float(re.sub(r"[^\d.]", "", text) or "nan")


def moved_to(chromium, place):
    chromium.run(
        "const s = document.getElementById('slider'); s.value = arguments[0];"
        "s.dispatchEvent(new Event('input'))",
        place,
    )
    return {name: number(chromium.text(f"o-{name}")) for name in ("tp", "fp", "fn", "tn")}


def agrees_with_scikit_learn(chromium, judged):
    table = judged.table
    places = np.linspace(0, len(table.thresholds) - 1, 10).astype(int)
    for place in places.tolist():
        shown = moved_to(chromium, place)
        called = judged.scores > table.thresholds[place]
        (tn, fp), (fn, tp) = confusion_matrix(judged.y, called)
        assert shown == {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
        if tp + fp:
            assert number(chromium.text("o-precision")) == pytest.approx(
                100 * tp / (tp + fp), abs=0.06
            )
        assert number(chromium.text("o-recall")) == pytest.approx(100 * tp / (tp + fn), abs=0.06)
        assert number(chromium.text("o-cost")) == pytest.approx(fp + 20 * fn, rel=0.006)
        command = chromium.run("return document.getElementById('command').value")
        threshold = float(command.split("--threshold ")[1].split()[0])
        assert (judged.scores > threshold).sum() == tp + fp


def test_quiet_and_whole_in_every_width_and_theme(chromium, page):
    colors = set()
    for theme in THEMES:
        for width in WIDTHS:
            chromium.show(width, theme)
            chromium.open(page)
            assert chromium.run("return document.documentElement.scrollWidth") == width
            background = "return getComputedStyle(document.body).backgroundColor"
            colors.add(chromium.run(background))
            assert chromium.console() == []
            assert chromium.requests() == []
    assert len(colors) == 2
    before = chromium.run(background)
    chromium.run("document.getElementById('theme').click()")
    assert {before, chromium.run(background)} == colors


def test_the_slider_says_what_scikit_learn_counts(chromium, page, simulated):
    chromium.open(page)
    own = simulated.table.own
    assert own is not None
    assert number(chromium.text("o-tp")) == simulated.table.hits[own]
    agrees_with_scikit_learn(chromium, simulated)
    chromium.run("document.getElementById('to-own').click()")
    assert "own threshold" in chromium.text("o-own")
    assert number(chromium.text("o-fp")) == simulated.table.false_alerts[own]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["mammography", "satimage", "sick_euthyroid"])
def test_the_slider_on_real_tables(chromium, tmp_path, name):
    frame = pl.read_parquet(real_file(f"{name}.parquet"))
    y = (frame["target"] == frame["target"].max()).to_numpy()
    X = frame.drop("target").select(pl.selectors.numeric()).fill_null(0).to_numpy().astype(float)
    judged = judged_of(X, y)
    chromium.open(judged.write(tmp_path / "real.html", whole=False))
    agrees_with_scikit_learn(chromium, judged)
    assert chromium.console() == []


def typed(chromium, name, text):
    chromium.run(
        "const f = document.getElementById(arguments[0]); f.value = arguments[1];"
        "f.dispatchEvent(new Event('input')); f.dispatchEvent(new Event('change'))",
        name,
        text,
    )


def test_what_is_typed_is_kept(chromium, page, simulated):
    table = simulated.table
    chromium.open(page)
    typed(chromium, "by-alerts", "100")
    k = table.at_alerts(100 * table.n_rows / 1e4)
    assert number(chromium.text("o-tp")) == table.hits[k]
    typed(chromium, "by-recall", "80")
    k = table.at_recall(0.8)
    assert number(chromium.text("o-fp")) == table.false_alerts[k]
    typed(chromium, "by-precision", "50")
    k = int(np.flatnonzero(table.precision.value >= 0.5)[-1])
    assert number(chromium.text("o-tp")) == table.hits[k]
    low, high = (number(each) for each in chromium.text("o-precision-bounds").split("to"))
    assert (low, high) == pytest.approx(
        (100 * table.precision.low[k], 100 * table.precision.high[k]), abs=0.06
    )
    typed(chromium, "by-threshold", repr(float(table.thresholds[40])))
    assert number(chromium.text("o-tp")) == table.hits[40]
    typed(chromium, "by-precision", "100")
    typed(chromium, "by-threshold", "")
    assert chromium.console() == []


def test_costs_that_are_typed(chromium, tmp_path, simulated):
    untold = Judged(simulated.y, simulated.scores)
    chromium.open(untold.write(tmp_path / "untold.html", whole=False))
    hidden = "return document.getElementById('typed-cost').hidden"
    assert chromium.run(hidden)
    typed(chromium, "cost-fp", "1")
    assert chromium.run(hidden)
    typed(chromium, "cost-fn", "20")
    assert not chromium.run(hidden)
    known = simulated.table
    for place in (30, 150, 240):
        moved_to(chromium, place)
        assert number(chromium.text("o-cost")) == pytest.approx(known.cost.value[place], rel=0.006)
        low, high = (number(each) for each in chromium.text("o-cost-bounds").split("to"))
        # Exact bounds of both parts; with costs from Python Wilson's, which are near.
        assert low == pytest.approx(known.cost.low[place], rel=0.05)
        assert high == pytest.approx(known.cost.high[place], rel=0.05)
    chromium.run("document.getElementById('to-least').click()")
    assert number(chromium.text("o-tp")) == known.hits[known.least_cost]
    assert chromium.console() == []


def test_keys_alone_reach_everything(chromium, page):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    actions = pytest.importorskip("selenium.webdriver").ActionChains(chromium.driver)
    chromium.show(1280, "light")
    chromium.open(page)
    wanted = chromium.run(
        "return [...document.querySelectorAll('a, button, input, summary, [tabindex]')]"
        ".filter(e => e.checkVisibility()).map(e => e.id || e.textContent.trim().slice(0, 40))"
    )
    reached = []
    for _ in range(len(wanted) + 2):
        actions.send_keys(keys.TAB).perform()
        reached.append(
            chromium.run(
                "const e = document.activeElement;"
                "return e === document.body ? '' : e.id || e.textContent.trim().slice(0, 40)"
            )
        )
        if reached[-1] == "slider":
            before = number(chromium.text("o-tp")) + number(chromium.text("o-fp"))
            actions.send_keys(keys.ARROW_RIGHT).perform()
            assert number(chromium.text("o-tp")) + number(chromium.text("o-fp")) > before
            actions.send_keys(keys.ARROW_LEFT).perform()
            said = chromium.run("return document.activeElement.getAttribute('aria-valuetext')")
            assert "alerts, precision" in said
        if reached[-1].startswith("Ten thresholds"):
            actions.send_keys(keys.ENTER).perform()
            assert chromium.run("return document.activeElement.parentElement.open")
            actions.send_keys(keys.ENTER).perform()
    assert set(wanted) <= set(reached)
    assert reached.index("slider") > 0


def test_it_is_read_without_javascript(chromium, page, simulated):
    chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.open(page)
        own = simulated.table.own
        assert own is not None
        find = chromium.driver.find_element
        assert number(find("id", "o-tp").text) == simulated.table.hits[own]
        assert not find("id", "slider").is_displayed()
        assert not find("id", "theme").is_displayed()
        assert find("css selector", "#choice details").is_displayed()
    finally:
        chromium.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.thorough
def test_it_prints_in_few_pages(chromium, page):
    chromium.show(1280, "dark")
    chromium.open(page)
    printed = chromium.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 8


@pytest.mark.thorough
@pytest.mark.parametrize("theme", THEMES)
def test_axe_finds_nothing(chromium, page, axe, theme):
    for width in WIDTHS:
        chromium.show(width, theme)
        chromium.open(page)
        chromium.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        chromium.run(axe)
        found = chromium.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then(r => done(r.violations))"
        )
        told = [
            (each["id"], each["help"], [node["html"][:200] for node in each["nodes"]][:3])
            for each in found
        ]
        assert told == []
