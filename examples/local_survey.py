"""Ten thousand phones, one question, no trusted curator."""

from __future__ import annotations

import mosha


def main() -> None:
    survey = mosha.local.Frequency(["firefox", "chrome", "safari", "edge"], epsilon=1.5)
    phones = ["firefox"] * 3000 + ["chrome"] * 5000 + ["safari"] * 2000
    shares = survey.estimate(survey.reports(phones))
    for row in shares.table():
        print(f"{row['value']:8} {row['share']:.3f}   unbiased {row['raw']:+.3f} ± {row['error']:.3f}")
    print(mosha.local.compare(len(phones), len(survey.values), survey.epsilon))


if __name__ == "__main__":
    main()
