"""One of each event, alone and nested: what the laws of accounting run on."""

from typing import Any

from mosha import events as e


def simple_events() -> list[Any]:
    return [
        e.Laplace(2),
        e.Laplace(100),
        e.Gaussian(1.1),
        e.Gaussian(20),
        e.DiscreteLaplace(2.5),
        e.DiscreteLaplace(2.5, 7),
        e.DiscreteLaplace(40, 1024),
        e.DiscreteGaussian(3, 1024, 4),
        e.DiscreteGaussian(5),
        e.RandomizedResponse(0.5),
        e.RandomizedResponse(0.5, 16),
        e.RandomizedResponse(3, 200),
        e.Exponential(0.3),
        e.SparseVector(0.1, 0.4, 3),
        e.Pure(0),
        e.Pure(1),
        e.Approx(1, 1e-6),
        e.ZeroConcentrated(0.1),
        e.Renyi((2.0, 8.0, 64.0), (0.1, 0.5, 4.0)),
        e.Shuffled(1.0, 10_000),
        e.Tree(4, 10),
        e.Tree(40, 10, "laplace"),
        e.Matrix(2, 1.7),
    ]


def nested_events() -> list[Any]:
    laplace, gaussian = e.Laplace(2), e.Gaussian(1.1)
    return [
        gaussian.sample(0.01),
        gaussian.sample(0.01, neighbors="replace-one"),
        e.DiscreteGaussian(1.1, 64).sample(0.01),
        laplace.sample(0.01),
        laplace.sample(0.2, neighbors="replace-one"),
        e.RandomizedResponse(0.5, 4).sample(0.3),
        e.Exponential(0.3).sample(0.1),
        e.Approx(0.5, 1e-7).sample(0.1),
        e.ZeroConcentrated(0.1).sample(0.1),
        e.Failure(gaussian, 1e-9).sample(0.1),
        (gaussian + laplace).sample(0.01),
        gaussian.sample(0.1).sample(0.1),
        e.FixedSizeSampled(gaussian, 10, 1000),
        e.FixedSizeSampled(laplace, 10, 1000),
        e.FixedSizeSampled(e.Gaussian(8), 10, 1000, True),
        e.FixedSizeSampled(e.Laplace(20), 10, 1000, True),
        e.Selected(laplace, 10),
        e.Selected(e.Gaussian(5), 10, "poisson"),
        e.Selected(e.Gaussian(5), 10, shape=0.0),
        e.Selected(e.Failure(e.Gaussian(5), 1e-9), 4, shape=0.5),
        e.Parallel((laplace, gaussian, laplace * 3)),
        e.Parallel((laplace, e.Failure(laplace, 1e-7))),
        e.Group(gaussian, 3),
        e.Group(e.Approx(0.1, 1e-9), 3),
        e.Group(gaussian.sample(0.01), 2),
        e.Group(laplace + e.Exponential(0.2), 2),
        e.Failure(laplace, 1e-9),
        e.Failure(e.Failure(gaussian, 0.1), 0.2),
        e.Plan(e.Gaussian(1.1).sample(0.01) * 1000, 1e-6),
        e.Plan(e.Laplace(20) * 10 + e.Gaussian(30), 1e-9),
        e.Parallel((e.Plan(gaussian, 1e-7), e.Group(e.Failure(laplace, 1e-8), 2))),
    ]


def composed_events() -> list[Any]:
    laplace, gaussian = e.Laplace(20), e.Gaussian(11)
    return [
        e.NOTHING,
        laplace + gaussian,
        (laplace + 2 * gaussian) * 5 + e.Failure(laplace + gaussian, 0.01),
        e.RandomizedResponse(0.1) * 1000,
        gaussian * 10**9,
    ]


def every_event() -> Any:
    return simple_events() + nested_events() + composed_events()


def name(event: Any) -> Any:
    return repr(event)[:70]


