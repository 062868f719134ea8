"""Write anew what is made from the code: the JSON Schema of suites, and the README's table of techniques."""

from __future__ import annotations

from pathlib import Path

from effbench import cards, plugins, schema

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- techniques: made by tools/refresh.py -->\n", "<!-- end of techniques -->"


def main() -> None:
    """Write both files."""
    loaded = plugins.load(strict=True)
    (ROOT / "effbench" / "suite.schema.json").write_text(schema.current(loaded), encoding="utf-8")
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    if BEGIN in text:
        before, _, rest = text.partition(BEGIN)
        table = cards.readme_table(loaded.techniques.values())
        readme.write_text(f"{before}{BEGIN}{table}{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
