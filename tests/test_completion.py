"""Shells offer what fits."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from command_line import shown
from effbench import plugins
from effbench.commands import completion
from effbench.verbs import VERBS

pytestmark = pytest.mark.usefixtures("elsewhere")

OFFERED = [
    ("", ["run", "table", "completion"], ["quick", "--budget"]),
    ("run q", ["quick"], ["smoke"]),
    ("run --f", ["--fail-fast", "--fresh"], ["--budget"]),
    ("run quick --technique mix", ["mixup"], ["mnist1d_cnn"]),
    ("run quick --workload kjv_g", ["kjv_gpt"], ["mixup"]),
    ("table --format ", ["latex", "html"], ["--metric"]),
    ("list tech", ["techniques"], ["taxonomy"]),
    ("new technique data_centric/s", ["data_centric/sampling/"], ["data_centric/curriculum/"]),
    ("show mnist5k_", ["mnist5k_resnet"], ["mixup"]),
]


def offered_by_bash(script: str, typed: str) -> list[str]:
    words = ["effbench", *typed.split(" ")]
    listed = " ".join(f"'{word}'" for word in words)
    call = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _effbench; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(
        ["bash", "-c", f"{script}\n{call}"], capture_output=True, text=True, check=True
    ).stdout.split()


def offered_by_fish(script: str, typed: str) -> list[str]:
    Path("effbench.fish").write_text(script, encoding="utf-8")
    call = f"source effbench.fish; complete -C 'effbench {typed}'"
    found = subprocess.run(["fish", "-c", call], capture_output=True, text=True, check=True).stdout
    return [line.partition("\t")[0] for line in found.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("typed", "there", "absent"), OFFERED)
def test_shells_offer_what_fits(
    shell: str, typed: str, there: list[str], absent: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    offered = {"bash": offered_by_bash, "fish": offered_by_fish}[shell](shown(capsys, "completion", shell), typed)
    assert set(there) <= set(offered)
    assert not set(absent) & set(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_have_all_verbs_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = shown(capsys, "completion", shell)
    flags = {"bash": "{}", "zsh": "{}", "fish": "-l {}"}[shell]
    for verb in VERBS.values():
        assert verb.name in script
        for argument in verb.arguments:
            if argument.name.startswith("--"):
                assert flags.format(argument.name if shell != "fish" else argument.name[2:]) in script
    if shutil.which(shell) is not None:
        Path("script").write_text(script, encoding="utf-8")
        subprocess.run([shell, "-n", "script"], check=True)


def test_completion_knows_leaves_and_all_names() -> None:
    names = completion.known_names(plugins.load())
    assert "data_centric/sampling/" in names["leaves"]
    assert {"mixup", "kjv_gpt", "quick", "cifar10"} <= set(names["names"])
