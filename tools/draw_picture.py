"""Draw the picture of README.md with Chromium: a page of ``protgraph view``, its prediction and graph edges.

Run ``python tools/draw_picture.py`` in the checkout. Requires the extra ``test``, Chromium and its driver.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from protgraph_plugins.view import view, write_page
from selenium import webdriver

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
STRUCTURE = ROOT / "datasets" / "pdb_core" / "structures" / "1ubq.bcif"
PICTURE = ROOT / "docs" / "assets" / "view.png"
SIZE = (900, 780)
FLAGS = ("headless=new", "no-sandbox", "use-angle=swiftshader", "enable-unsafe-swiftshader", "disable-dev-shm-usage")


def main() -> None:
    """Draw the picture."""
    scene = view(STRUCTURE, edges=["hydrogen_bond"], prediction="secondary_structure", color="p_H")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"window-size={SIZE[0]},{SIZE[1]}"):
        options.add_argument(f"--{flag}")
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    with tempfile.TemporaryDirectory() as folder, webdriver.Chrome(options=options, service=service) as browser:
        browser.get(write_page(scene, Path(folder) / "view.html").as_uri())
        while browser.execute_script("return document.body.getAttribute('aria-busy')") != "false":
            time.sleep(0.5)
        time.sleep(5.0)
        PICTURE.write_bytes(browser.get_screenshot_as_png())


if __name__ == "__main__":
    main()
