"""The platform attacks itself, and anything you give it.

>>> import mosha
>>> import numpy as np
>>> def noisy_count(rows, size):
...     return len(rows) + np.random.default_rng().laplace(scale=0.5, size=size)
>>> verdict = mosha.audit.attack(
...     noisy_count, neighbours=([], ["Ada"]), claim=mosha.guarantees.Pure(1), runs=20_000, batch=True
... )
>>> verdict.outcome
<Outcome.BROKEN: 'broken'>
"""

from __future__ import annotations

from mosha.audit.black_box import attack as attack
from mosha.audit.claim import Claim as Claim
from mosha.audit.claim import claim_of as claim_of
from mosha.audit.verdict import Outcome as Outcome
from mosha.audit.verdict import Verdict as Verdict
from mosha.audit.verdict import Witness as Witness
