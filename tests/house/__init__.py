"""Figures of the house: files, imports, types, names, docstrings, errors and roads, measured by one script.

python -m tests.house              all figures of this tree
python -m tests.house --no-roads   without tracing the roads (half a minute less)
python -m tests.house --save       the bars of tests/house/bars.json follow the figures, downwards only
"""