def with_more_noise() -> list[Any]:
    """Pairs: the second is the first with more noise, or less of the data."""
    return [
        (e.Laplace(2), e.Laplace(2.1)),
        (e.Gaussian(2), e.Gaussian(2.1)),
        (e.DiscreteLaplace(2, 3), e.DiscreteLaplace(2.1, 3)),
        (e.DiscreteLaplace(2, 3), e.DiscreteLaplace(2, 4)),
        (e.DiscreteGaussian(2, 3.0), e.DiscreteGaussian(2.1, 3.0)),
        (e.RandomizedResponse(0.5), e.RandomizedResponse(0.4)),
        (e.Exponential(0.5), e.Exponential(0.4)),
        (e.SparseVector(0.5, 0.1), e.SparseVector(0.4, 0.1)),
        (e.SparseVector(0.5, 0.1), e.SparseVector(0.5, 0.05)),
        (e.Pure(1), e.Pure(0.9)),
        (e.Approx(1, 1e-6), e.Approx(0.9, 1e-6)),
        (e.Approx(1, 1e-6), e.Approx(1, 1e-7)),
        (e.ZeroConcentrated(0.1), e.ZeroConcentrated(0.09)),
        (e.Renyi((2.0, 4.0), (0.1, 0.2)), e.Renyi((2.0, 4.0), (0.1, 0.15))),
        (e.Gaussian(2).sample(0.1), e.Gaussian(2.1).sample(0.1)),
        (e.Gaussian(2).sample(0.1), e.Gaussian(2).sample(0.09)),
        (e.Gaussian(2).sample(0.1), e.Gaussian(2).sample(0.1).sample(0.5)),
        (e.Gaussian(2).sample(0.1, neighbors="replace-one"), e.Gaussian(2).sample(0.09, neighbors="replace-one")),
        (e.Laplace(2).sample(0.1), e.Laplace(2).sample(0.09)),
        (e.Laplace(2), e.Laplace(2).sample(0.999)),
        (e.FixedSizeSampled(e.Gaussian(2), 10, 100), e.FixedSizeSampled(e.Gaussian(2), 9, 100)),
        (e.FixedSizeSampled(e.Gaussian(2), 10, 100), e.FixedSizeSampled(e.Gaussian(2), 10, 101)),
        (e.FixedSizeSampled(e.Laplace(9), 10, 100, True), e.FixedSizeSampled(e.Laplace(9), 9, 100, True)),
        (e.Shuffled(1, 10_000), e.Shuffled(0.9, 10_000)),
        (e.Tree(4, 10), e.Tree(4, 9)),
        (e.Tree(4, 10), e.Tree(4.1, 10)),
        (e.Matrix(2, 1.5), e.Matrix(2, 1.4)),
        (e.Selected(e.Gaussian(5), 10), e.Selected(e.Gaussian(5.1), 10)),
        (e.Selected(e.Gaussian(5), 10), e.Selected(e.Gaussian(5), 9)),
        (e.Selected(e.Gaussian(5), 10, "poisson"), e.Selected(e.Gaussian(5), 9, "poisson")),
        (e.Parallel((e.Laplace(2), e.Gaussian(2))), e.Parallel((e.Laplace(2.1), e.Gaussian(2.1)))),
        (e.Group(e.Gaussian(5), 4), e.Group(e.Gaussian(5), 3)),
        (e.Group(e.Gaussian(5).sample(0.1), 4), e.Group(e.Gaussian(5).sample(0.1), 3)),
        (e.Failure(e.Laplace(2), 1e-6), e.Failure(e.Laplace(2), 1e-7)),
        (e.Plan(e.Gaussian(5) * 10, 1e-6), e.Plan(e.Gaussian(5.1) * 10, 1e-6)),
        (e.Laplace(2) * 5 + e.Gaussian(3), e.Laplace(2) * 4 + e.Gaussian(3)),
    ]
