"""Checks of pages in a browser: the keyboard, and requests and errors."""

from __future__ import annotations

import json
from typing import Any

#: Element with the focus: its number among the controls, its name, and True if it has an outline.
_FOCUSED = """
const controls = [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility());
const e = document.activeElement, labels = [...e.labels ?? []].map(l => l.textContent).join();
const name = e.getAttribute("aria-label") || e.title || labels || e.textContent, style = getComputedStyle(e);
const isVisible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
return [controls.indexOf(e), name.trim(), isVisible, controls.length];
"""
_CONTROLS = "a[href], button, input, select, summary, iframe, [tabindex='0']"


def check_keyboard(browser: Any) -> list[str]:
    """Press Tab through the page, and return the names of the controls; each has a name and a visible focus."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.execute_script("document.activeElement.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0)")
    names: dict[int, str] = {}
    count = browser.execute_script(_FOCUSED, _CONTROLS)[3]
    for _ in range(count + 2):
        ActionChains(browser).send_keys(Keys.TAB).perform()
        number, name, is_visible, _ = browser.execute_script(_FOCUSED, _CONTROLS)
        if number < 0:
            continue
        assert name, f"control {number} has no name"
        assert is_visible, f"focus on {name!r} is not visible"
        names[number] = name
    assert sorted(names) == list(range(count)), "controls that Tab does not reach"
    return [names[i] for i in range(count)]


def check_logs(browser: Any) -> None:
    """Fail if the browser requested something from another host or logged an error."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
    assert not [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
