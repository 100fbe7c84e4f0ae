"""One DP round of 100 clients in Flower's simulation and in pfl: scripts that run in the peers' own environments.

Each prints CPU seconds of a steady round and the peak memory of its processes as JSON.
"""

FLOWER = r"""
import json, os, sys, time
os.environ.update(FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1", OMP_NUM_THREADS="1")
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0")
import logging, warnings
warnings.simplefilter("ignore")
from flwr.app import ArrayRecord, Array, Message, MetricRecord, RecordDict, Context
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg, DifferentialPrivacyServerSideFixedClipping
from flwr.simulation import run_simulation
import numpy as np
CLIENTS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
TICK = os.sysconf("SC_CLK_TCK")

def tree():
    parents, spent, memory = {}, {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
            parents[int(pid)] = int(fields[1])
            spent[int(pid)] = sum(map(int, fields[11:15])) / TICK
            memory[int(pid)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            pass
    mine = {os.getpid()}
    while True:
        more = {p for p, parent in parents.items() if parent in mine} - mine
        if not more:
            return sum(spent[p] for p in mine if p in spent), sum(memory.get(p, 0) for p in mine)
        mine |= more

client = ClientApp()

@client.train()
def train(message: Message, context: Context):
    import torch
    torch.set_num_threads(1)
    node = context.node_config["partition-id"]
    generator = torch.Generator().manual_seed(node)
    inputs = torch.randn(100, 64, generator=generator); targets = torch.randint(0, 10, (100,), generator=generator)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        optimiser.zero_grad()
        rows = slice(20 * step, 20 * step + 20)
        torch.nn.functional.cross_entropy(model(inputs[rows]), targets[rows]).backward()
        optimiser.step()
    told = MetricRecord({"num-examples": 100})
    return Message(RecordDict({"arrays": ArrayRecord(model.state_dict()), "metrics": told}), reply_to=message)

server = ServerApp()
seen = []

@server.main()
def main(grid, context):
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    inner = FedAvg(fraction_train=1.0, fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS)
    strategy = DifferentialPrivacyServerSideFixedClipping(
        inner, noise_multiplier=1.0, clipping_norm=1.0, num_sampled_clients=CLIENTS)
    strategy.start(grid=grid, initial_arrays=ArrayRecord(model.state_dict()), num_rounds=ROUNDS,
                   evaluate_fn=lambda number, arrays: seen.append(tree()))

keep, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
os.dup2(null, 1); os.dup2(null, 2)
run_simulation(server_app=server, client_app=client, num_supernodes=CLIENTS,
               backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0}, "init_args": {"num_cpus": 2}})
times = [after[0] - before[0] for before, after in zip(seen[1:], seen[2:])]
os.write(keep, json.dumps({"cpu": min(times), "memory": max(m for _, m in seen)}).encode())
"""

PFL = r"""
import json, os, resource, sys, time
import numpy as np, torch
torch.set_num_threads(1)
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from pfl.privacy.gaussian_mechanism import GaussianMechanism
from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism
CLIENTS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
generator = torch.Generator().manual_seed(1)
inputs = torch.randn(CLIENTS, 100, 64, generator=generator)
targets = torch.randint(0, 10, (CLIENTS, 100), generator=generator)

class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    def forward(self, x):
        return self.inner(x)
    def loss(self, x, y, eval=False):
        return torch.nn.functional.cross_entropy(self(x), y)
    def metrics(self, x, y, eval=False):
        return {"loss": Weighted(0.0, len(x))}

module = Network()
model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), 1.0))
sampler = get_user_sampler("minimize_reuse", range(CLIENTS))
data = FederatedDataset(lambda i: Dataset(raw_data=[inputs[i], targets[i]]), sampler)
noise = CentrallyAppliedPrivacyMechanism(GaussianMechanism(1.0, 1.0))
backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=[noise])
times = []

class Clock(TrainingProcessCallback):
    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        times.append(time.process_time())
        return False, Metrics()

keep, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
os.dup2(null, 1)
FederatedAveraging().run(
    algorithm_params=NNAlgorithmParams(central_num_iterations=ROUNDS, evaluation_frequency=10**9,
                                       train_cohort_size=CLIENTS, val_cohort_size=0),
    backend=backend, model=model,
    model_train_params=NNTrainHyperParams(local_num_epochs=1, local_learning_rate=0.1, local_batch_size=20),
    callbacks=[Clock()])
spent = [b - a for a, b in zip(times, times[1:])]
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
os.write(keep, json.dumps({"cpu": min(spent), "memory": memory}).encode())
"""
