#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Goes through a page with the tabulator key alone, in headless Chromium.

Everything that can be reached has to be: each link, each part that folds (a chart's data, record
and command), each box that scrolls (every table is in one); in the order in which they stand, and
with an outline that shows where one is. Enter has to open what folds, and what was in it can be
reached then.

The keys are the browser's own input events, sent through its debugging pipe: what a script in the
page makes up moves no focus.

usage: scripts/check-keyboard.py CHROMIUM PAGE.html
Exit code: 0 all of it can be reached; 1 not; 3 the browser does not start.
"""

import fcntl
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# What the tabulator key stops at, as HTML has it, where the page shows it.
STOPS = """
[...document.querySelectorAll('a[href], summary, [tabindex="0"]')].filter(e =>
    e.checkVisibility() && !e.parentElement.closest('details:not([open]) > :not(summary)'))
"""
# Where the focus is now: the number of the stop, and whether it shows.
WHERE = f"""(() => {{
    const e = document.activeElement, style = getComputedStyle(e);
    const shows = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
    return [({STOPS}).indexOf(e), shows];
}})()"""
NAMES = f"({STOPS}).map(e => `${{e.tagName}} ${{(e.textContent || '').trim().slice(0, 40)}}`)"


class Browser:
    """Chromium at the other end of two pipes: messages in JSON, each ended by a zero byte."""

    def __init__(self, program, folder):
        # The browser reads from descriptor 3 and writes to 4; ours must not be these.
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_in, theirs_out)]

        def place():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        self.process = subprocess.Popen(
            [program, *flags, "about:blank"], preexec_fn=place, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.last, self.pending, self.session = 0, b"", None

    def message(self):
        while b"\0" not in self.pending:
            piece = os.read(self.into, 1 << 16)
            if not piece:
                raise OSError("the browser has ended")
            self.pending += piece
        one, self.pending = self.pending.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **params):
        self.last += 1
        order = {"id": self.last, "method": method, "params": params}
        if self.session:
            order["sessionId"] = self.session
        # A pipe takes an order of this size whole.
        os.write(self.out, json.dumps(order).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, page):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target,
                                flatten=True)["sessionId"]
        self.ask("Emulation.setFocusEmulationEnabled", enabled=True)
        self.ask("Page.enable")
        self.ask("Page.navigate", url=pathlib.Path(page).absolute().as_uri())
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def value(self, script):
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise OSError(result["exceptionDetails"]["exception"]["description"])
        return result["result"].get("value")

    def press(self, key, code, text=None):
        down = {"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
        if text:
            down["text"] = text
        self.ask("Input.dispatchKeyEvent", **down)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, code=key,
                 windowsVirtualKeyCode=code)

    def tab(self):
        self.press("Tab", 9)

    def enter(self):
        self.press("Enter", 13, "\r")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)


def walk(browser):
    """Tab through the page once: what is wrong with that, in words."""
    names = browser.value(NAMES)
    wrong = []
    for number, name in enumerate(names):
        browser.tab()
        at, shows = browser.value(WHERE)
        if at != number:
            there = names[at] if at >= 0 else "nothing of the page"
            return len(names), [f"after {number} of {len(names)} stops comes {there}, not {name}"]
        if not shows:
            wrong.append(f"{name}: nothing shows that the focus is there")
    return len(names), wrong


def unfold(browser):
    """Open the first part that folds, by its key: what is wrong with that, in words."""
    browser.value("document.activeElement.blur(); scrollTo(0, 0)")
    browser.value("getSelection().removeAllRanges()")
    first = browser.value(f"({STOPS}).findIndex(e => e.tagName === 'SUMMARY')")
    if first < 0:
        return []
    browser.value(f"({STOPS})[{first}].focus()")
    browser.enter()
    if not browser.value("document.activeElement.parentElement.open"):
        return ["Enter does not open the first part that folds"]
    inside = browser.value(f"({STOPS}).filter(e => e.tagName !== 'SUMMARY' && "
                           "document.activeElement.parentElement.contains(e)).length")
    if inside == 0:
        return []
    browser.value("window.opened = document.activeElement.parentElement")
    browser.tab()
    if not browser.value("opened.contains(document.activeElement)"):
        return ["what the first part that folds has inside cannot be reached"]
    return []


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: check-keyboard.py CHROMIUM PAGE.html")
    program, page = sys.argv[1:]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            browser = Browser(program, folder)
            browser.open(page)
        except OSError as error:
            print(f"check-keyboard: {program}: {error}", file=sys.stderr)
            sys.exit(3)
        try:
            stops, wrong = walk(browser)
            wrong += unfold(browser)
        finally:
            browser.close()
    if stops == 0:
        wrong.append("there is nothing on the page that the key could reach")
    for one in wrong:
        print(f"check-keyboard: {one}", file=sys.stderr)
    print(f"check-keyboard: {stops} stops, {len(wrong)} of them wrong")
    sys.exit(1 if wrong else 0)


main()
