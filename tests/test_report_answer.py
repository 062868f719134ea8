"""The report's answer says what was shown, in how many tables, and what that is worth."""

import dataclasses

from effbench.analysis.comparison import compare
from effbench.report.html import summary
from record_factory import several

BASELINE = [0.80, 0.82, 0.81]


def small():
    return several("", BASELINE) + several("ema", [0.85, 0.87, 0.89]) + several("sam", [0.70, 0.71, 0.69])


def test_the_answer_has_three_sentences():
    assert summary.answer(compare(small())) == [
        "1 of 2 sets of techniques is shown to be better than the baseline: ema (+0.060 accuracy on mnist1d_cnn).",
        "sam is shown to be worse on mnist1d_cnn.",
        "All 2 comparisons are decided, with 3 seeds each.",
    ]
    nothing = several("", BASELINE) + several("a", [0.81, 0.80, 0.82])
    assert summary.answer(compare(nothing)) == [
        "None of 1 set of techniques is shown to be better than the baseline in the one table.",
        "None is shown to be worse, and none breaks.",
        (
            "In 1 of 1 comparison the 3 seeds cannot tell the technique from the baseline, which is not the same as "
            "no effect."
        ),
    ]
    one = several("", BASELINE) + several("ema", [0.85, 0.87, 0.89])
    assert summary.answer(compare(one))[-1] == "The one comparison is decided, with 3 seeds."
    assert summary.answer(compare(several("", BASELINE))) == ["There is nothing to compare with the baseline here."]


def test_the_answer_on_a_ladder_says_what_is_better_at_smaller_budgets():
    early = several("", BASELINE, budget="2s reference") + several("sam", [0.85, 0.87, 0.89], budget="2s reference")
    comparisons = compare([*small(), *early])
    largest = [each for each in comparisons if each.group.budget == "5s reference"]
    said = "At the smaller budget (2s reference) 1 other is ahead: sam on mnist1d_cnn."
    assert summary.answer(largest, comparisons)[1] == said
    early = several("", BASELINE, budget="2s reference") + several("ema", [0.85, 0.87, 0.89], budget="2s reference")
    said = "At the smaller budget (2s reference) no other set is shown to be better."
    assert summary.answer(largest, [*largest, *compare(early)])[1] == said


def test_the_answer_over_several_tables_counts_them_and_warns_of_luck():
    both = [*small(), *(dataclasses.replace(each, workload="kjv_gpt") for each in small())]
    better, worse, _, luck = summary.answer(compare(both))
    shown = "ema (2 of 2; +0.060 accuracy on mnist1d_cnn)"
    assert better == (
        f"1 of 2 sets of techniques is shown to be better than the baseline in one table or more of 2: {shown}."
    )
    assert worse == "sam (2 of 2) is shown to be worse."
    assert luck == (
        "Verdicts are corrected for the sets of a table, not for the number of tables: where nothing has an effect, "
        "up to 5 % of tables say better or worse by luck, and there are 2, so some of this may be luck."
    )
    nothing = several("", BASELINE) + several("a", [0.81, 0.80, 0.82])
    quiet = [*nothing, *(dataclasses.replace(each, workload="kjv_gpt") for each in nothing)]
    first, *_, last = summary.answer(compare(quiet))
    assert first == "None of 1 set of techniques is shown to be better than the baseline in any of 2 tables."
    assert last.startswith("In 2 of 2 comparisons")  # without a verdict there is none that could be luck
