"""`make house`: print the figures of the house."""

import argparse
import json
import sys
import warnings

from tests.house import figures, imports, public, source


def main() -> None:
    """Print the figures, or save them."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description="Figures of the house.")
    parser.add_argument("--no-roads", action="store_true", help="do not trace the roads")
    parser.add_argument("--save", action="store_true", help="lower the bars to today's figures")
    parser.add_argument("--json", action="store_true", help="the figures of the whole as JSON")
    lists = ["participles", "free-text", "knots", "undocumented", "without-example", "undescribed"]
    parser.add_argument("--list", choices=lists, help="where they are")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.list:
        sys.stdout.write("\n".join(_places(given.list)) + "\n")
        return
    folders = figures.by_folder()
    if given.save:
        text = json.dumps(figures.lower(folders, figures.of_the_whole(), figures.bars()), indent=1, sort_keys=True)
        figures.BARS.write_text(text + "\n", encoding="utf-8")
    whole = figures.of_the_whole() | figures.of_the_public() | ({} if given.no_roads else figures.of_the_roads())
    if given.json:
        sys.stdout.write(json.dumps(whole, indent=1) + "\n")
        return
    before = json.loads(figures.BEFORE.read_text(encoding="utf-8")) if figures.BEFORE.exists() else {}
    rooms = "\n".join(f"  {room:24} {number}" for room, number in source.files().items())
    parts = [figures.table(whole, before), figures.folder_table(folders), f"files in each room:\n{rooms}"]
    sys.stdout.write("\n\n".join(parts) + "\n")


def _places(kind: str) -> list[str]:
    if kind == "knots":
        return [" <-> ".join(knot) for knot in imports.knots(imports.graphs()[1])]
    if kind == "without-example":
        return [f"{facade}.{name}" for facade, names in public.without_example().items() for name in names]
    if kind == "undescribed":
        return [f"{facade}.{name}" for facade, names in public.undescribed().items() for name in names]
    if kind == "undocumented":
        return [f"{facade}.{name}" for facade, names in public.missing().items() for name in names]
    found = source.participles() if kind == "participles" else source.free_text_errors()
    return [place for places in found.values() for place in places]


if __name__ == "__main__":
    main()
