"""The page in a real browser: no errors, nothing asked for, sorting, filters, and the records' numbers."""

import shutil

import pytest

from effbench.analysis.comparison import compare
from effbench.report.html.page import report
from effbench.report.sources import technique_sources
from many_records import many

playwright = pytest.importorskip(
    "playwright.sync_api", reason="there is no Playwright: pip install 'effbench[browser]'"
)
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium")


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
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
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


def column(page, number):
    return page.eval_on_selector_all(
        f"#main tbody tr:not([hidden]) > :nth-child({number})", "all => all.map(x => x.dataset.v ?? x.innerText)"
    )


def test_it_loads_and_asks_for_nothing(opened):
    assert opened.title() == "effbench: survey"
    assert opened.locator("h1").inner_text() == "survey"


def test_numbers_on_the_page_are_those_of_the_records(opened, records):
    for number, comparison in enumerate(compare(records), start=3):
        expected = {
            each.label: each.difference.mean for each in comparison.results if each.difference and each.difference.n
        }
        shown = dict(zip(column(opened, 1), column(opened, number), strict=True))
        assert {name: float(shown[name]) for name in expected} == expected


def test_columns_sort_up_and_down_by_number(opened):
    head = opened.locator("#main thead th").nth(2)
    for direction, sign in (("ascending", 1), ("descending", -1)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == direction
        values = [sign * float(value) for value in column(opened, 3) if value.lstrip("-")[0].isdigit()]
        assert values == sorted(values)
        assert len(values) > 3


def test_the_keyboard_sorts_too(opened):
    button = opened.locator("#main thead th").nth(0).get_by_role("button")
    button.focus()
    opened.keyboard.press("Enter")
    names = column(opened, 1)
    assert names == sorted(names)


def test_names_and_verdicts_filter(opened):
    total = len(column(opened, 1))
    first = column(opened, 1)[0]
    field = opened.locator("[data-for=main] input[type=search]")
    field.fill(first)
    assert column(opened, 1) == [first]
    field.fill("")
    box = opened.locator("[data-for=main] input[type=checkbox]").first
    box.check()
    verdict = box.get_attribute("value")
    left = opened.eval_on_selector_all("#main tbody tr:not([hidden])", "all => all.map(x => x.dataset.verdicts)")
    assert 0 < len(left) < total
    assert all(verdict in each.split() for each in left)
    assert f"{len(left)} of {total} sets" in opened.locator("[data-for=main]").inner_text()


def test_a_link_opens_the_technique_with_all_its_records(opened, records):
    name = next(name for each in records for name in each.techniques if each.status == "ok")
    opened.locator(f"#taxonomy a[href='#t-{name}']").click()
    section = opened.locator(f"[id='t-{name}']")
    opened.wait_for_function(f"document.getElementById('t-{name}').open")
    section.locator("details.records summary").click()
    own = [each for each in records if name in each.techniques]
    rows = section.locator("details.records tbody tr")
    rows.first.wait_for()
    assert rows.count() == len(own)
    shown = rows.evaluate_all("all => all.map(row => row.cells[6].dataset.v ?? null)")
    assert sorted(float(value) for value in shown if value) == sorted(
        each.metrics["test"][each.metric] for each in own if each.metrics
    )


def test_legends_hide_lines_and_curves_change_their_axis(opened):
    panel = opened.locator("#curves .when-share figure").first
    line = panel.locator("> svg path.line.s0")
    assert line.is_visible()
    button = panel.get_by_role("button").first
    button.click()
    assert (button.get_attribute("aria-pressed"), line.is_visible()) == ("false", False)
    opened.get_by_label("time", exact=True).check()
    assert opened.locator("#curves .when-time").is_visible()
    assert not opened.locator("#curves .when-share").is_visible()


def test_a_mark_says_its_numbers_where_the_pointer_rests(opened):
    mark = opened.locator("#effects g.effect").first
    mark.scroll_into_view_if_needed()
    opened.evaluate(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )  # scrolling hides it
    mark.hover()
    tip = opened.locator("#tip")
    tip.wait_for()
    assert "[" in tip.inner_text()


def test_themes_change_by_the_system_and_by_the_button(opened):
    colour = "getComputedStyle(document.body).backgroundColor"
    opened.emulate_media(color_scheme="light")
    light = opened.evaluate(colour)
    opened.emulate_media(color_scheme="dark")
    dark = opened.evaluate(colour)
    assert light != dark
    opened.locator("#theme").click()
    assert (opened.locator("#theme").inner_text(), opened.evaluate(colour)) == ("light", light)


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_sticks_out_of_the_window(opened, width):
    opened.set_viewport_size({"width": width, "height": 800})
    assert opened.evaluate("document.documentElement.scrollWidth") == width


def test_paper_gets_no_controls(opened):
    opened.emulate_media(media="print")
    assert not opened.locator(".top").is_visible()
    assert opened.locator("#main").is_visible()
    assert opened.pdf().startswith(b"%PDF")


def test_tables_are_there_without_javascript(browser, page_file, records):
    page = browser.new_page(java_script_enabled=False)
    page.goto(page_file.as_uri())
    assert page.locator("#main tbody tr").count() == 8
    assert page.locator("#theme").is_hidden()
    assert page.locator("[data-for=main]").is_hidden()
    page.locator("[id^='t-'] > summary").first.click()
    assert page.locator("[id^='t-'][open] table").first.is_visible()
    page.locator("[id^='t-'][open] .records summary").first.click()
    assert "on test" in page.locator("[id^='t-'][open] .listing").first.inner_text()
    page.close()
