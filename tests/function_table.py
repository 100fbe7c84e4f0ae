"""The table of functions, from the one table of their ranges: `python -m tests.function_table` writes it anew."""

from pathlib import Path

from mosha.connect.language.limits import LIMITS
from mosha.connect.language.operator import Operator

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "functions.md"
TITLES = "| SQL | means | arguments | what rows can do |\n|---|---|---|---|\n"
MEANINGS: dict[Operator, tuple[str, str]] = {
    Operator.ADD: ("a + b", "sum"),
    Operator.SUBTRACT: ("a - b", "difference"),
    Operator.MULTIPLY: ("a * b, POWER(a, 2)", "product"),
    Operator.DIVIDE: ("a / b", "quotient, a real number"),
    Operator.NEGATE: ("-a", "opposite"),
    Operator.ABSOLUTE: ("ABS(a)", "distance from zero"),
    Operator.FLOOR: ("FLOOR(a)", "the whole number below"),
    Operator.CEILING: ("CEIL(a)", "the whole number above"),
    Operator.ROUND: ("ROUND(a, digits)", "the nearest number of so many digits, halves away from zero"),
    Operator.SQUARE_ROOT: ("SQRT(a)", "square root"),
    Operator.LOGARITHM: ("LN(a), LOG(a), LOG(base, a)", "logarithm; LOG alone has the base 10"),
    Operator.EXPONENTIAL: ("EXP(a)", "power of e"),
    Operator.POWER: ("POWER(a, b)", "power with any exponent; small whole ones are products"),
    Operator.CLAMP: ("CLAMP(a, low, high)", "moved into a range"),
    Operator.BIN: ("BIN(a, width, origin), a % n", "lower edge of the bin that holds a number"),
    Operator.GRID: ("(none)", "a number on the public grid on which sums are exact"),
    Operator.EQUAL: ("a = b", "the same; texts by code point"),
    Operator.NOT_EQUAL: ("a <> b", "not the same"),
    Operator.LESS: ("a < b", "below; texts by code point"),
    Operator.LESS_EQUAL: ("a <= b", "not above"),
    Operator.GREATER: ("a > b", "above"),
    Operator.GREATER_EQUAL: ("a >= b", "not below"),
    Operator.AND: ("a AND b", "both"),
    Operator.OR: ("a OR b", "one of them"),
    Operator.NOT: ("NOT a", "not"),
    Operator.IS_NULL: ("a IS NULL", "missing"),
    Operator.IN: ("a IN (...)", "among constants"),
    Operator.COALESCE: ("COALESCE(a, b)", "the first that is there"),
    Operator.LOWER: ("LOWER(a)", "A to Z as a to z"),
    Operator.UPPER: ("UPPER(a)", "a to z as A to Z"),
    Operator.TRIM: ("TRIM(a), LTRIM(a), RTRIM(a)", "without blanks at both ends, or at one"),
    Operator.LENGTH: ("LENGTH(a)", "number of code points"),
    Operator.SUBSTRING: ("SUBSTRING(a, start, length), LEFT(a, n)", "a part, the first place being 1"),
    Operator.TAIL: ("RIGHT(a, n)", "the last code points"),
    Operator.SPLIT: (
        "SPLIT_PART(a, 'x', n)",
        "the part between constants, the first being 1; empty where it is not there",
    ),
    Operator.CONCAT: ("a || b, CONCAT(a, b)", "one text after the other"),
    Operator.POSITION: ("POSITION('x' IN a)", "where a constant first stands, 0 where it does not"),
    Operator.REPLACE: ("REPLACE(a, 'x', 'y')", "one constant in place of another"),
    Operator.LIKE: ("a LIKE 'x%', ILIKE, STARTS_WITH, CONTAINS, REGEXP_LIKE", "matches a pattern"),
    Operator.YEAR: ("YEAR(a), EXTRACT(YEAR FROM a)", "year"),
    Operator.QUARTER: ("QUARTER(a)", "quarter, 1 to 4"),
    Operator.MONTH: ("MONTH(a)", "month, 1 to 12"),
    Operator.DAY: ("DAY(a)", "day of the month"),
    Operator.HOUR: ("HOUR(a)", "hour of a timestamp"),
    Operator.MINUTE: ("MINUTE(a)", "minute of a timestamp"),
    Operator.WEEKDAY: ("EXTRACT(ISODOW FROM a)", "day of the week, Monday is 1"),
    Operator.TRUNCATE_DATE: (
        "DATE_TRUNC('month', a)",
        "first moment of the year, month, week, day, ...",
    ),
    Operator.DAYS_BETWEEN: ("a - b, DATEDIFF('day', b, a)", "midnights between two dates"),
    Operator.SHIFT_DATE: ("a + INTERVAL 1 MONTH", "days or months later; the last day of a shorter month"),
    Operator.CAST: ("CAST(a AS type)", "the value as another type"),
}


def write_table() -> str:
    lines = []
    for operator, (sql, meaning) in MEANINGS.items():
        limits = LIMITS[operator]
        number = str(limits.least) if limits.least == limits.most else f"{limits.least} to {limits.most}"
        written = sql.replace("|", "\\|")
        lines.append(f"| {written if sql == '(none)' else f'`{written}`'} | {meaning} | {number} | {limits.total} |")
    return TITLES + "\n".join(lines) + "\n"


def read_prose() -> str:
    """What the page says before its table."""
    return PAGE.read_text().partition(TITLES)[0]


if __name__ == "__main__":
    PAGE.write_text(read_prose() + write_table())
