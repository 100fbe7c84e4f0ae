"""One of each: the events, units, guarantees and errors that the laws of the core run on."""

from typing import Any

from mosha import events, guarantees
from mosha.core import errors
from mosha.core import unit as units
from mosha.core.language import phrase


def every_event() -> list[Any]:
    gaussian, laplace = events.Gaussian(1.1), events.Laplace(2)
    return [
        events.NOTHING,
        laplace,
        gaussian,
        events.DiscreteLaplace(2.5),
        events.DiscreteLaplace(2.5, 7),
        events.DiscreteGaussian(3, 1024, 4),
        events.RandomizedResponse(0.5),
        events.RandomizedResponse(0.5, 16),
        events.Exponential(0.3),
        events.SparseVector(0.1, 0.4, 3),
        events.Pure(1),
        events.Approx(1, 1e-6),
        events.ZeroConcentrated(0.1),
        events.Renyi((2.0, 8.0), (0.1, 0.5)),
        gaussian.sample(0.01),
        gaussian.sample(0.01, neighbors="replace-one"),
        events.FixedSizeSampled(gaussian, 10, 1000),
        events.FixedSizeSampled(gaussian, 10, 1000, True),
        events.Shuffled(1.0, 10_000),
        events.Tree(4, 10),
        events.Tree(4, 10, "laplace"),
        events.Matrix(2, 1.7),
        events.Selected(laplace, 10),
        events.Selected(gaussian, 10, "poisson"),
        events.Parallel((laplace, gaussian, laplace * 3)),
        events.Group(gaussian, 3),
        events.Failure(laplace, 1e-9),
        events.Plan(gaussian.sample(0.01) * 1000, 1e-6),
        laplace + gaussian,
        (laplace + 2 * gaussian) * 5 + events.Failure(laplace + gaussian, 0.01),
    ]


def every_unit() -> Any:
    found = [
        units.Row(),
        units.Row(3),
        units.Person("patient_id"),
        units.Person("patient_id", at_most=5, groups=3, per_group=2, total=10.5),
        units.Reading(),
        units.Window("meter", 48),
        units.Edge(),
        units.Node(),
        units.Node(max_degree=50),
        units.Example(),
        units.Client(),
        units.Own(),
    ]
    replaced = [units.Row(2, neighbors="replace-one"), units.Person("p", neighbors="replace-one")]  # type: ignore[arg-type]
    populated = [
        units.Member(of="patients"),
        units.Member(of="patients", neighbors="replace-one"),  # type: ignore[arg-type]
        units.Person("pid", of="patients"),
        units.Person("patient_id", at_most=5, of="patients"),
        units.Person("pid", of="staff"),
        units.Row(3, of="patients"),
        units.Row(of="patients"),
        units.Node(max_degree=5, of="patients"),
        units.Example(of="patients"),
        units.Client(of="patients"),
        units.Own(of="patients"),
    ]
    return found + replaced + populated


def every_guarantee() -> Any:
    levels = (0.0, 1e-9, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0, 40.0, 800.0)
    found = [kind(x) for kind in (guarantees.Pure, guarantees.ZeroConcentrated, guarantees.Gaussian) for x in levels]
    return found + [guarantees.Approx(x, delta) for x in levels for delta in (0.0, 1e-200, 1e-9, 1e-3, 0.3, 0.9)]


def every_error() -> list[Any]:
    built = {
        "AccountFrozen": errors.AccountFrozen(account="visits", failures=3),
        "BudgetExceeded": errors.BudgetExceeded(account="visits", measure="epsilon", asked=1.0, used=0.5, limit=1.2),
        "AccountExpired": errors.AccountExpired(account="visits/zhang", ended="2027-04-01T00:00:00+00:00"),
        "MissingExtra": errors.MissingExtra("plot", needed_for=phrase("mechanisms.picture")),
    }
    return [built.get(name) or getattr(errors, name)(f"what went wrong: {name}.") for name in errors.__all__]
