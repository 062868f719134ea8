"""effbench completion: write a script that completes verbs, options and names in a shell."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping, Sequence

from effbench import suite as suites
from effbench.arguments import Argument, Verb
from effbench.commands.plugins_of import plugins_of
from effbench.plugins import Plugins
from effbench.report.console import emit
from effbench.taxonomy import LEAVES
from effbench.verbs import VERBS

Names = Mapping[str, Sequence[str]]  # kind, such as "techniques" -> names


def run(arguments: argparse.Namespace) -> int:
    """Write the script."""
    emit(_SCRIPTS[arguments.shell](known_names(plugins_of(arguments))))
    return 0


def known_names(plugins: Plugins) -> Names:
    """Return the names of each kind that there are now."""
    names = {
        "techniques": [*plugins.techniques],
        "workloads": [*plugins.workloads],
        "suites": [*suites.packaged()],
        "datasets": [*plugins.offers["effbench_datasets"]],
        "leaves": [f"{leaf}/" for leaf in LEAVES],
    }
    names["names"] = [name for kind in ("techniques", "workloads", "suites", "datasets") for name in names[kind]]
    return {kind: sorted(set(found)) for kind, found in names.items()}


def words_of(argument: Argument, names: Names) -> list[str]:
    """Return the words that may stand for an argument; none where they are files, or anything."""
    if isinstance(argument.completes, tuple):
        return list(argument.completes)
    return list(names.get(argument.completes, ()))


def options_of(verb: Verb) -> list[str]:
    """Return the options of a verb."""
    return [argument.name for argument in verb.arguments if argument.is_option] + ["--traceback", "--help"]


def positional(verb: Verb) -> list[Argument]:
    """Return the arguments of a verb that are not given by name."""
    return [argument for argument in verb.arguments if not argument.is_option]


def bash(names: Names) -> str:
    """Return the script for bash; where it offers nothing, bash offers files."""
    after: dict[str, list[str]] = {}  # words -> the options after which they come
    for verb in VERBS.values():
        for option in verb.arguments:
            if option.is_option and not option.is_switch:
                after.setdefault(_quoted(words_of(option, names)), []).append(f'"{verb.name} {option.name}"')
    lines = [
        "# bash completion of effbench; made by `effbench completion bash`",
        "_effbench() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" verb="${COMP_WORDS[1]}"',
        '    local words=""',
        '    [[ $COMP_CWORD -eq 1 ]] && verb="" before=""',
        '    case "$verb $before" in',
        f'        " ") words={_quoted([*VERBS, "--help", "--version"])} ;;',
        *(f"        {' | '.join(places)}) words={words} ;;" for words, places in after.items()),
    ]
    for verb in VERBS.values():
        words = [word for argument in positional(verb) for word in words_of(argument, names)]
        lines.append(f'        "{verb.name} "*)')
        lines.append(f"            [[ $word == -* ]] && words={_quoted(options_of(verb))} || words={_quoted(words)} ;;")
    lines += [
        "    esac",
        '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")',
        "}",
        "complete -o default -F _effbench effbench",
    ]
    return "\n".join(lines)


def _quoted(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


def zsh(names: Names) -> str:
    """Return the script for zsh."""
    lines = [
        "#compdef effbench",
        "# zsh completion of effbench; made by `effbench completion zsh`",
        "_effbench() {",
        "    local -a verbs=(",
        *(f"        {shlex.quote(f'{verb.name}:{verb.summary}')}" for verb in VERBS.values()),
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command verbs",
        "        return",
        "    fi",
        "    local verb=$words[2]",
        "    shift words; (( CURRENT-- ))",
        "    case $verb in",
    ]
    for verb in VERBS.values():
        specs = [_zsh_option(argument, names) for argument in verb.arguments if argument.is_option]
        specs += [_zsh_positional(number, each, names) for number, each in enumerate(positional(verb), start=1)]
        lines += [f"        {verb.name}) _arguments \\", *(f"            {shlex.quote(spec)} \\" for spec in specs)]
        lines.append("            '--traceback[show where an error comes from]' '--help[show how it is used]' ;;")
    lines += ["    esac", "}", '_effbench "$@"']
    return "\n".join(lines)


def _zsh_option(argument: Argument, names: Names) -> str:
    repeated = "*" if argument.several else ""
    head = f"{repeated}{argument.name}[{_zsh_text(argument.help)}]"
    return head if argument.is_switch else f"{head}:{argument.metavar}:{_zsh_action(argument, names)}"


def _zsh_positional(number: int, argument: Argument, names: Names) -> str:
    place = "*" if argument.several else f"{number}{':' if argument.optional else ''}"
    return f"{place}:{_zsh_text(argument.name)}:{_zsh_action(argument, names)}"


def _zsh_action(argument: Argument, names: Names) -> str:
    words = words_of(argument, names)
    if argument.completes == "suites":
        return f"{{compadd {' '.join(words)}; _files -g '*.toml'}}"
    return f"({' '.join(words)})" if words else "_files" if argument.completes == "files" else " "


def _zsh_text(text: str) -> str:
    return "".join(f"\\{character}" if character in "[]:\\" else character for character in text)


def fish(names: Names) -> str:
    """Return the script for fish."""
    lines = ["# fish completion of effbench; made by `effbench completion fish`"]
    for verb in VERBS.values():
        about = shlex.quote(verb.summary)
        lines += [f"complete -c effbench -f -n __fish_use_subcommand -a {verb.name} -d {about}"]
    for verb in VERBS.values():
        seen = f"complete -c effbench -n '__fish_seen_subcommand_from {verb.name}'"
        lines += [seen + words for argument in verb.arguments if (words := _fish(argument, names))]
    return "\n".join(lines)


def _fish(argument: Argument, names: Names) -> str:
    """Return what follows the condition in the line of an argument; nothing where fish does well without."""
    words = words_of(argument, names)
    offered = "" if argument.completes in {"files", "suites"} else " -f"
    offered += f" -a {_quoted(words)}" if words else ""
    if not argument.is_option:
        return offered if words else ""
    name = argument.name.lstrip("-")
    flag = f" -l {name}" if argument.name.startswith("--") else f" -s {name}"
    about = f" -d {shlex.quote(argument.help)}"
    return flag + about if argument.is_switch else f"{flag} -r{offered}{about}"


_SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
