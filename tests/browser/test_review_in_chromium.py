"""The page of `rareclass review` in a browser: keys give verdicts, which stay; faults are shown."""

import socket
import threading
import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from made_tables import purchases
from rareclass.review import ReviewJournal, next_rows, open_journal, read_review_table

WIDTHS = (390, 1280)
THEMES = ("light", "dark")


class Page:
    def __init__(self, chromium, address, journal):
        self.chromium, self.address, self.path = chromium, address, journal

    def open(self, width=1280, theme="light"):
        self.chromium.show(width, theme)
        self.chromium.console()
        self.chromium.driver.get(self.address)
        self.wait(lambda: "Round" in self.chromium.text("where"))

    def press(self, *keys):
        for key in keys:
            self.chromium.driver.find_element(By.TAG_NAME, "body").send_keys(key)

    def wait(self, is_there):
        for _ in range(200):
            if is_there():
                return
            time.sleep(0.05)
        pytest.fail(f"{self.text('where')} {self.text('status')} {self.text('fault')}")

    def text(self, name):
        return self.chromium.text(name)

    def verdicts(self):
        return {key: each.label for key, each in ReviewJournal(self.path).verdicts.items()}

    def give(self, key):
        n = len(self.verdicts())
        self.press(key)
        self.wait(lambda: f"({n + 1} verdicts)" in self.text("status"))


@pytest.fixture
def page(chromium, tmp_path):
    uvicorn = pytest.importorskip("uvicorn")
    from rareclass.serving.review_page import review_app

    table = read_review_table(purchases().drop("fraud"), "fraud", "order")
    path = tmp_path / "j.jsonl"
    journal = open_journal(path, table, None, "yes", ["no"])

    def more():
        return next_rows(table, journal, budget=5)

    app = review_app(journal, more(), more)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield Page(chromium, f"http://127.0.0.1:{listening.getsockname()[1]}/", path)
        server.should_exit = True
        thread.join()


def test_a_list_is_worked_off_by_keys_alone(page):
    page.open()
    assert "row 1 of 5, 5 without a verdict" in page.text("where")
    for key in "12212":
        page.give(key)
    assert list(page.verdicts().values()) == ["yes", "no", "no", "yes", "no"]
    assert "Every row has a verdict" in page.text("status")
    page.press("n")
    page.wait(lambda: "Round 2, row 1 of 5, 5 without" in page.text("where"))
    assert len(ReviewJournal(page.path).rounds) == 2
    assert page.chromium.console() == []


def test_a_reload_keeps_verdicts_and_goes_on_where_they_end(page):
    page.open()
    page.give("1")
    page.give("2")
    page.open()
    assert "row 3 of 5, 3 without a verdict" in page.text("where")
    page.press(Keys.ARROW_LEFT)
    assert "Verdict: no" in page.text("where")
    pressed = page.chromium.driver.find_element(By.CSS_SELECTOR, "#labels [aria-pressed=true]")
    assert pressed.text == "2: no"


def test_a_verdict_is_replaced_and_keys_in_the_note_give_none(page):
    page.open()
    page.press("u")  # nothing to go back to
    assert "row 1 of 5" in page.text("where")
    page.chromium.driver.find_element(By.ID, "note").send_keys("2 cards, n")
    assert page.verdicts() == {}
    page.press(Keys.ARROW_RIGHT)
    page.press(Keys.ARROW_LEFT)
    page.give("1")
    page.press("u")
    assert "row 1 of 5" in page.text("where")
    assert "another label replaces it" in page.text("status")
    page.press("2")
    page.wait(lambda: "is no (1 verdicts)" in page.text("status"))
    assert list(page.verdicts().values()) == ["no"]


def test_a_second_page_cannot_contradict_unseen(page):
    page.open()
    first = page.chromium.driver.current_window_handle
    page.chromium.driver.switch_to.new_window("tab")
    try:
        page.open()
        page.give("1")
        second = page.chromium.driver.current_window_handle
        page.chromium.driver.switch_to.window(first)
        assert "5 without a verdict" in page.text("where")  # it does not know yet
        page.press("2")
        page.wait(lambda: "contradicts" in page.text("fault"))
        assert list(page.verdicts().values()) == ["yes"]
        page.open()
        assert "row 2 of 5, 4 without a verdict" in page.text("where")
    finally:
        page.chromium.driver.switch_to.window(second)
        page.chromium.driver.close()
        page.chromium.driver.switch_to.window(first)


def test_it_fits_in_every_width_and_theme_and_is_accessible(page, axe):
    colors = set()
    for theme in THEMES:
        for width in WIDTHS:
            page.open(width, theme)
            assert page.chromium.run("return document.documentElement.scrollWidth") == width
            colors.add(page.chromium.run("return getComputedStyle(document.body).backgroundColor"))
            page.chromium.run(axe)
            found = page.chromium.driver.execute_async_script(
                "const done = arguments[0]; axe.run().then(r => done(r.violations))"
            )
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
    assert len(colors) == 2
