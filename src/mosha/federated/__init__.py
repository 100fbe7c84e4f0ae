"""Federated learning and analytics: many parties, one model, a promise for each client.

    ServerSide       clip each update, noise the sum at the server
    ClientSide       clip and noise on the client; every client pays from an account of its own
    Distributed      every client adds a share of the noise, secure aggregation opens the noisy sum alone
    ExampleLevel     clients that train with DP-SGD, each paying for its examples from an account of its own
    train            pay for all rounds of a plan, then run them on a federation
    Simulation       a federation inside one process (torch)
    flower           the same rounds on Flower, over a network
    histogram, mean, quantile      questions without training, opened by secure aggregation
    flower_ask, flower_answer      the same questions on Flower

Names are loaded when they are first used; torch and Flower only where they are needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mosha.core.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.federated.analytics import Analytics as Analytics
    from mosha.federated.analytics import histogram as histogram
    from mosha.federated.analytics import mean as mean
    from mosha.federated.analytics import quantile as quantile
    from mosha.federated.checkpoint import Checkpoint as Checkpoint
    from mosha.federated.client_side import ClientSide as ClientSide
    from mosha.federated.example_level import ExampleLevel as ExampleLevel
    from mosha.federated.example_level import averaged as averaged
    from mosha.federated.federation import Ask as Ask
    from mosha.federated.federation import Block as Block
    from mosha.federated.federation import Federation as Federation
    from mosha.federated.flower.mod import flower_mod as flower_mod
    from mosha.federated.flower.questions import flower_answer as flower_answer
    from mosha.federated.flower.questions import flower_ask as flower_ask
    from mosha.federated.flower.strategy import flower as flower
    from mosha.federated.optimizer import FedAdam as FedAdam
    from mosha.federated.optimizer import FedAvg as FedAvg
    from mosha.federated.picture import accuracy_against_epsilon as accuracy_against_epsilon
    from mosha.federated.secure.client import SecureClient as SecureClient
    from mosha.federated.secure.server import SecureServer as SecureServer
    from mosha.federated.secure.session import Session as Session
    from mosha.federated.secure.simulation import securely_summed as securely_summed
    from mosha.federated.server_side import ServerSide as ServerSide
    from mosha.federated.shared_noise import Distributed as Distributed
    from mosha.federated.simulator import Simulation as Simulation
    from mosha.federated.training import History as History
    from mosha.federated.training import Round as Round
    from mosha.federated.training import train as train
    from mosha.federated.weights import Weights as Weights
    from mosha.mechanisms.adaptive_clip import AdaptiveClip as AdaptiveClip

_NAMES = {
    "AdaptiveClip": "server_side",
    "Analytics": "analytics",
    "Ask": "federation",
    "Block": "federation",
    "Checkpoint": "checkpoint",
    "ClientSide": "client_side",
    "Distributed": "shared_noise",
    "ExampleLevel": "example_level",
    "FedAdam": "optimizer",
    "FedAvg": "optimizer",
    "Federation": "federation",
    "History": "training",
    "Round": "training",
    "SecureClient": "secure.client",
    "SecureServer": "secure.server",
    "ServerSide": "server_side",
    "Session": "secure.session",
    "Simulation": "simulator",
    "Weights": "weights",
    "accuracy_against_epsilon": "picture",
    "averaged": "example_level",
    "flower": "flower.strategy",
    "flower_answer": "flower.questions",
    "flower_ask": "flower.questions",
    "flower_mod": "flower.mod",
    "histogram": "analytics",
    "mean": "analytics",
    "quantile": "analytics",
    "securely_summed": "secure.simulation",
    "train": "training",
}
__all__ = sorted(_NAMES)  # noqa: PLE0605
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES)
