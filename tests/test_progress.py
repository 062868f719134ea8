"""What a person sees while a suite runs: lines in a pipe, a calm screen on a terminal, an honest guess of the end."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console
from wcwidth import wcswidth

from effbench.report.eta import Pace, duration, stopwatch
from effbench.report.progress import Lines, Screen, observer, outcome
from effbench.trial import Trial
from record_factory import record


def trial(name: str = "", seed: int = 0, workload: str = "toy") -> Trial:
    techniques = {name: {}} if name else {}
    return Trial("demo", workload, techniques, seed, "9 steps", key=f"{workload} {name} {seed}")


def done(asked: Trial, seconds: float = 2.0, **changes):
    return record(dict(asked.techniques), seed=asked.seed, workload=asked.workload, wall_seconds=seconds, **changes)


TRIALS = [
    trial(name, seed, workload) for seed in (0, 1) for workload in ("toy", "kjv") for name in ("", "mixup", "boom")
]


@pytest.mark.parametrize(
    ("seconds", "said", "shown"),
    [
        (0.0, "0 s", "0:00"),
        (0.4, "400 ms", "0:00"),
        (0.9996, "1 s", "0:00"),
        (8, "8 s", "0:08"),
        (59.7, "1 min 00 s", "0:59"),
        (125, "2 min 05 s", "2:05"),
        (4800, "1 h 20 min", "1:20:00"),
    ],
)
def test_durations(seconds, said, shown):
    assert (duration(seconds), stopwatch(seconds)) == (said, shown)


def test_durations_that_are_no_numbers_are_shown_all_the_same():
    assert (duration(math.inf), duration(math.nan)) == ("+inf s", "NaN s")


class TestPace:
    def test_nothing_is_known_at_first(self):
        assert Pace(TRIALS, 2).seconds_left() is None
        assert Pace((), 2).seconds_left() == 0.0

    def test_a_running_trial_tells_before_any_has_finished(self):
        now = 100.0
        pace = Pace(TRIALS, 2, now=lambda: now)
        pace.start(TRIALS[0])
        now = 104.0
        pace.move(TRIALS[0], 0.05, 1)
        assert pace.seconds_left() is None  # too early to tell
        pace.move(TRIALS[0], 0.4, 8)
        assert pace.seconds_left() == pytest.approx((12 * 10 - 4) / 2)

    def test_a_trial_takes_as_long_as_its_like(self):
        pace = Pace(TRIALS, 1)
        pace.finish(TRIALS[0], done(TRIALS[0], 3.0))
        assert pace.seconds_left() == 11 * 3.0
        pace.finish(TRIALS[3], done(TRIALS[3], 5.0))  # of the other workload
        assert pace.seconds_left() == 5 * 3.0 + 5 * 5.0
        pace.finish(TRIALS[2], done(TRIALS[2], 0.5, status="failed"))
        assert pace.seconds_left() == 0.5 + 3.0 + 2 * 1.75 + 5 * 5.0
        pace.start(TRIALS[6])
        pace.move(TRIALS[6], 0.5, 4)
        assert pace.seconds_left() == 0.5 + 1.5 + 2 * 1.75 + 5 * 5.0

    def test_what_is_refused_takes_no_time(self):
        pace = Pace([trial("a", seed) for seed in range(9)] + [trial("", 0)], 1)
        pace.finish(trial("a", 0), done(trial("a", 0), 0.0, status="skipped"))
        pace.finish(trial("", 0), done(trial("", 0), 4.0))
        assert pace.seconds_left() == 0.0

    def test_shares(self):
        pace = Pace(TRIALS, 1)
        pace.finish(TRIALS[0], done(TRIALS[0]))
        pace.start(TRIALS[1])
        pace.move(TRIALS[1], 0.5, 3)
        assert pace.of("toy") == (0.25, 1, 6)
        assert pace.of("kjv") == (0.0, 0, 6)


class TestLines:
    def test_all_is_told(self):
        stream = io.StringIO()
        lines = observer(2, stream)
        assert isinstance(lines, Lines)
        lines.effbench_suite_started("demo", TRIALS[:3])
        lines.effbench_trial_started(TRIALS[0])
        lines.effbench_progress(TRIALS[0], 0.5, 3)
        lines.effbench_trial_finished(TRIALS[0], done(TRIALS[0], 4.0, value=0.9))
        failed = done(TRIALS[2], 1.0, status="failed", reason="ValueError: odd\nmore", log="logs/boom.log")
        lines.effbench_trial_finished(TRIALS[2], failed)
        lines.effbench_trial_finished(TRIALS[1], done(TRIALS[1], 0.0, status="skipped", reason="no"))
        assert stream.getvalue().splitlines() == [
            "demo: 3 trials to run",
            "[1/3] toy  baseline  seed 0: accuracy 0.9 in 4 s, 400 steps, 4 s left",
            "[2/3] toy  boom  seed 0: failed: ValueError: odd (see logs/boom.log), 1 s left",
            "[3/3] toy  mixup  seed 0: skipped: no",
        ]

    def test_prices_are_told(self):
        stream = io.StringIO()
        lines = Lines(stream, 1)
        lines.effbench_calibration_started("demo", 1)
        lines.effbench_calibration_finished()
        assert (
            stream.getvalue()
            == "demo: measuring what a step costs, 1 group of techniques\nprices are measured after 0 s\n"
        )

    def test_a_console_that_lacks_characters_is_no_obstacle(self):
        raw = io.BytesIO()
        lines = Lines(io.TextIOWrapper(raw, encoding="cp1252"), 1)
        wide = trial("混合精度")
        lines.effbench_suite_started("demo", [wide])
        lines.effbench_trial_finished(wide, done(wide, status="failed", reason="\x1b[31mred\x07"))
        assert raw.getvalue().decode("cp1252").splitlines()[1] == (
            "[1/1] toy  \\u6df7\\u5408\\u7cbe\\u5ea6  seed 0: failed: \\x1b[31mred\\x07"
        )


def drawn(screen: Screen, console: Console) -> list[str]:
    """What the screen shows now, drawn once more beside the live picture."""
    paper = Console(
        file=io.StringIO(), force_terminal=True, color_system=None, width=console.width, height=console.height
    )
    paper.print(screen)
    return paper.file.getvalue().rstrip("\n").split("\n")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
class TestScreen:
    def make(self, width: int, height: int = 40) -> tuple[Screen, Console, io.StringIO]:
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=True, width=width, height=height, color_system=None)
        screen = Screen(console, 2)
        screen.effbench_suite_started("demo", TRIALS)
        return screen, console, stream

    def test_nothing_jumps_and_all_is_shown(self, width):
        screen, console, _ = self.make(width)
        try:
            pictures = [drawn(screen, console)]
            for number, asked in enumerate(TRIALS):
                screen.effbench_trial_started(asked)
                screen.effbench_progress(asked, 0.5, 1000 * number)
                pictures.append(drawn(screen, console))
                status = "failed" if "boom" in asked.techniques else "ok"
                screen.effbench_trial_finished(asked, done(asked, value=0.75, status=status, reason="odd"))
            pictures.append(drawn(screen, console))
        finally:
            screen.close()
        assert {len(picture) for picture in pictures} == {1 + 2 + 1 + 2 + 1 + 2 + 3}
        assert all(wcswidth(line) <= width for picture in pictures for line in picture)
        first, middle, last = pictures[0], pictures[6], pictures[-1]
        assert first[0].split("0:")[0] == "demo  0 of 12 trials  "
        assert first[1].split()[-1] == "0/6"
        assert "baseline" in first[9]
        assert "toy" in middle[4] or "kjv" in middle[4]
        assert last[1].split()[-1] == "6/6"
        assert "0.7500 n=2" in last[9]
        assert "2 failed" in "".join(last)

    def test_failures_stay_and_the_rest_goes(self, width):
        screen, _, stream = self.make(width)
        asked = TRIALS[2]
        screen.effbench_trial_started(asked)
        failed = done(asked, status="failed", reason="RuntimeError: " + "long " * 30, log="logs/boom.log")
        screen.effbench_trial_finished(asked, failed)
        screen.effbench_suite_finished()
        screen.close()  # twice is once
        said = stream.getvalue()
        assert f"toy  boom  seed 0: failed: RuntimeError: {'long ' * 30}".rstrip() in said  # on one line, to be copied
        assert "see logs/boom.log" in said
        assert said.endswith("\x1b[?25h") or said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")  # the cursor is back

    def test_a_low_terminal_shows_what_fits(self, width):
        screen, console, _ = self.make(width, height=12)
        many = [trial(f"t{number:02d}") for number in range(40)]
        screen.effbench_suite_started("demo", many)
        picture = drawn(screen, console)
        screen.close()
        assert picture[-1].strip() == "and 37 more"
        assert len(picture) <= 13


def test_the_measuring_of_prices_is_shown():
    console = Console(file=io.StringIO(), force_terminal=True, width=60, height=20, color_system=None)
    screen = Screen(console, 2)
    screen.effbench_calibration_started("demo")
    screen.effbench_calibration_progress("toy", 0.42)
    picture = drawn(screen, console)
    screen.close()
    assert picture[0].startswith("demo  measuring what a step costs  0:0")
    assert picture[1].startswith("  toy")
    assert picture[1].split()[-1] == "42%"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class OldTerminal(Terminal):
    encoding = "cp1252"


@pytest.mark.parametrize(
    ("stream", "term", "kind"),
    [
        (Terminal(), "xterm", Screen),
        (Terminal(), "dumb", Lines),
        (OldTerminal(), "xterm", Lines),
        (io.StringIO(), "xterm", Lines),
    ],
)
def test_a_screen_is_for_terminals_that_can_draw(monkeypatch, stream, term, kind):
    monkeypatch.setenv("TERM", term)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "JPY_PARENT_PID"):
        monkeypatch.delenv(name, raising=False)
    assert type(observer(2, stream)) is kind


def test_outcomes_in_words():
    assert outcome(done(trial(), 65.0, value=0.123456)) == "accuracy 0.1235 in 1 min 05 s, 400 steps"
    assert outcome(done(trial(), status="timeout")) == "timeout"
    assert outcome(done(trial(), status="killed", reason="signal 9\nmore")) == "killed: signal 9"
