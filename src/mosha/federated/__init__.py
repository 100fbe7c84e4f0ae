"""Federated learning and analytics: many parties, one model, a promise for each client.

    ServerSide       clip each update, noise the sum at the server
    ClientSide       clip and noise on the client; every client pays from an account of its own
    Distributed      every client adds a share of the noise, secure aggregation opens the noisy sum alone
    DistributedExamples     the same for each example: silos add up clipped gradients, with one noise in shares
    ExampleLevel     clients that train with DP-SGD, each paying for its examples from an account of its own
    train            pay for all rounds of a plan, then run them on a federation
    Simulation       a federation inside one process (torch)
    flower           the same rounds on Flower, over a network
    histogram, mean, quantile, heavy_hitters      questions without training, opened by secure aggregation
    accuracy         how a model does on the clients, asked the same way
    KeyHolder        sums under encryption, beside the masks of secure aggregation
    flower_ask, flower_answer      the same questions on Flower

Names are loaded when they are first used; torch and Flower only where they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.federated.analytics import Analytics as Analytics
    from mosha.federated.analytics import heavy_hitters as heavy_hitters
    from mosha.federated.analytics import histogram as histogram
    from mosha.federated.analytics import mean as mean
    from mosha.federated.analytics import quantile as quantile
    from mosha.federated.checkpoint import Checkpoint as Checkpoint
    from mosha.federated.evaluation import accuracy as accuracy
    from mosha.federated.federation import Ask as Ask
    from mosha.federated.federation import Block as Block
    from mosha.federated.federation import Federation as Federation
    from mosha.federated.flower.example_sums import flower_examples as flower_examples
    from mosha.federated.flower.mod import flower_mod as flower_mod
    from mosha.federated.flower.questions import flower_answer as flower_answer
    from mosha.federated.flower.questions import flower_ask as flower_ask
    from mosha.federated.flower.strategy import flower as flower
    from mosha.federated.flower.wrapped_strategy import wrap_strategy as wrap_strategy
    from mosha.federated.optimizer import FedAdagrad as FedAdagrad
    from mosha.federated.optimizer import FedAdam as FedAdam
    from mosha.federated.optimizer import FedAvg as FedAvg
    from mosha.federated.optimizer import FedYogi as FedYogi
    from mosha.federated.picture import accuracy_against_epsilon as accuracy_against_epsilon
    from mosha.federated.plans.client_side import ClientSide as ClientSide
    from mosha.federated.plans.example_level import ExampleLevel as ExampleLevel
    from mosha.federated.plans.example_level import average_rounds as average_rounds
    from mosha.federated.plans.server_side import ServerSide as ServerSide
    from mosha.federated.plans.shared_noise import Distributed as Distributed
    from mosha.federated.plans.shared_noise_of_examples import DistributedExamples as DistributedExamples
    from mosha.federated.secure.client import SecureClient as SecureClient
    from mosha.federated.secure.homomorphic import KeyHolder as KeyHolder
    from mosha.federated.secure.homomorphic import add_encrypted as add_encrypted
    from mosha.federated.secure.homomorphic import encrypt_numbers as encrypt_numbers
    from mosha.federated.secure.homomorphic import sum_under_encryption as sum_under_encryption
    from mosha.federated.secure.server import SecureServer as SecureServer
    from mosha.federated.secure.session import Session as Session
    from mosha.federated.secure.simulation import securely_summed as securely_summed
    from mosha.federated.silos import ExampleSums as ExampleSums
    from mosha.federated.silos import Silos as Silos
    from mosha.federated.simulator import Simulation as Simulation
    from mosha.federated.training import History as History
    from mosha.federated.training import Round as Round
    from mosha.federated.training import train as train
    from mosha.federated.weights import Weights as Weights
    from mosha.mechanisms.plans.adaptive_clip import AdaptiveClip as AdaptiveClip

_NAMES = {
    "AdaptiveClip": "plans.server_side",
    "Analytics": "analytics",
    "Ask": "federation",
    "Block": "federation",
    "Checkpoint": "checkpoint",
    "ClientSide": "plans.client_side",
    "Distributed": "plans.shared_noise",
    "DistributedExamples": "plans.shared_noise_of_examples",
    "ExampleLevel": "plans.example_level",
    "ExampleSums": "silos",
    "FedAdagrad": "optimizer",
    "FedAdam": "optimizer",
    "FedAvg": "optimizer",
    "FedYogi": "optimizer",
    "Federation": "federation",
    "History": "training",
    "KeyHolder": "secure.homomorphic",
    "Round": "training",
    "SecureClient": "secure.client",
    "SecureServer": "secure.server",
    "ServerSide": "plans.server_side",
    "Session": "secure.session",
    "Silos": "silos",
    "Simulation": "simulator",
    "Weights": "weights",
    "accuracy": "evaluation",
    "accuracy_against_epsilon": "picture",
    "add_encrypted": "secure.homomorphic",
    "average_rounds": "plans.example_level",
    "encrypt_numbers": "secure.homomorphic",
    "flower": "flower.strategy",
    "flower_answer": "flower.questions",
    "flower_ask": "flower.questions",
    "flower_examples": "flower.example_sums",
    "flower_mod": "flower.mod",
    "heavy_hitters": "analytics",
    "histogram": "analytics",
    "sum_under_encryption": "secure.homomorphic",
    "mean": "analytics",
    "quantile": "analytics",
    "securely_summed": "secure.simulation",
    "train": "training",
    "wrap_strategy": "flower.wrapped_strategy",
}
__all__ = sorted(_NAMES)  # noqa: PLE0605
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES, renamed={"averaged": "average_rounds"})
