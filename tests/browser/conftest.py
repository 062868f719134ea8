"""A page of a report in a real browser, for all that look at one."""

import shutil

import pytest

from effbench.report.html.page import report
from effbench.report.sources import technique_sources
from many_records import many


@pytest.fixture(scope="module")
def records():
    return list(many(8, 3, workloads=3))


@pytest.fixture(scope="module")
def page_file(records, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(report(records, sources=technique_sources()), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium, or whichever there is."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next((path for name in names if (path := shutil.which(name))), None)
    if chromium is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    why = "there is no Playwright: pip install 'effbench[browser]'"
    playwright = pytest.importorskip("playwright.sync_api", reason=why)
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, page_file):
    """The page, and what the browser complained of and asked for."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda fault: said.append(str(fault)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    yield page
    assert said == []
    assert asked == [page_file.as_uri()]
    page.close()
