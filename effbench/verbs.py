"""The verbs of the command line and their arguments, as data: parser, shell completion and docs are made from them."""

from __future__ import annotations

from effbench.arguments import Argument, Verb, one_of, pair, seeds, share, whole

KINDS = ("techniques", "workloads", "suites", "datasets", "plugins", "taxonomy")  # what `list` lists
SHELLS = ("bash", "zsh", "fish")
BY = ("technique", "workload", "leaf", "budget")  # what the tables of `table` are by
TRACKERS = ("mlflow", "tensorboard", "trackio", "wandb")  # where `run` can write trials to, besides the records
STYLES = ("compact", "full", "paper")
FIGURES = ("curves", "forest", "interactions", "ladder", "ledger", "pareto", "profiles", "scores")  # what `plot` draws

PLUGINS = (
    Argument("--plugin", "file, folder or module that offers more", "X", several=True, completes="files"),
    Argument("--strict-plugins", "a broken plugin is an error, not a warning"),
)
SUITE = Argument("SUITE", "a suite by name, or the path of its TOML file", completes="suites")
CHOICE = (
    Argument("--technique", "compare this set too; again for more", "SET", several=True, completes="techniques"),
    Argument("--workload", "train on this workload alone; again for more", "NAME", several=True, completes="workloads"),
)
MACHINE = (
    Argument("--out", "folder of results; default: results/NAME", "DIR", completes="files"),
    Argument("--jobs", "trials side by side; default: one a core", "N", read=whole),
    Argument("--threads", "threads of each trial; default: 1", "N", default=1, read=whole),
    Argument("--device", "cpu, cuda, cuda:1, ...; default: cpu", "D", default="cpu"),
    Argument("--data", "local copy of a data set", "NAME=PATH", several=True, read=pair, completes="datasets"),
)

