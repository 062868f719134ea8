"""The style of the HTML page."""

STYLE = """\
:root { color-scheme: light dark; --text: #1c2024; --quiet: #6a727c; --line: #e3e6ea; --page: #ffffff;
  --panel: #f7f8fa; --better: #12783f; --worse: #bb2f2f; --breaks: #8a2fa8; --incomplete: #96660a; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e8eb; --quiet: #98a1ac; --line: #2d333a;
  --page: #14171a; --panel: #1b1f23; --better: #52c985; --worse: #f07f7f; --breaks: #cf8ce8;
  --incomplete: #e0b04f; } }
body { margin: 0; background: var(--page); color: var(--text); font: 14px/1.5 system-ui, sans-serif; }
main { max-width: 86rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
section + section { margin-top: 3.5rem; }
h2 { font-size: 1.3rem; margin: 0 0 .25rem; }
.problem, .caveat, .note { margin-top: .9rem; }
h3 { font-size: .8rem; margin: 0 0 .2rem; color: var(--quiet); font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; white-space: nowrap; }
caption { text-align: left; color: var(--quiet); padding-bottom: .7rem; }
th { text-align: left; font-size: .8rem; font-weight: 600; color: var(--quiet); vertical-align: bottom; }
th, td { padding: .42rem .8rem .42rem 0; border-bottom: 1px solid var(--line); }
th.right, td.right { text-align: right; }
td.technique { white-space: normal; min-width: 11rem; overflow-wrap: anywhere; }
tr.baseline td { background: var(--panel); }
tr.best td.technique, tr.best td.mean { font-weight: 650; }
.interval { display: inline-block; min-width: 16.5em; }
svg { vertical-align: middle; }
svg line { stroke: currentColor; stroke-width: 2; stroke-linecap: round; }
svg line.zero { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 2 2; }
svg circle { fill: currentColor; }
.verdict, svg { color: var(--quiet); }
.better .verdict, .better svg { color: var(--better); font-weight: 600; }
.worse .verdict, .worse svg { color: var(--worse); font-weight: 600; }
.breaks .verdict, .breaks svg { color: var(--breaks); font-weight: 600; }
.incomplete .verdict, .incomplete svg { color: var(--incomplete); }
tr.skipped td, tr.under-floor td { color: var(--quiet); }
ul { margin: 0; padding-left: 1.1rem; font-size: .88rem; color: var(--quiet); }
.problem li { color: var(--text); } .caveat li { color: var(--incomplete); }
"""
