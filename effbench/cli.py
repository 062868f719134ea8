"""The command line: read the arguments, hand them to the verb's own module, and say in one line what went wrong.

Exit codes: 0 all fine, 1 a trial or a law failed, 2 the command or the suite is wrong, 3 data is not there, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import signal
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NoReturn, TextIO

from effbench import __version__
from effbench.arguments import Verb
from effbench.errors import EffbenchError, UnknownName, words_of
from effbench.verbs import GROUPS, VERBS

_WIDTH = 78  # columns of paragraphs in --help
_ABOUT = (
    "Which efficient-training techniques really help, on your machine, under a fixed compute budget, "
    "and how sure are we?"
)
_EXAMPLES = (
    "effbench run quick",
    'effbench run quick --technique "mixup(alpha=0.1)+ema"',
    "effbench table",
    "effbench show mixup",
)
FAILED, INTERRUPTED, BROKEN_PIPE = 1, 130, 141  # the last two as shells have it: 128 + the signal's number


class UsageError(EffbenchError):
    """A command that cannot be understood."""


class _Parser(argparse.ArgumentParser):
    """Says errors in our words, for which argparse leaves no other way."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `{self.prog} --help` shows how it is used")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say, by default those of the process, and return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that lacks a character is no reason to crash
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _dispatch(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _silence(sys.stdout)
        return BROKEN_PIPE
    except BaseException as fault:  # noqa: BLE001 - one line instead of a traceback, whatever it is
        if arguments is None:  # the process ends here, and a second Ctrl-C should not show how
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return _explain(fault, show_traceback="--traceback" in given)
    return code


def _open_closed_streams() -> None:
    """Open standard streams that the shell has closed: else the next file, such as that of the records, is one."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - as long as the process


def _silence(stream: TextIO) -> None:
    """Let a stream whose other end is gone, or full, take what is left in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _dispatch(arguments: list[str]) -> int:
    parser = make_parser()
    if not arguments:
        parser.print_help()
        return 0
    verb = next((word for word in arguments if not word.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        raise UnknownName("command", verb, VERBS)
    try:
        asked, unknown = parser.parse_known_args(_options_first(arguments, verb))
    except SystemExit as done:  # after --help or --version
        return int(done.code or 0)
    if unknown:
        _refuse(unknown[0], VERBS[asked.verb])
    command = importlib.import_module(f"effbench.commands.{asked.verb}")
    return int(command.run(asked))


def _options_first(arguments: list[str], verb: str | None) -> list[str]:
    """Move options before words: argparse takes optional words before an option as left out, and fails at late ones."""
    if verb is None or "--" in arguments:
        return arguments
    valued = {argument.name for argument in VERBS[verb].arguments if argument.is_option and not argument.is_switch}
    start = arguments.index(verb) + 1
    options: list[str] = []
    words: list[str] = []
    rest = iter(arguments[start:])
    for word in rest:
        if word.startswith("-"):
            options.append(word)
            options += islice(rest, int(word in valued))
        else:
            words.append(word)
    return [*arguments[:start], *options, *words]


def _refuse(word: str, verb: Verb) -> NoReturn:
    if word.startswith("-"):
        options = [argument.name for argument in verb.arguments if argument.is_option]
        raise UnknownName("option", word.partition("=")[0], [*options, "--traceback"], where=f"{verb.name}: ")
    raise UsageError(f"{verb.name} takes no {word!r}; `effbench {verb.name} --help` shows what it takes")


def _explain(fault: BaseException, *, show_traceback: bool) -> int:
    """Say in one line what went wrong, and return the exit code."""
    from effbench import messages

    code, words = _meaning(fault)
    if code == FAILED and not show_traceback:
        words += "; --traceback shows where"
    try:
        if show_traceback:
            traceback.print_exception(fault)
        messages.fail(words)
        sys.stderr.flush()
    except OSError:  # nobody reads it, but the exit code tells
        _silence(sys.stderr)
    if isinstance(fault, OSError):
        _silence_if_full(sys.stdout)
    return code


def _silence_if_full(stream: TextIO) -> None:
    try:
        stream.flush()
    except OSError:
        _silence(stream)


def _meaning(fault: BaseException) -> tuple[int, str]:
    """Return the exit code of a fault, and what a person is told of it."""
    if isinstance(fault, KeyboardInterrupt):
        return INTERRUPTED, ": ".join(["interrupted", *map(str, fault.args)])
    if isinstance(fault, EffbenchError):
        return fault.exit_code, str(fault)
    if isinstance(fault, OSError):
        where = f"{fault.filename}: " if fault.filename else ""
        return UsageError.exit_code, f"{where}{fault.strerror or fault}"
    return FAILED, f"{words_of(fault)}. This is a fault in effbench or in a plugin"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    from effbench import messages

    messages.warn(str(message))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs."""
    shared = _Parser(add_help=False)
    shared.add_argument("--traceback", action="store_true", help="show where an error comes from")
    parser = _Parser(
        prog="effbench",
        usage="effbench COMMAND ...",
        description=_overview(),
        epilog=_shown(_EXAMPLES),
        parents=[shared],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"effbench {__version__}", help="show the version")
    verbs = parser.add_subparsers(metavar="COMMAND", dest="verb", required=True, help=argparse.SUPPRESS)
    for verb in VERBS.values():
        _add(verbs.add_parser(verb.name, **_help_of(verb), parents=[shared], allow_abbrev=False), verb)
    return parser


def _add(parser: argparse.ArgumentParser, verb: Verb) -> None:
    for argument in verb.arguments:
        words: dict[str, Any] = {"help": argument.help.replace("%", "%%")}
        if argument.is_switch:
            words["action"] = "store_true"
        else:
            words |= {"metavar": argument.metavar or argument.name, "default": argument.default, "type": argument.read}
        if argument.is_option:
            words["dest"] = argument.dest
            if argument.several:
                words |= {"action": "append", "default": []}
            parser.add_argument(argument.name, **words)
        else:
            words["nargs"] = "*" if argument.several else "?" if argument.optional else None
            parser.add_argument(argument.dest, **words)


def _overview() -> str:
    lines = [textwrap.fill(_ABOUT, _WIDTH)]
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {verb.name:<12}{verb.summary}" for verb in group)]
    return "\n".join([*lines, "", "`effbench COMMAND --help` explains each of them."])


def _usage(verb: Verb) -> str:
    words = [f"[{a.name}]" if a.optional else a.name for a in verb.arguments if not a.is_option]
    return " ".join(["effbench", verb.name, *words, "[options]"])


def _help_of(verb: Verb) -> dict[str, Any]:
    sentence = f"{verb.summary[0].upper()}{verb.summary[1:]}."
    return {
        "prog": f"effbench {verb.name}",
        "usage": _usage(verb),
        "description": "\n\n".join(textwrap.fill(text, _WIDTH) for text in (sentence, verb.about) if text),
        "epilog": _shown(verb.examples),
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _shown(examples: Iterable[str]) -> str:
    return "\n".join(["examples:", *(f"  {example}" for example in examples)])
