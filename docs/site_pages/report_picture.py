"""Picture of the report in the README, light and dark: `python -m docs.site_pages.report_picture`.

Runs `rareclass demo` and opens its report in Chromium, which must be installed.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

STATIC = Path(__file__).parents[1] / "static"
# How Chromium's settings name the theme that a page may ask for.
THEMES = {"dark": 0, "light": 1}
SIZE, COLOURS = (1100, 1000), 96
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", f"--window-size={SIZE[0]},{SIZE[1]}",
)  # fmt: skip


def draw(browser: str, report: Path, theme: str, folder: Path) -> None:
    """Take a picture of the page in a theme, with few colours, so that the file is small."""
    taken = folder / f"{theme}.png"
    subprocess.run(
        [
            browser,
            *_FLAGS,
            f"--user-data-dir={folder / theme}",
            f"--blink-settings=preferredColorScheme={THEMES[theme]}",
            f"--screenshot={taken}",
            report.as_uri(),
        ],
        check=True,
        capture_output=True,
    )
    picture = Image.open(taken).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(STATIC / f"report-{theme}.png", optimize=True)


def main() -> None:
    """Run the demo and draw its report."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        sys.exit("Chromium is not installed: make test-browser installs it.")
    with TemporaryDirectory() as name:
        folder = Path(name)
        demo = [sys.executable, "-m", "rareclass", "demo", "--out", str(folder / "demo")]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        for theme in THEMES:
            draw(browser, folder / "demo" / "report.html", theme, folder)


if __name__ == "__main__":
    main()
