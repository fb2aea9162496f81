"""A headless Chromium, and pages to look at; tests skip, saying why, where there is none."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rareclass.metrics import interval
from rareclass.report.curves import cost_section, ranking_section, threshold_section
from rareclass.report.page import KeyFigure, Note, ReportPage, Section, rendered
from rareclass.report.scores_section import (
    ReliabilityDisplay,
    ScoreDistributionDisplay,
    scores_section,
)
from rareclass.report.threshold_table import ThresholdTable
from rareclass.table_block import TableBlock

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
_REMEDY = "make test-browser installs it (on Debian: apt-get install chromium chromium-driver)"
# Where `make test-browser` puts axe-core.
_AXE = Path(__file__).parents[2] / "build/browser/node_modules/axe-core/axe.min.js"


def pytest_collection_modifyitems(items):
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)


COSTS = {"fp": 1.0, "fn": 20.0}


class Chromium:
    def __init__(self, driver):
        self.driver = driver

    def show(self, width, theme):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page):
        self.console()
        self.requests()
        self.driver.get(page.as_uri())

    def text(self, name):
        return str(self.run(f"return document.getElementById('{name}').textContent"))

    def run(self, script, *words):
        return self.driver.execute_script(script, *words)

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                request = message["params"]
                if request.get("type") != "Document" and not request["request"]["url"].startswith(
                    "data:"
                ):
                    found.append(request["request"]["url"])
        return found


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    binary = next((found for name in _CHROMIUM if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip(f"no {'Chromium' if binary is None else 'chromedriver'}: {_REMEDY}")
    options = webdriver.ChromeOptions()
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.binary_location = binary
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver)
    started = webdriver.Chrome(options=options, service=service)
    yield Chromium(started)
    started.quit()


@pytest.fixture(scope="session")
def axe():
    if not _AXE.is_file():
        pytest.skip("no axe-core: make test-browser fetches it from the npm registry")
    return _AXE.read_text(encoding="utf-8")


class Judged:
    def __init__(self, y, scores, costs=None):
        self.y, self.scores = y, scores
        own = float(np.quantile(scores, 1 - 2 * y.mean()))
        self.table = ThresholdTable.of(y, scores, own=own, costs=costs)

    def write(self, path, whole=True):
        sections = [
            threshold_section(
                self.table, "target = 1", "target = 0", "twice as many as are rare",
                "rareclass threshold m.rareclass --threshold {threshold} --out n.rareclass",
            ),
            *(self._others() if whole else ()),
        ]  # fmt: skip
        report = ReportPage(
            "Finding target = 1", "some rows", "What there is to know.",
            (KeyFigure("AUC", "0.9", "0.8 to 0.95"),), tuple(sections), "Made by a test.",
        )  # fmt: skip
        path.write_text(rendered(report), encoding="utf-8")
        return path

    def _others(self):
        y, scores, table = self.y, self.scores, self.table
        probabilities = 1 / (1 + np.exp(-scores))
        cells = (("a number of words",) * 8,) * 3
        return [
            ranking_section(
                table, interval("roc_auc", y, scores), interval("average_precision", y, scores)
            ),
            scores_section(
                ScoreDistributionDisplay.of(y, scores, threshold=0.5),
                ReliabilityDisplay.of(y, probabilities),
            ),
            *([] if table.cost is None else [cost_section(table)]),
            Section(
                "data", "The data", "A table that is too wide for a telephone.",
                (Note("A note."), TableBlock("Columns", tuple("abcdefgh"), cells)),
            ),
        ]  # fmt: skip


def judged_of(X, y):
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
    model.fit(X[::2], y[::2])
    return Judged(y[1::2], model.decision_function(X[1::2]), COSTS)


@pytest.fixture(scope="session")
def simulated():
    generator = np.random.default_rng(0)
    y = generator.random(4_000) < 0.04
    return Judged(y, np.round(generator.normal(size=4_000) - 3.0 + 3.0 * y, 3), COSTS)


@pytest.fixture(scope="session")
def page(simulated, tmp_path_factory):
    return simulated.write(tmp_path_factory.mktemp("page") / "report.html")
