"""The conventions of scikit-learn, without scikit-learn: parameters by name, fitted attributes, cloning, tags."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter
from mosha.exact.bounding import to_numbers

__all__ = ["Estimator", "explain_variance"]


class Estimator:
    """An object whose constructor only stores its public parameters, and whose `fit` learns what ends in `_`.

    `sklearn.base.clone`, pipelines and searches accept it. (A search that fits many times pays many times: see
    `mosha.learning.best_of_random_runs`.)

    Methods take `X`, examples as an array or a data frame, and `y`, the target of each; `persons` says whose each
    example is, `features` how many columns there are and `names` what they are called. An `account` pays; a `key` makes
    a retry free.
    """

    _kind: ClassVar[str] = "classifier"
    _fitted: ClassVar[str] = "coef_"

    @classmethod
    def _names(cls) -> list[str]:
        return list(cls._parameters())

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        """The keyword parameters of the constructor."""
        named = inspect.signature(cls.__init__).parameters
        return {name: parameter for name, parameter in named.items() if parameter.kind is parameter.KEYWORD_ONLY}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  (scikit-learn's signature)
        """The constructor's parameters, by name."""
        del deep
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: object) -> Self:
        """Change parameters; what was fitted before stays until the next `fit`."""
        for name, value in parameters.items():
            if name not in self._names():
                raise InvalidParameter("learning.no_such_parameter", parameter=name, model=type(self).__name__)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        signature = self._parameters()
        changed = {k: v for k, v in self.get_params().items() if v is not signature[k].default}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._fitted)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise DataError("learning.not_fitted", model=type(self).__name__)

    @property
    def _estimator_type(self) -> str:
        return self._kind

    def __sklearn_tags__(self) -> Any:  # called by scikit-learn alone, which is then there
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags  # noqa: PLC0415

        tags = Tags(estimator_type=self._kind, target_tags=TargetTags(required=True))  # type: ignore[arg-type,unused-ignore]
        if self._kind == "classifier":
            tags.classifier_tags = ClassifierTags()
        else:
            tags.regressor_tags = RegressorTags()
        return tags


def explain_variance(targets: object, predicted: NDArray[np.float64]) -> float:
    """The coefficient of determination on *public* examples: the share of the variance that predictions explain."""
    true = to_numbers(targets)
    return float(1 - ((true - predicted) ** 2).sum() / ((true - true.mean()) ** 2).sum())
