"""The page of `rareclass serve` in a browser: filled in, sent, answered; faults are shown."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.conftest import Chromium
from serving.conftest import fitted as fitted

WIDTHS = (390, 1280)
THEMES = ("light", "dark")


@pytest.fixture(scope="module")
def address(fitted: Path) -> Iterator[str]:
    """Where the service listens, in a thread of this process."""
    uvicorn = pytest.importorskip("uvicorn")
    from rareclass.serving.live_model import LiveModel
    from rareclass.serving.service import Settings, service_of

    app = service_of(LiveModel(fitted), Settings(look_seconds=0.0), "0")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server.should_exit = True
        thread.join()


def go(chromium: Chromium, address: str, width: int = 1280, theme: str = "light") -> None:
    chromium.show(width, theme)
    chromium.console()
    chromium.requests()
    chromium.driver.get(address)


def sent(chromium: Chromium, **cells: str) -> None:
    """Fill in fields by name and press Enter in the last one."""
    for name, cell in cells.items():
        field = chromium.driver.find_element("name", name)
        field.clear()
        field.send_keys(cell)
    field.send_keys("\n")
    for _ in range(100):
        status = chromium.text("status")
        if not status.startswith(("Scoring", "The answer")):
            return
        time.sleep(0.05)


def test_a_row_is_scored_by_the_keyboard_alone(chromium: Chromium, address: str) -> None:
    go(chromium, address)
    sent(chromium, amount="90", country="XX")
    assert chromium.text("decision") == "yes"
    figures = chromium.text("figures")
    assert all(name in figures for name in ("Score", "Probability", "Percentile"))
    assert "country" in chromium.text("told")
    assert chromium.console() == []
    assert {url.removeprefix(address).partition("?")[0] for url in chromium.requests()} == {"score"}


def test_what_is_wrong_is_shown_at_its_field(chromium: Chromium, address: str) -> None:
    go(chromium, address)
    sent(chromium, amount="a lot")
    field = chromium.driver.find_element("name", "amount")
    assert field.get_attribute("aria-invalid") == "true"
    fault = chromium.text(field.get_attribute("id") + "-fault")
    assert "'a lot'" in fault
    assert chromium.run("return document.activeElement.name") == "amount"
    assert not chromium.driver.find_element("id", "result").is_displayed()
    sent(chromium, amount="50")
    assert field.get_attribute("aria-invalid") is None
    assert chromium.text("decision") == "no"


def test_it_fits_in_every_width_and_theme_and_is_accessible(
    chromium: Chromium, address: str, axe: str
) -> None:
    colors = set()
    for theme in THEMES:
        for width in WIDTHS:
            go(chromium, address, width, theme)
            sent(chromium, amount="90", country="XX")
            assert chromium.run("return document.documentElement.scrollWidth") == width
            colors.add(chromium.run("return getComputedStyle(document.body).backgroundColor"))
            chromium.run(axe)
            found = chromium.driver.execute_async_script(
                "const done = arguments[0]; axe.run().then(r => done(r.violations))"
            )
            assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []
    assert len(colors) == 2
