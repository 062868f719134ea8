"""The page says what the records say, escapes every name, needs no network, and shows what is empty too."""
# ruff: noqa: RUF001 - a minus is a minus here

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from effbench import cli
from effbench.analysis.comparison import compare
from effbench.report.html import provenance
from effbench.report.html.overview import main_comparisons, overview
from effbench.report.html.page import report
from effbench.report.html.taxonomy_map import taxonomy_map
from effbench.report.sources import Source, read, technique_sources
from effbench.report.words import counted, listed, spans
from effbench.store import Store
from effbench.taxonomy import LEAVES
from many_records import many
from record_factory import record, several

BASELINE = [0.80, 0.82, 0.81]
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><b>",
    "{{ 7 * 7 }}",
    "a&amp;b",
    "line\nbreak",
]
SOURCES = {"ema": Source("ema", "optimization_centric/averaged_weights", "Average the weights.", claim="+9 % <b>")}


class Page(HTMLParser):
    """Collects the tags, what they carry, and the text of cells and headings."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.inside, self.data = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attributes)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self.attributes[-1:] == [("script", {"type": "application/json"})] and self.inside[-1:] == ["script"]:
            self.data.append(data)
        if not set(self.inside) & {"script", "style"}:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def scripts(page):
    return [held for tag, held in page.attributes if tag == "script" and "type" not in held]


def small():
    return several("", BASELINE) + several("ema", [0.85, 0.87, 0.89]) + several("sam", [0.70, 0.71, 0.69])


def test_whatever_a_name_contains_is_text():
    records = several("", BASELINE)
    for name in HOSTILE:
        records += several(name, [0.85, 0.87, 0.89], workload="mnist1d_cnn", suite=name, reason=name)
        records += [record(name, seed=0, status="failed", reason=name, workload=name, log=name)]
    plain, found = Page(report(small())), Page(report(records, title=HOSTILE[0]))
    assert len(scripts(found)) == len(scripts(plain)) == 1  # the others are data
    assert all("<" not in words for words in found.data)
    assert found.tags.count("style") == plain.tags.count("style") == 2
    assert {"img", "b"} & set(found.tags) == {"b"}  # ours
    assert all(not name.startswith("on") for _, held in found.attributes for name in held)
    assert all(name.replace("\n", "\\n") in found.text for name in HOSTILE)
    assert re.search(r"(?<![\d.])49", found.text) is None  # of {{ 7*7 }}; 4.49 is a number


def test_it_asks_the_network_for_nothing():
    text = report(small(), sources=SOURCES)
    links = [
        held.get(name)
        for _, held in Page(text).attributes
        for name in ("src", "href", "data", "action")
        if name in held
    ]
    assert all(link.startswith("#") for link in links)
    assert re.findall(r"url\(|@import|fetch\(|XMLHttp|WebSocket|https?:", text) == []


def test_every_link_leads_into_the_page():
    found = Page(report(list(many(4, 2, workloads=2)), sources=technique_sources()))
    ids = [held["id"] for _, held in found.attributes if "id" in held]
    assert len(ids) == len(set(ids))
    assert {held["href"][1:] for tag, held in found.attributes if tag == "a"} <= set(ids)


def test_all_drawings_say_what_they_show():
    found = Page(report(list(many(4, 2, workloads=2))))
    drawings = [held for _, held in found.attributes if (held.get("class") or "").split()[:1] == ["plot"]]
    assert len(drawings) > 10
    assert all(held["role"] == "img" and held["aria-label"] for held in drawings)


def test_the_numbers_of_the_records_are_all_there():
    records = small()
    found = Page(report(records))
    exact = {float(held["data-v"]) for tag, held in found.attributes if tag == "td" and "data-v" in held}
    listed = {word for words in found.words for word in words.split()}
    assert {repr(each.metrics["test"]["accuracy"]) for each in records} <= listed
    (comparison,) = compare(records)
    differences = {each.difference.mean for each in comparison.results if each.difference}
    assert differences <= exact
    assert "+0.060 [+0.017, +0.103]" in found.text


def test_machines_may_be_told_in_any_plain_values():
    odd = {"processor": ["a", "b"], "cores": {"fast": 2}, "system": None, "device": 7}
    facts = {fact.name: fact.values for fact in provenance.environment(several("", BASELINE, environment=odd))}
    assert facts["machine"] == (("7, ['a', 'b'], {'fast': 2} cores", 3),)


def test_the_main_table_is_of_the_largest_budget_of_each_workload():
    records = small() + several("", BASELINE, budget="20s reference") + several("ema", BASELINE, budget="20s reference")
    records += several("", BASELINE, budget="400 steps", clock="steps")  # 400 is more than 20, but of something else
    (main,) = main_comparisons(compare(records))
    assert main.group.budget == "20s reference"


def test_intervals_are_drawn_to_the_right_where_less_is_better():
    words = {"metric": "loss", "higher_is_better": False}
    records = several("", [0.80, 0.82, 0.81], **words) + several("ema", [0.85, 0.87, 0.89], **words)
    (line,) = overview(main_comparisons(compare(records)))  # the loss is 1 - value: ema has less
    (cell,) = line.cells
    assert cell.verdict == "better"
    assert cell.text.startswith("−0.060")
    low, middle, high = cell.places
    assert 50.0 < low < middle < high <= 100.0


def test_the_map_has_every_leaf_and_counts_each_technique_alone():
    records = small() + several({"ema": {}, "sam": {}}, [0.9, 0.91, 0.92])
    leaves = taxonomy_map(compare(records), SOURCES)
    assert [f"{leaf.branch}/{leaf.name}" for leaf in leaves[:-1]] == list(LEAVES)
    averaged = next(leaf for leaf in leaves if leaf.name == "averaged_weights")
    assert (averaged.tried, averaged.total, averaged.counts["better"]) == (("ema",), 1, 1)
    assert (leaves[-1].name, leaves[-1].tried, leaves[-1].total) == ("elsewhere", ("sam",), 1)
    assert leaves[0].total == 0
    assert "not tried" in Page(report(records, sources=SOURCES)).text


def test_cards_are_read_without_running_anything(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        'import nothing\n\n@effbench.technique("data_centric/sampling", paper="A, arXiv:1", claim="2 % " "more")\n'
        "def mine(recipe, *, by: float = 1.5, name=None):\n"
        '    """Do it.\n\n    More of it.\n\n    by: how much.\n    """\n',
        encoding="utf-8",
    )
    (source,) = read(file)
    assert source == Source(
        "mine",
        "data_centric/sampling",
        "Do it.",
        ("More of it.", "by: how much."),
        "A, arXiv:1",
        "2 % more",
        {"by": "1.5", "name": "None"},
    )
    assert list(read(tmp_path / "none.py")) == []
    (tmp_path / "broken.py").write_text("def (", encoding="utf-8")
    assert list(read(tmp_path / "broken.py")) == []


def test_sources_are_those_that_the_plugins_offer():
    from effbench.plugins import load

    offered = load().techniques
    found = technique_sources()
    assert set(offered) <= set(found)
    assert {name: technique.leaf for name, technique in offered.items()} == {name: found[name].leaf for name in offered}
    assert {name: technique.claim for name, technique in offered.items()} == {
        name: found[name].claim for name in offered
    }


def test_failures_come_before_refusals():
    records = [*small(), record("boom", seed=0, status="failed", reason="ValueError: x", log="logs/b.log")]
    records += [record("amp", seed=0, status="skipped", reason="needs a GPU")]
    assert [(each.text, each.refused) for each in provenance.failures(compare(records))] == [
        ("boom: failed, seed 0: ValueError: x (logs/b.log)", False),
        ("amp: skipped, seed 0: needs a GPU", True),
    ]


def test_commands_and_suite_make_the_numbers_again(tmp_path):
    suite = {
        "name": "quick",
        "seeds": [0, 1, 2],
        "workloads": ["mnist1d_cnn"],
        "sets": [{}, {"ema": {}}, {"sam": {"rho": 0.1}}],
    }
    commands = provenance.reproduce(small(), [suite], ["results/quick"])
    assert commands.lines == (
        "pip install effbench==0.1.0 torch==2.13.0",
        "effbench run quick.toml --jobs 2",
        "effbench table results/quick",
        "effbench report results/quick -o report.html",
    )
    import tomllib

    assert tomllib.loads(commands.suite.unescape()) == {
        "name": "quick",
        "seeds": [0, 1, 2],
        "workloads": ["mnist1d_cnn"],
        "techniques": [{"ema": {}}, {"sam": {"rho": 0.1}}],
    }
    assert provenance.reproduce(small(), [], []).lines[1] == "effbench run quick --seeds 0-2 --jobs 2"


def test_the_command_writes_the_page_and_needs_no_torch(tmp_path):
    store = Store(tmp_path / "results" / "quick")
    store.check_writable()
    for each in small():
        store.append(each)
    code = (
        "import sys; from effbench.cli import main; main(['report', '--title', 'Mine']); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    said, torch = done.stdout.splitlines()
    assert re.fullmatch(r"report\.html: 9 records, [12]\.\d MiB", said)  # nearly all of it is Plotly
    assert torch == "False"
    assert "effbench: Mine" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_no_records_are_no_page(tmp_path, capsys):
    Store(tmp_path).check_writable()
    assert cli.main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == 2
    assert "there are no records" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_too_many_records_are_not_listed(monkeypatch):
    monkeypatch.setattr("effbench.report.html.sections.MOST_RECORDS", 5)
    found = Page(report(small()))
    assert "There are 9 records, too many to list here" in found.text
    assert "records" not in {held.get("class") for tag, held in found.attributes if tag == "details"}


def test_published_results_make_a_page():
    folder = Path(__file__).parent.parent / "results" / "reference" / "baselines"
    store = Store(folder)
    text = report(store.records(), suites=[store.read_json("suite")], folders=[str(folder)])
    assert "rate_factor" in text
    assert json.dumps(store.read_json("suite")["summary"]) in Page(text).text


@pytest.mark.parametrize(("numbers", "text"), [([0, 1, 2], "0-2"), ([0, 2, 3, 7], "0,2-3,7"), ([], "")])
def test_runs_of_seeds_are_written_as_the_command_line_takes_them(numbers, text):
    assert spans(numbers) == text


def test_names_are_listed_as_a_person_does():
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed("abcdef", most=3) == "a, b and 4 more"
    assert [counted(1, "seed"), counted(2000, "seed")] == ["1 seed", "2,000 seeds"]
