"""A Chromium that is offline, and pages of the explorer from disk."""

import os
import subprocess

import pytest
from playwright.sync_api import sync_playwright

LILAC = os.environ["LILAC"]
PAGE = os.environ["LILAC_PAGE"]
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "..", "..")
CORPUS = os.path.join(SOURCE, "tests", "data", "corpus")


def lilac(*words, text=""):
    """(status, standard output, standard error) of the native command."""
    done = subprocess.run([LILAC, *words], input=text.encode(), capture_output=True, check=False)
    return [done.returncode, done.stdout.decode(), done.stderr.decode()]


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["LILAC_BROWSER"], args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page, what it requested, and its errors."""

    def __init__(self, browser, path, **options):
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.requests, self.errors = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.goto(f"file://{path}")
        self.page.wait_for_selector("html[data-ready]", timeout=30000)

    def close(self):
        self.context.close()
        assert self.errors == []


@pytest.fixture(scope="module")
def opened(browser):
    """The page without a kernel."""
    opened = Opened(browser, PAGE, viewport={"width": 1440, "height": 900})
    yield opened
    opened.close()


@pytest.fixture()
def page(opened):
    return opened.page


def explore(folder, kernel, *words):
    """The path of a page that `lilac explore` writes for a kernel of the corpus."""
    path = os.path.join(folder, f"{kernel}.html")
    status, _, err = lilac("explore", os.path.join(CORPUS, f"{kernel}.ttir"), "-o", path, "--page", PAGE, *words)
    assert status == 0, err
    return path
