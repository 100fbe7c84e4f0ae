"""Sixty exercises that check themselves: tasks in English and Chinese, solutions, and mistakes that are found out.

Each chapter is one TOML file; `exercise` reads them, `checks` (the room next door) judges an answer.
"""
