"""Claim cards on the page: what is published beside what was measured, also of techniques that are not installed."""

from effbench.analysis.comparison import compare
from effbench.report.claim_cards import claim_cards
from effbench.report.html.page import report
from effbench.report.html.sections import sections
from effbench.report.html.taxonomy_map import taxonomy_map
from effbench.report.sources import Source, published, said_in, with_said
from effbench.store import Store
from record_factory import record, several
from test_report import Page

BASELINE = [0.80, 0.82, 0.81]
SAID = {
    "ghost": {"paper": "Nobody, arXiv:0000.00000", "claim": "error <b>5 %</b> -> 4 %", "leaf": "data_centric/sampling"},
    "stray": {"paper": "", "claim": "", "leaf": "no_such/leaf"},
}


def study():
    return several("", BASELINE) + several("ghost", [0.85, 0.87, 0.89]) + several("stray", [0.70, 0.71, 0.69])


def kept(folder, records):
    store = Store(folder)
    store.check_writable()
    for each in records:
        store.append(each)
    store.write_json("claims", SAID)
    return [str(folder)]


def test_what_a_folder_keeps_of_papers_is_on_the_page(tmp_path):
    found = Page(report(study(), folders=kept(tmp_path, study())))
    assert "Nobody, arXiv:0000.00000" in found.text
    assert "error <b>5 %</b> -> 4 %" in found.text  # as words, not as a tag
    assert found.tags.count("blockquote") == 1
    assert "No claim is known." in found.text


def test_what_a_folder_keeps_has_its_leaf_and_an_unknown_leaf_is_seen(tmp_path):
    cards = with_said({}, said_in(kept(tmp_path, study())))
    leaves = taxonomy_map(compare(study()), cards)
    sampling = next(leaf for leaf in leaves if leaf.name == "sampling")
    assert (sampling.tried, sampling.counts["better"]) == (("ghost",), 1)
    assert (leaves[-1].name, leaves[-1].tried, leaves[-1].counts["worse"]) == ("elsewhere", ("stray",), 1)


def test_what_was_kept_of_a_run_goes_before_what_a_source_says_by_now():
    source = Source("ghost", "model_centric/curriculum", "Do it.", paper="Old", claim="old")
    (card,) = with_said({"ghost": source}, {"ghost": {"claim": "as run", "paper": ""}}).values()
    assert (card.claim, card.paper, card.leaf, card.summary) == ("as run", "Old", "model_centric/curriculum", "Do it.")


def test_installed_techniques_speak_for_themselves_where_a_folder_is_silent(tmp_path):
    found = published(["ema", "ghost", "nobody"], kept(tmp_path, []))
    assert "Polyak" in found["ema"]["paper"]
    assert found["ghost"]["claim"] == "error <b>5 %</b> -> 4 %"
    assert "nobody" not in found


def test_a_card_has_both_means_the_difference_and_its_share():
    ((card, _),) = claim_cards(compare(study()), SAID)
    assert (card.claim.said["ghost"].paper, card.claim.n) == ("Nobody, arXiv:0000.00000", "3/3")
    assert (card.baseline, card.mean) == ("0.810 ± 0.025", "0.870 ± 0.050")
    assert card.difference.startswith("+0.060 [")
    assert card.relative == "+7.4 %"
    assert (card.waived, card.together) == ("—", "—")


def test_who_was_refused_did_not_fail_to_get_there():
    records = several("", BASELINE) + [record("amp", seed=seed, status="skipped", reason="no GPU") for seed in range(3)]
    ((card,),) = claim_cards(compare(records), {})
    assert card.speed_up == "—"
    assert card.claim.reasons == ("no GPU",)


def test_each_card_leads_to_its_records():
    found = Page(report(study()))
    links = [held for tag, held in found.attributes if tag == "a" and held.get("class") == "to-records"]
    wanted = [(held["href"], held["data-set"], held["data-workload"], held["data-budget"]) for held in links]
    assert wanted == [
        ("#r-ghost", "ghost", "mnist1d_cnn", "5s reference"),
        ("#r-stray", "stray", "mnist1d_cnn", "5s reference"),
    ]
    assert {"r-ghost", "r-stray"} <= {held.get("id") for _, held in found.attributes}
    assert study()[3].key in found.text


def test_a_set_of_two_has_a_card_in_the_sections_of_both():
    records = several("", BASELINE) + several({"ghost": {}, "stray": {}}, [0.85, 0.87, 0.89])
    comparisons = compare(records)
    _, ghost, stray = sections(comparisons, comparisons, {}, records=True)
    assert [card.claim.label for card in ghost.cards] == [card.claim.label for card in stray.cards] == ["ghost+stray"]
    assert ghost.several
    assert ghost.counts == (("better", 1),)
