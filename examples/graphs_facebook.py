"""Statistics and a synthetic version of a real graph: python examples/graphs_facebook.py facebook.edges.gz 4039."""

import sys
import tempfile
from pathlib import Path

import mosha


def main(place: str, vertices: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger = mosha.Ledger(Path(folder) / "privacy.db")
        account = ledger.account("friends", unit=mosha.Edge(), epsilon=4)
        friends = mosha.graphs.protect(place, unit=mosha.Edge(), account=account, vertices=vertices)
        for question in (friends.edges(), friends.triangles(), friends.clustering()):
            answer = question.release(epsilon=1)
            print(f"{question.title}: {answer.value:,} ± {answer.error(0.95):,.4g}")
        made = mosha.graphs.Graph.of(friends.synthetic().release(epsilon=1).value, vertices=vertices)
        print(f"synthetic: {made.edge_count:,} edges, {made.triangles:,} triangles")
        ledger.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
