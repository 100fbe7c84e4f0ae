"""The platform attacks itself, and anything you give it.

    attack, search              a lower bound on what a mechanism leaks, exact at the stated confidence
    attack_timing               the same for how long it takes
    neighbors                  where to look
    register, attack_all        everything at once
    audit_accountant            are prices ever below what really leaks?
    step_contract, statistic_contract, additive_contract, trainer_contract
                                does each part do what the price assumes?
    audit_one_run               many canaries, one training run
    Canaries, TrainingContract  both as `audit=...` of a training
    membership_attack, attribute_attack, reconstruction_attack, differencing    attacks on what was published
    score_by_marginals          a stronger attacker's scores for synthetic tables
    score_genomes               who was in a genome study, from its allele frequencies
    reidentify_by_degrees       who is who in a graph without names
    measure_unicity             how few points of a trajectory single a person out
    anonymity, compare          what k-anonymity leaves open

>>> import mosha
>>> import numpy as np
>>> def noisy_count(rows, size):
...     return len(rows) + np.random.default_rng().laplace(scale=0.5, size=size)
>>> verdict = mosha.audit.attack(
...     noisy_count, neighbors=([], ["Ada"]), claim=mosha.guarantees.Pure(1), runs=20_000, batch=True
... )
>>> verdict.outcome
<Outcome.BROKEN: 'broken'>
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.audit.attacks.black_box import attack as attack
    from mosha.audit.attacks.canary import OneRun as OneRun
    from mosha.audit.attacks.canary import audit_one_run as audit_one_run
    from mosha.audit.attacks.canary import draw_inclusion as draw_inclusion
    from mosha.audit.attacks.pilot import search as search
    from mosha.audit.attacks.timing import attack_timing as attack_timing
    from mosha.audit.claims import neighbors as neighbors
    from mosha.audit.claims.claim import Claim as Claim
    from mosha.audit.claims.neighbors import Proposal as Proposal
    from mosha.audit.claims.priced import claim_of as claim_of
    from mosha.audit.contracts.accountant import AccountantAudit as AccountantAudit
    from mosha.audit.contracts.accountant import audit_accountant as audit_accountant
    from mosha.audit.contracts.contract import Contract as Contract
    from mosha.audit.contracts.contract import additive_contract as additive_contract
    from mosha.audit.contracts.statistic_contract import statistic_contract as statistic_contract
    from mosha.audit.contracts.step_contract import step_contract as step_contract
    from mosha.audit.contracts.trainer import Trainer as Trainer
    from mosha.audit.contracts.trainer import trainer_contract as trainer_contract
    from mosha.audit.contracts.training_hooks import Canaries as Canaries
    from mosha.audit.contracts.training_hooks import TrainingContract as TrainingContract
    from mosha.audit.published.degrees import reidentify_by_degrees as reidentify_by_degrees
    from mosha.audit.published.genomes import score_genomes as score_genomes
    from mosha.audit.published.k_anonymity import anonymity as anonymity
    from mosha.audit.published.k_anonymity import background_attack as background_attack
    from mosha.audit.published.k_anonymity import homogeneity_attack as homogeneity_attack
    from mosha.audit.published.masking import compare as compare
    from mosha.audit.published.masking import generalize as generalize
    from mosha.audit.published.masking import mask as mask
    from mosha.audit.published.masking import suppress as suppress
    from mosha.audit.published.membership import attribute_attack as attribute_attack
    from mosha.audit.published.membership import membership_attack as membership_attack
    from mosha.audit.published.membership import score_by_marginals as score_by_marginals
    from mosha.audit.published.reconstruction import differencing as differencing
    from mosha.audit.published.reconstruction import reconstruct as reconstruct
    from mosha.audit.published.reconstruction import reconstruction_attack as reconstruction_attack
    from mosha.audit.published.trajectories import measure_unicity as measure_unicity
    from mosha.audit.registry import attack_all as attack_all
    from mosha.audit.registry import entries as entries
    from mosha.audit.registry import register as register
    from mosha.audit.reporting.outcome import Outcome as Outcome
    from mosha.audit.reporting.outcome import Witness as Witness
    from mosha.audit.reporting.verdict import Verdict as Verdict

_NAMES = {
    "AccountantAudit": "contracts.accountant",
    "Canaries": "contracts.training_hooks",
    "Claim": "claims.claim",
    "Contract": "contracts.contract",
    "OneRun": "attacks.canary",
    "Outcome": "reporting.outcome",
    "Proposal": "claims.neighbors",
    "Trainer": "contracts.trainer",
    "TrainingContract": "contracts.training_hooks",
    "Verdict": "reporting.verdict",
    "Witness": "reporting.outcome",
    "additive_contract": "contracts.contract",
    "anonymity": "published.k_anonymity",
    "attack": "attacks.black_box",
    "attack_all": "registry",
    "attack_timing": "attacks.timing",
    "attribute_attack": "published.membership",
    "audit_accountant": "contracts.accountant",
    "audit_one_run": "attacks.canary",
    "background_attack": "published.k_anonymity",
    "claim_of": "claims.priced",
    "compare": "published.masking",
    "differencing": "published.reconstruction",
    "draw_inclusion": "attacks.canary",
    "entries": "registry",
    "generalize": "published.masking",
    "homogeneity_attack": "published.k_anonymity",
    "mask": "published.masking",
    "measure_unicity": "published.trajectories",
    "membership_attack": "published.membership",
    "score_by_marginals": "published.membership",
    "reconstruct": "published.reconstruction",
    "reconstruction_attack": "published.reconstruction",
    "register": "registry",
    "reidentify_by_degrees": "published.degrees",
    "score_genomes": "published.genomes",
    "search": "attacks.pilot",
    "statistic_contract": "contracts.statistic_contract",
    "step_contract": "contracts.step_contract",
    "suppress": "published.masking",
    "trainer_contract": "contracts.trainer",
}
__all__ = [
    "AccountantAudit",
    "Canaries",
    "Claim",
    "Contract",
    "OneRun",
    "Outcome",
    "Proposal",
    "Trainer",
    "TrainingContract",
    "Verdict",
    "Witness",
    "additive_contract",
    "anonymity",
    "attack",
    "attack_all",
    "attack_timing",
    "attribute_attack",
    "audit_accountant",
    "audit_one_run",
    "background_attack",
    "claim_of",
    "compare",
    "differencing",
    "draw_inclusion",
    "entries",
    "generalize",
    "homogeneity_attack",
    "mask",
    "measure_unicity",
    "membership_attack",
    "neighbors",
    "reconstruct",
    "reconstruction_attack",
    "register",
    "reidentify_by_degrees",
    "score_by_marginals",
    "score_genomes",
    "search",
    "statistic_contract",
    "step_contract",
    "suppress",
    "trainer_contract",
]
__getattr__, __dir__ = loaded_when_used(
    __name__,
    _NAMES,
    {"neighbors": "claims.neighbors"},
    renamed={"generalise": "generalize", "neighbours": "neighbors"},
)
