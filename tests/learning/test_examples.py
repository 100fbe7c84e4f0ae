"""The scripts of private learning: what they start from, and that the page of results knows them all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from examples import learning_mnist as mnist
from examples import learning_scattering as scattering
from mosha.learning.gradients.engine import Engine

ROOT = Path(__file__).parents[2]


def test_the_first_filters_have_norm_one_are_blind_to_brightness_and_look_in_all_directions() -> None:
    filters = mnist.edges(16, 8)[:, 0]
    assert filters.shape == (16, 8, 8)
    assert torch.allclose(filters.flatten(1).norm(dim=1), torch.ones(16))
    assert filters.sum(dim=(1, 2)).abs().max() < 1e-5
    even, odd = filters[:8], filters[8:]
    assert torch.allclose(even.flip(1, 2), even, atol=1e-6)
    assert torch.allclose(odd.flip(1, 2), -odd, atol=1e-6)
    assert torch.allclose(even[:4].transpose(1, 2).flip(2), even[4:], atol=1e-6)  # a quarter turn
    assert (even.flatten(1) @ odd.flatten(1).T).diagonal().abs().max() < 1e-6


def one_by_one(model: Any, pictures: Any, labels: Any, clip: Any) -> Any:
    """The sum of gradients that were clipped in a loop: the definition, in double precision."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    for picture, label in zip(pictures.split(1), labels.split(1), strict=True):
        found = torch.autograd.grad(cross_entropy(model(picture), label), list(model.parameters()))
        norm = float(torch.stack([g.square().sum() for g in found]).sum().sqrt())
        total = [sums + g * min(1.0, clip / norm) for sums, g in zip(total, found, strict=True)]
    return total


def test_clipped_sums_do_not_mind_the_layout_of_the_network() -> None:
    torch.manual_seed(0)  # where two pixels are next to equal, single and double precision may pool different ones
    model, pictures, labels = mnist.network(), torch.randn(12, 1, 28, 28), torch.randint(0, 10, (12,))
    assert model[3].weight.is_contiguous(memory_format=torch.channels_last)  # type: ignore[index]
    wide = mnist.network().double()
    wide.load_state_dict(model.state_dict())
    clip = 0.5
    expected = one_by_one(wide, pictures.double(), labels, clip)

    def rule(norms: Any) -> Any:
        return np.minimum(1.0, clip / np.sqrt(np.square(norms).sum(axis=0)))

    engine = Engine(model)
    losses = lambda network: cross_entropy(network(pictures), labels, reduction="none")
    found = engine.clip(losses, 12, rule).sums
    engine.detach()
    for (name, _), sums in zip(model.named_parameters(), expected, strict=True):
        assert float((found[name].double() - sums).abs().max()) <= 1e-5 * 12 * clip


@pytest.mark.parametrize(("folder", "roots"), [("mnist", False), ("fashion-mnist", True)])
def test_digits_and_clothes_have_features_of_their_own(folder: str, roots: bool) -> None:
    features = scattering.features_of(Path("/data") / folder)
    assert features.roots is roots
    assert scattering.model(1.0, features).rows(features.width).width == features.width


def test_the_page_of_results_names_every_script() -> None:
    page = (ROOT / "docs/examples/learning-models.md").read_text(encoding="utf-8")
    scripts = sorted(path.name for path in (ROOT / "examples").glob("learning_*.py"))
    assert len(scripts) >= 6
    assert [name for name in scripts if f"`{name}`" not in page] == []


def test_pictures_are_looked_at_from_nine_places_the_middle_first() -> None:
    picture = torch.full((1, 1, 28, 28), mnist.BLACK)
    picture[..., 10, 20] = 1.0
    views = mnist.moved(picture)
    assert torch.equal(views[0], picture)
    places = {tuple((view[0, 0] == 1.0).nonzero()[0].tolist()) for view in views}
    assert places == {(10 + dy, 20 + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)}
    assert all(float(view.min()) == float(picture.min()) for view in views)
