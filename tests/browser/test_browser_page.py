"""The page in a real browser: no errors, nothing asked for, sorting, filters, and the records' numbers."""

import itertools

import pytest

from effbench.analysis.comparison import compare
from effbench.report.html.page import report
from many_records import many


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


def test_a_page_of_many_workloads_fits_a_phone(browser, tmp_path):
    (file := tmp_path / "many.html").write_text(report(list(many(4, 2, workloads=6))), encoding="utf-8")
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


def test_a_phone_shows_two_columns_of_the_main_table_beside_names_that_stay(opened):
    opened.set_viewport_size({"width": 390, "height": 844})
    box = opened.locator(".scroll:has(#main)")
    name = opened.locator("#main tbody th").first
    second = opened.locator("#main tbody tr").first.locator("td").nth(1)
    before = name.bounding_box()
    assert before["x"] + before["width"] < 0.4 * 390
    assert second.bounding_box()["x"] + 60 < 390  # a number of it can be read
    box.evaluate("part => { part.scrollLeft = part.scrollWidth; }")
    assert box.evaluate("part => part.scrollLeft") > 0
    assert name.bounding_box()["x"] == before["x"]
    assert opened.evaluate("document.documentElement.scrollWidth") == 390


def test_the_heads_of_a_long_table_stay_while_its_rows_scroll(browser, tmp_path):
    file = tmp_path / "long.html"
    file.write_text(report(list(many(14, 2, workloads=5))), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1280, "height": 700})
    page.goto(file.as_uri())
    head, box = page.locator("#main thead th").nth(2), page.locator(".scroll.tall")
    before = head.bounding_box()["y"]
    box.evaluate("part => { part.scrollTop = 200; }")
    assert (box.evaluate("part => part.scrollTop"), head.bounding_box()["y"]) == (200, before)
    assert page.locator("#main .verdict .word").first.bounding_box()["width"] <= 1  # the mark says it, and the filter
    page.close()


def test_a_claim_card_leads_to_its_records_alone(opened, records):
    name = next(name for each in records for name in each.techniques if each.status == "ok")
    section = opened.locator(f"[id='t-{name}']")
    section.locator("summary").first.click()
    link = section.locator("a.to-records").nth(1)
    workload = link.get_attribute("data-workload")
    link.click()
    rows = section.locator("details.records tbody tr")
    own = [each for each in records if name in each.techniques]
    keys = sorted(each.key for each in own if each.workload == workload)
    shown = rows.evaluate_all("all => all.filter(row => !row.hidden).map(row => row.cells[10].textContent)")
    assert sorted(shown) == keys
    assert len(keys) == 3
    section.get_by_role("button", name=f"show all {len(own)}").click()
    assert rows.evaluate_all("all => all.filter(row => !row.hidden).length") == len(own)


def test_headings_go_down_one_step_at_a_time(opened):
    levels = opened.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(head => Number(head.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_tab_key_goes_from_the_skip_link_through_the_parts_to_the_table(opened):
    stops = []
    where = "(part => part.getAttribute('href') || part.id || part.type)(document.activeElement)"
    for _ in range(24):
        opened.keyboard.press("Tab")
        stops.append(opened.evaluate(where))
    wanted = ["#answer", "#effects", "#curves", "#reproduce", "theme", "search", "checkbox"]
    places = [stops.index(each) for each in wanted]
    assert places == sorted(places)
    opened.keyboard.press("Shift+Tab")
    assert opened.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_everything_that_can_be_focused_or_seen_has_a_name(opened):
    unnamed = opened.evaluate("""
        [...document.querySelectorAll("[tabindex], nav, .plot, input[type=search], figure")].filter(part =>
            !(part.getAttribute("aria-label") || part.querySelector("figcaption, code")))
            .map(part => part.outerHTML.slice(0, 80))""")
    assert unnamed == []


def test_nothing_moves_for_those_who_want_no_motion(opened):
    opened.emulate_media(reduced_motion="reduce")
    moving = """[...document.querySelectorAll("*")].map(part => getComputedStyle(part)).filter(look =>
        look.animationName !== "none" || look.transitionDuration !== "0s" || look.scrollBehavior !== "auto").length"""
    assert opened.evaluate(moving) == 0


def test_paper_shows_what_is_folded_and_heads_on_every_sheet(opened):
    card = opened.locator("details.technique .claim").nth(1)
    assert not card.is_visible()
    opened.emulate_media(media="print")
    opened.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert card.is_visible()
    assert not opened.locator("details.technique .records .listing").first.is_visible()
    button = opened.locator("#main thead button").first
    assert button.evaluate("part => getComputedStyle(part).display") == "contents"
    opened.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not card.is_visible()


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
    assert page.locator(".plot").first.is_hidden()
    assert "Figures need JavaScript" in page.locator("#answer").inner_text()
    page.locator("#effects details.figures summary").first.click()
    assert "[" in page.locator("#effects details.figures table").first.inner_text()
    page.locator("[id^='t-'] > summary").first.click()
    assert page.locator("[id^='t-'][open] table").first.is_visible()
    page.locator("[id^='t-'][open] .records summary").first.click()
    assert "on test" in page.locator("[id^='t-'][open] .listing").first.inner_text()
    page.close()
