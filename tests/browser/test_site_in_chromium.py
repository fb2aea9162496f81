"""The built site in a browser: newcomers' questions in two clicks, and pages that fit the screen.

`make docs` builds the site; RARECLASS_SITE names another folder with one. Without a site these
tests skip.
"""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough
SITE = Path(os.environ.get("RARECLASS_SITE", Path(__file__).parents[2] / "build" / "docs"))
# What a newcomer types, the page that answers, and words of the answer.
QUESTIONS = [
    ("50 alerts a day", "how-to/alert-budget.html", "--alerts 50/day"),
    ("why was a row flagged", "how-to/explain-alerts.html", "reason_1"),
    ("better than LightGBM on my data", "how-to/compare-models.html", "rareclass compare"),
    ("score in Spark", "how-to/spark.html", "mapInPandas"),
    ("what does a score of 2.3 mean", "reference/scores.html", "of 200 held-out rows"),
]
FIRST_RESULTS = 3


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        """Print nothing."""


@pytest.fixture(scope="module")
def site():
    if not (SITE / "index.html").is_file():
        pytest.skip("no site: make docs builds it")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def links(chromium, where):
    script = "return [...document.querySelectorAll(arguments[0])].map(a => a.href.split('#')[0])"
    return list(chromium.run(script, f"{where} a[href]"))


def text_of(chromium):
    return str(chromium.run("return document.querySelector('article').textContent"))


@pytest.mark.parametrize(("question", "page", "answer"), QUESTIONS)
def test_the_front_page_leads_to_the_answer(chromium, site, question, page, answer):
    chromium.show(1280, "light")
    chromium.driver.get(site + "index.html")
    first = set(links(chromium, "article"))
    if site + page not in first:  # a second click
        seconds = set()
        for each in first:
            if each.startswith(site):
                chromium.driver.get(each)
                seconds |= set(links(chromium, "article"))
        assert site + page in seconds, question
    chromium.driver.get(site + page)
    assert answer in text_of(chromium)


@pytest.mark.parametrize(("question", "page", "answer"), QUESTIONS)
def test_the_search_finds_the_answer(chromium, site, question, page, answer):
    chromium.driver.get(f"{site}search.html?q={question.replace(' ', '+')}")
    results = "#search-results ul.search > li"
    wait = chromium.driver.set_script_timeout
    wait(20)
    chromium.driver.execute_async_script(
        "const [where, done] = arguments;"
        "const look = () => document.querySelector('#search-results .search-summary')"
        "  && !/Searching/.test(document.querySelector('#search-results').textContent)"
        "  ? done() : setTimeout(look, 50);"
        "look();",
        results,
    )
    found = list(dict.fromkeys(links(chromium, results)))[:FIRST_RESULTS]
    assert site + page in found, (question, found)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen(chromium, site, width, theme):
    chromium.show(width, theme)
    wide = []
    for path in sorted(SITE.rglob("*.html")):
        chromium.driver.get(site + str(path.relative_to(SITE)))
        script = "const e = document.documentElement; return e.scrollWidth - e.clientWidth"
        if chromium.run(script) > 0:
            wide.append(str(path.relative_to(SITE)))
    assert not wide
