"""Figures of the page in a real browser: drawn, asked for their numbers, in both themes and on paper."""

from effbench.report.html.page import report
from record_factory import several


def drawn(panel):
    """The plot of a panel, once it is drawn."""
    panel.scroll_into_view_if_needed()
    panel.locator(".plot[data-drawn] svg.main-svg").first.wait_for()
    return panel.locator(".plot")


def test_legends_hide_lines_and_curves_change_their_axis(opened):
    panel = opened.locator("#curves .when-share figure").first
    lines = drawn(panel).locator(".js-line")
    before = lines.count()
    button = panel.locator(".legend button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert lines.count() < before
    button.click()
    assert lines.count() == before
    opened.get_by_label("time", exact=True).check()
    assert opened.locator("#curves .when-time").is_visible()
    assert not opened.locator("#curves .when-share").is_visible()
    drawn(opened.locator("#curves .when-time figure").first)


def test_a_mark_says_its_numbers_where_the_pointer_rests(opened):
    plot = drawn(opened.locator("#effects figure").first)
    box = plot.locator(".points path").first.bounding_box()
    opened.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    plot.locator(".hovertext").wait_for()
    assert "[" in plot.locator(".hovertext").text_content()


def test_figures_follow_the_theme_and_paper_has_all_of_them_in_light(opened):
    plot = drawn(opened.locator("#effects figure").first)
    opened.emulate_media(color_scheme="dark")
    opened.wait_for_function("document.querySelector('#effects .plot').dataset.drawn === 'dark'")
    assert "rgb(232, 234, 237)" in plot.locator(".yaxislayer-above text").first.get_attribute("style")
    opened.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    seen = "[...document.querySelectorAll('.plot')].filter(each => each.clientWidth)"
    assert opened.evaluate(f"{seen}.length") > 10
    assert opened.evaluate(f"{seen}.every(each => each.dataset.drawn === 'light' && each.querySelector('.main-svg'))")
    assert opened.locator("#curves .when-time .plot svg.main-svg").first.is_visible()  # though the switch hides it
    opened.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not opened.locator("#curves .when-time").is_visible()
    assert plot.get_attribute("data-drawn") == "dark"


def test_names_are_text_in_figures(browser, tmp_path):
    names = ["<script>alert(1)</script>", "<b>x</b>", "a&lt;b", "%{x}<br>"]
    records = [r for name in ["", *names] for r in several(name, [0.80, 0.82, 0.81 + len(name) / 1000])]
    (file := tmp_path / "names.html").write_text(report(records), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    plot = drawn(page.locator("#effects figure").first)
    shown = [words.strip() for words in plot.locator(".yaxislayer-above text").all_text_contents()]
    assert sorted(shown) == sorted(names)
    page.close()
