"""Files on disk: replaced whole (`atomic`), held by one process (`locks`), sealed (`sealed`), with arrays (`packing`).

Whatever outlives its process is kept through here: streams, trainings, federated models, local surveys.
Nothing in a file is ever run, and every module works on Linux, macOS and Windows.
"""

from __future__ import annotations

__all__: list[str] = []