RUN = Verb(
    "run",
    "train all that a suite compares, and show the table",
    (
        SUITE,
        Argument("--budget", "what each trial may spend: 60s, 2000 steps, ...", "B"),
        Argument("--total", "wall time of the whole suite: 10m, 1h30m, ...", "T"),
        Argument("--seeds", "seeds of the trials: 0,1,2 or 0-4", "LIST", read=seeds),
        *CHOICE,
        *MACHINE,
        Argument("--fail-fast", "start nothing after the first failure"),
        Argument("--dry-run", "show what would run, what not and why; train nothing"),
        Argument("--fresh", "run again what is finished"),
        Argument(
            "--track",
            f"write trials for {', '.join(TRACKERS[:-1])} or {TRACKERS[-1]} too",
            "T",
            several=True,
            read=one_of("tracker", *TRACKERS),
            completes=TRACKERS,
        ),
        Argument("--until-decided", "stop a set when its seeds have told, by a group-sequential test"),
        Argument("--margin", "differences up to this are none: 1% of the mean, or 0.002", "SIZE", default="1%"),
        *PLUGINS,
    ),
    (
        "effbench run quick",
        'effbench run quick --technique "mixup(alpha=0.1)+ema" --seeds 0-4',
        "effbench run mine.toml --plugin mine.py --budget 60s --dry-run",
    ),
    "What is finished is kept, and what failed is tried again: a run that was stopped goes on.",
)
RESULTS = Argument(
    "RESULTS", "folders; default: the newest in results/", several=True, optional=True, completes="files"
)
METRIC = Argument("--metric", "compare accuracy, peak_memory_mib, ...", "M")
WORKLOAD = Argument("--workload", "show this workload alone", "NAME", completes="workloads")
TABLE = Verb(
    "table",
    "compare what was run, with intervals and verdicts",
    (
        RESULTS,
        Argument(
            "--format",
            "console, markdown, csv, latex, html or json",
            "F",
            default="console",
            completes=("console", "markdown", "csv", "latex", "html", "json"),
        ),
        METRIC,
        WORKLOAD,
        Argument("--against", "compare with this set, not the baseline", "SET", completes="techniques"),
        Argument(
            "--by",
            f"rows by {', '.join(BY[:-1])} or {BY[-1]}; default: {BY[0]}",
            "WHAT",
            default=BY[0],
            read=one_of("table by", *BY),
            completes=BY,
        ),
        Argument("--columns", "show these alone: technique,mean,p_holm,...", "LIST"),
        Argument("--sort", "sort by a column; -mean sorts downwards", "COLUMN"),
        Argument(
            "--style",
            f"{', '.join(STYLES[:-1])} or {STYLES[-1]}; default: full",
            "S",
            default="full",
            read=one_of("style", *STYLES),
            completes=STYLES,
        ),
        Argument("-o", "write to a file", "FILE", completes="files", dest="file"),
        *PLUGINS,
    ),
    (
        "effbench table",
        "effbench table results/quick --format markdown -o quick.md",
        "effbench table results/quick --against muon --style compact --sort=-difference",
        "effbench table results/quick --style paper --format latex -o table.tex",
    ),
    "By default each workload is judged by its headline metric, on its test examples.",
)
REPORT = Verb(
    "report",
    "write one HTML page about all of it, which needs no network",
    (
        RESULTS,
        Argument("-o", "file; default: report.html", "FILE", completes="files", dest="file"),
        Argument("--title", "title; default: the name of the suite", "T"),
        PLUGINS[0],
    ),
    ("effbench report results/quick -o report.html",),
    "Plugins are not run for it: their source is read for the cards of their techniques.",
)
PLOT = Verb(
    "plot",
    "draw a figure for a paper: pdf, svg or png",
    (
        Argument(
            "KIND", f"{', '.join(FIGURES[:-1])} or {FIGURES[-1]}", read=one_of("figure", *FIGURES), completes=FIGURES
        ),
        RESULTS,
        METRIC,
        WORKLOAD,
        Argument("-o", "file; default: KIND.pdf", "FILE", completes="files", dest="file"),
    ),
    ("effbench plot forest results/quick -o forest.pdf", "effbench plot curves --workload kjv_gpt -o curves.svg"),
    "It needs matplotlib: pip install 'effbench[plots]'.",
)
CALIBRATE = Verb(
    "calibrate",
    "measure what a step of each technique costs",
    (SUITE, *CHOICE, *MACHINE, Argument("--fresh", "measure again what is known"), *PLUGINS),
    ("effbench calibrate quick",),
    "Budgets in reference-seconds need these prices. They lie beside the results; `run` measures what is missing.",
)
SCORES = Verb(
    "scores",
    "score each set over all workloads, against the baseline",
    (RESULTS, METRIC, Argument("--json", "write JSON: a list of objects")),
    ("effbench scores", "effbench scores results/quick --metric loss"),
    "With intervals, the chances of being better and best, and AlgoPerf's score beside it.",
)
CLAIMS = Verb(
    "claims",
    "show what papers claim beside what was measured here",
    (RESULTS, METRIC, WORKLOAD, Argument("--json", "write JSON: a list of cards, with the keys of their records")),
    ("effbench claims", "effbench claims results/quick --workload kjv_gpt"),
    "A card for each set, workload and budget: verdict, effect, cost, speed-up, and what waived work would be worth.",
)
AA = Verb(
    "aa",
    "run the baseline against itself: the noise floor of this machine",
    (
        SUITE,
        Argument("--budget", "what each trial may spend: 60s, 2000 steps, ...", "B"),
        Argument("--total", "wall time of all of it: 10m, 1h30m, ...", "T"),
        Argument("--seeds", "seeds, each run with a twin: 0,1,2 or 0-4", "LIST", read=seeds),
        CHOICE[1],
        *MACHINE,
        Argument("--fresh", "run again what is finished"),
        *PLUGINS,
    ),
    ("effbench aa quick", "effbench aa quick --seeds 0-9 --workload kjv_gpt"),
    "It shows the smallest effect that the suite can see. Tables of the suite then grey out what lies under the floor.",
)
SEEDS = Verb(
    "seeds",
    "say how many seeds it takes to see an effect of some size",
    (
        RESULTS,
        Argument("--effect", "its size: 0.5% of the baseline's mean, or 0.002; default: 1%", "SIZE", default="1%"),
        Argument("--power", "the chance of seeing it; default: 0.8", "P", default=0.8, read=share),
        Argument("--metric", "of accuracy, peak_memory_mib, ...", "M"),
        Argument("--workload", "for this workload alone", "NAME", completes="workloads"),
        Argument("--json", "write JSON: a list of objects"),
    ),
    ("effbench seeds --effect 0.5%", "effbench seeds results/quick --effect 0.002 --power 0.9"),
    "From the variance that was measured: of paired differences, of A/A runs, or else of the baseline.",
)
EXPLAIN = Verb(
    "explain",
    "explain why two sets of results differ",
    (
        Argument("A", "a folder of results", completes="files", dest="first"),
        Argument("B", "another, of the same suite", completes="files", dest="second"),
        Argument("--json", "write JSON: one object"),
    ),
    ("effbench explain results/quick elsewhere/quick",),
    "Versions, code, machine, prices, the time of a step line by line, and where runs of one seed part.",
)
MERGE = Verb(
    "merge",
    "put results of several folders into one, where they compare",
    (
        Argument("RESULTS", "folders of one suite", several=True, completes="files"),
        Argument("--into", "a new folder for all of them", "DIR", completes="files", default="results/merged"),
    ),
    ("effbench merge results/quick elsewhere/quick --into results/both",),
    "Folders of other suites, versions, clocks, prices or hardware are refused, and it says why.",
)
LIST = Verb(
    "list",
    "list techniques, workloads, suites, data sets and more",
    (
        Argument(
            "WHAT",
            f"{', '.join(KINDS[:-1])} or {KINDS[-1]}; default: {KINDS[0]}",
            optional=True,
            default=KINDS[0],
            read=one_of("list of", *KINDS),
            completes=KINDS,
        ),
        Argument("--json", "write JSON: a list of objects, each with a name"),
        *PLUGINS,
    ),
    ("effbench list", "effbench list workloads", "effbench list taxonomy", "effbench list techniques --json"),
)
SHOW = Verb(
    "show",
    "show all about a technique, workload, suite or data set",
    (Argument("NAME", "its name, or the path of a suite", completes="names"), *PLUGINS),
    ("effbench show mixup", "effbench show kjv_gpt", "effbench show quick"),
)
NEW = Verb(
    "new",
    "begin a technique of your own: a file and its test",
    (
        Argument("WHAT", "technique", read=one_of("template for a", "technique"), completes=("technique",)),
        Argument("LEAF/NAME", "its leaf of the taxonomy, and its name", completes="leaves", dest="place"),
        Argument("--package", "write a package, to install and to share"),
        Argument("--into", "folder; default: this one", "DIR", default=".", completes="files"),
    ),
    (
        "effbench new technique data_centric/regularization/my_noise",
        "effbench new technique optimization_centric/learning_rate/my_optimizer --package",
    ),
    "`effbench list taxonomy` shows the leaves.",
)
CHECK = Verb(
    "check",
    "check that a technique keeps the laws of fair comparison",
    (Argument("NAME", "a technique, or a file that offers some", completes="techniques"), *PLUGINS),
    ("effbench check mixup", "effbench check my_noise.py"),
)
DATA = Verb(
    "data",
    "list data sets, or fetch one over the network",
    (
        Argument(
            "ACTION",
            "list or fetch; default: list",
            optional=True,
            default="list",
            read=one_of("action on data", "list", "fetch"),
            completes=("list", "fetch"),
        ),
        Argument("NAME", "what to fetch", optional=True, completes="datasets"),
        Argument("--from", "take it from this folder instead", "DIR", completes="files", dest="source"),
        *PLUGINS,
    ),
    ("effbench data list", "effbench data fetch cifar10"),
)
COMPLETION = Verb(
    "completion",
    "write a script that completes names in your shell",
    (Argument("SHELL", ", ".join(SHELLS), read=one_of("completion for", *SHELLS), completes=SHELLS), *PLUGINS),
    (
        "effbench completion bash > ~/.local/share/bash-completion/completions/effbench",
        "effbench completion zsh > ~/.zfunc/_effbench",
        "effbench completion fish > ~/.config/fish/completions/effbench.fish",
    ),
    "It knows the names that there are now; write it again after installing a plugin.",
)

GROUPS: dict[str, tuple[Verb, ...]] = {
    "compare": (RUN, CALIBRATE, AA, TABLE, SCORES, CLAIMS, REPORT, PLOT, SEEDS, EXPLAIN, MERGE),
    "look": (LIST, SHOW, DATA),
    "write": (NEW, CHECK, COMPLETION),
}
VERBS: dict[str, Verb] = {verb.name: verb for group in GROUPS.values() for verb in group}
