"""Who took part in a genome study, from nothing but its published allele frequencies."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosha.core.errors import InvalidParameter
from mosha.core.options import GenomeScore, choose

__all__ = ["score_genomes"]


def score_genomes(
    genotypes: ArrayLike, *, published: ArrayLike, reference: ArrayLike, method: GenomeScore = "homer"
) -> NDArray[np.float64]:
    """A score for each person: how much closer the genome is to the published frequencies than to a reference.

    "homer" is the distance of Homer et al. (2008), the sum over places of |y - reference| - |y - published| with y the
    person's own frequency (0, 1/2 or 1). "likelihood" is the log likelihood ratio of Sankararaman et al. (2009), the
    strongest for places that are inherited independently. High scores were probably in. Give them to
    `membership_attack(..., scores=...)`.

    Units:
        Frequencies of the minor allele, from 0 to 1; a genotype is its number of minor alleles.

    Args:
        genotypes: people by places: 0, 1 or 2.
        published: the frequencies that the study released; noisy ones may lie outside of [0, 1].
        reference: the frequencies in the population at large.
        method: which score.

    >>> score_genomes([[2, 0], [0, 2]], published=[0.6, 0.4], reference=[0.5, 0.5]).round(2).tolist()
    [0.2, -0.2]
    """
    people = np.asarray(genotypes, np.float64)
    mine, theirs = np.asarray(published, np.float64), np.asarray(reference, np.float64)
    if people.ndim != 2 or mine.shape != people.shape[1:] or theirs.shape != mine.shape:
        raise InvalidParameter("audit.genomes_of_other_places", parameter="published")
    if choose("method", method, GenomeScore) == "homer":
        half = people / 2
        distances: NDArray[np.float64] = (np.abs(half - theirs) - np.abs(half - mine)).sum(axis=1)
        return distances
    mine, theirs = np.clip(mine, 0.005, 0.995), np.clip(theirs, 0.005, 0.995)
    ratios: NDArray[np.float64] = people @ np.log(mine / theirs) + (2 - people) @ np.log((1 - mine) / (1 - theirs))
    return ratios
