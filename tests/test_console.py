"""What a screen can show, and what a console gets that cannot."""
# ruff: noqa: RUF001 - a multiplication sign is one here

import io

import pytest

from effbench.report.console import Screen, display_width, emit, encodable, visible


class Stream(io.StringIO):
    def __init__(self, terminal, encoding):
        super().__init__()
        self.terminal, self.named = terminal, encoding

    def isatty(self):
        return self.terminal

    @property
    def encoding(self):
        return self.named


@pytest.mark.parametrize(
    ("terminal", "environ", "colour"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_a_screen_knows_what_its_stream_can_show(terminal, environ, colour):
    screen = Screen.of(Stream(terminal, "cp1252"), environ)
    assert (screen.colour, screen.encoding, screen.width is None) == (colour, "cp1252", not terminal)


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("ascii", "0.810 +- 0.025 | diff vs baseline | better * | 1.00x | \\u6df7"),
        ("cp1252", "0.810 ± 0.025 | diff vs baseline | better * | 1.00× | \\u6df7"),
        ("utf-8", "0.810 ± 0.025 | Δ vs baseline | better ★ | 1.00× | 混"),
    ],
)
def test_a_console_gets_what_it_can_write(encoding, expected):
    text = "0.810 ± 0.025 | Δ vs baseline | better ★ | 1.00× | 混"
    assert encodable(text, encoding) == expected
    stream = Stream(False, encoding)
    emit(text, stream)
    assert stream.getvalue() == expected + "\n"


def test_control_characters_are_seen():
    assert visible("a\tb\x00\u202e混") == "a\\tb\\x00\\u202e混"
    assert display_width("混合") == 4
