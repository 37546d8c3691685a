# SPDX-License-Identifier: Apache-2.0
#
# Trains one family with each optimizer that train_reference.py does not, in f64, and writes
# expected/optimizers.json. Those that PyTorch lacks stand here as the formulas of their papers. PyTorch's
# Muon orthogonalizes in bfloat16; here its own function computes in the parameters' type.
import inspect

import torch
import torch.optim._muon

import train_reference

LEARNING_RATE = 1e-3


class Lamb(torch.optim.Optimizer):
    """You et al. 2020 (arXiv 1904.00962), algorithm 2; phi is the identity, the ratio within bounds."""

    def __init__(self, groups, lr, betas=(0.9, 0.999), eps=1e-6, bounds=(0.0, 10.0)):
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "bounds": bounds, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for x in group["params"]:
                state = self.state[x]
                if not state:
                    state.update(step=0, m=torch.zeros_like(x), v=torch.zeros_like(x))
                state["step"] += 1
                state["m"] = beta1 * state["m"] + (1 - beta1) * x.grad
                state["v"] = beta2 * state["v"] + (1 - beta2) * x.grad ** 2
                m = state["m"] / (1 - beta1 ** state["step"])
                v = state["v"] / (1 - beta2 ** state["step"])
                update = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * x
                norms = x.norm().item(), update.norm().item()
                ratio = min(max(norms[0] / norms[1], group["bounds"][0]), group["bounds"][1]) if all(norms) else 1.0
                x -= group["lr"] * ratio * update


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023 (arXiv 2302.06675), algorithm 2."""

    def __init__(self, groups, lr, betas=(0.9, 0.99)):
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for x in group["params"]:
                state = self.state[x]
                m = state.setdefault("m", torch.zeros_like(x))
                update = (beta1 * m + (1 - beta1) * x.grad).sign()
                x -= group["lr"] * (update + group["weight_decay"] * x)
                state["m"] = beta2 * m + (1 - beta2) * x.grad


source = inspect.getsource(torch.optim._muon._zeropower_via_newtonschulz)
assert source.count("torch.bfloat16") == 1
exec(source.replace("torch.bfloat16", "grad.dtype"), vars(torch.optim._muon))


class MuonForMatrices(torch.optim.Optimizer):
    """PyTorch's Muon for matrices and its AdamW for the rest, as its documentation advises."""

    def __init__(self, groups, lr, **options):
        super().__init__(groups, {"lr": lr})
        self.parts = []
        for group in self.param_groups:
            decay = group["weight_decay"]
            matrices = [p for p in group["params"] if p.dim() == 2]
            others = [p for p in group["params"] if p.dim() != 2]
            if matrices:
                self.parts.append(torch.optim.Muon(matrices, lr=lr, weight_decay=decay, **options))
            if others:
                self.parts.append(torch.optim.AdamW(others, lr=lr, weight_decay=decay))

    @torch.no_grad()
    def step(self):
        for part in self.parts:
            part.step()


def decaying_matrices(make):
    def of(module):
        parameters = list(module.parameters())
        return make([{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.01},
                     {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}])
    return of


def decaying_all(make):
    return lambda module: make([{"params": list(module.parameters()), "weight_decay": 0.01}])


OPTIMIZERS = {
    "lamb": lambda groups: Lamb(groups, lr=0.01),
    "adam": lambda groups: torch.optim.Adam(groups, lr=LEARNING_RATE),
    "adagrad": lambda groups: torch.optim.Adagrad(groups, lr=0.01, lr_decay=0.1),
    "rmsprop": lambda groups: torch.optim.RMSprop(groups, lr=LEARNING_RATE, momentum=0.5),
    "nadam": lambda groups: torch.optim.NAdam(groups, lr=LEARNING_RATE),
    "nadam_constant": lambda groups: torch.optim.NAdam(groups, lr=LEARNING_RATE, momentum_decay=0.0),
    "lion": lambda groups: Lion(groups, lr=LEARNING_RATE),
    # In f64, too, with the bounds that f32 has.
    "adafactor": lambda groups: torch.optim.Adafactor(groups, lr=0.01, eps=(torch.finfo(torch.float32).eps, 1e-3)),
    "muon": lambda groups: MuonForMatrices(groups, lr=LEARNING_RATE),
    "muon_matched": lambda groups: MuonForMatrices(groups, lr=LEARNING_RATE, nesterov=False, momentum=0.9,
                                                   adjust_lr_fn="match_rms_adamw"),
}
# Matrices and biases in one run of parameters.
TOGETHER = {
    "adafactor_together": OPTIMIZERS["adafactor"],
    "muon_together": OPTIMIZERS["muon"],
}

if __name__ == "__main__":
    kinds = {kind: decaying_matrices(make) for kind, make in OPTIMIZERS.items()}
    kinds.update({kind: decaying_all(make) for kind, make in TOGETHER.items()})
    train_reference.record("optimizers", "mlp_gelu", kinds)
