# SPDX-License-Identifier: Apache-2.0
"""Optimizers of torch.optim: their settings by the library's names, and their states."""
import torch

from trainc.compiler import CompileError

# By the optimizer's name, what a group has that trainc has under the same name.
_SETTINGS = {"adam": {"eps", "weight_decay"}, "adamw": {"eps", "weight_decay"}, "sgd": {"momentum", "dampening", "nesterov", "weight_decay"},
             "adagrad": {"lr_decay", "eps", "weight_decay"}, "rmsprop": {"alpha", "eps", "momentum", "weight_decay"},
             "nadam": {"eps", "momentum_decay", "weight_decay"}, "adafactor": {"beta2_decay", "d", "weight_decay"}}
# How a step is computed, and not what.
_WAYS = {"foreach", "fused", "capturable", "differentiable"}


def name_of(optimizer):
    """The name that trainc has for an optimizer of torch.optim. Raises CompileError."""
    kind = type(optimizer)
    if getattr(torch.optim, kind.__name__, None) is not kind:
        raise CompileError(f"the optimizer {kind.__module__}.{kind.__name__} is none of torch.optim\n  try: one of those, or the name of one of trainc's")
    name = kind.__name__.lower()
    if name not in _SETTINGS:
        raise CompileError(f"torch.optim's {name} is none that trainc has\n  try: one of {', '.join(sorted(_SETTINGS))}")
    return name


def settings_of(optimizer):
    """Hyperparameters by the library's names. What trainc has no name for must be off. Raises CompileError."""
    name = name_of(optimizer)
    if len(optimizer.param_groups) != 1:
        raise CompileError("an optimizer with several groups of parameters\n  try: its name, compile={\"group\": \"head=fc\\\\..*\"} and "
                           "step(x, y, learning_rate_of_head=1e-2)")
    group, settings, refused = optimizer.param_groups[0], {}, []
    for key in optimizer.defaults:  # others are a scheduler's
        value = group[key]
        if key == "lr":
            settings["learning_rate"] = float(value)
        elif key == "betas" and name in ("adam", "adamw", "nadam"):
            settings["beta1"], settings["beta2"] = map(float, value)
        elif key == "eps" and name == "adafactor":
            settings.update({f"eps{i}": float(one) for i, one in enumerate(value, 1) if one is not None})
        elif key in _SETTINGS[name]:
            settings[key] = float(value)
        elif key == "decoupled_weight_decay" and name in ("adam", "adamw"):
            if value != (name == "adamw"):
                refused.append(f"{key}={value}")
        elif key not in _WAYS and value:
            refused.append(f"{key}={value}")
    if refused:
        raise CompileError(f"torch.optim's {name} with {', '.join(refused)}, which trainc does not have")
    return settings


def states_of(module, optimizer):
    """As the library reads them: "state.fc.weight.exp_avg"."""
    return {f"state.{name}.{slot}": value for name, parameter in module.named_parameters(remove_duplicate=False)
            for slot, value in optimizer.state.get(parameter, {}).items() if isinstance(value, torch.Tensor)}


def take_states(module, optimizer, states):
    """Puts states into the optimizer, in the types and places that it would have them in itself."""
    named = {}
    for key, value in states.items():
        name, _, slot = key.removeprefix("state.").rpartition(".")
        named.setdefault(name, {})[slot] = value
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if name not in named or not parameter.requires_grad:
            continue
        group = next(group for group in optimizer.param_groups if any(one is parameter for one in group["params"]))
        place = parameter.device if group.get("fused") or group.get("capturable") else "cpu"
        state = {slot: value.to(place) if slot == "step" else value.to(parameter) for slot, value in named[name].items()}
        if name_of(optimizer) == "nadam":
            state["mu_product"] = _mu_product(group, int(state["step"])).to(state["step"].device)
        optimizer.state[parameter] = state


def _mu_product(group, steps):
    """What torch.optim.NAdam multiplies up from step to step; the compiled one follows from the number of steps."""
    product = 1.0
    for step in range(1, steps + 1):
        product *= group["betas"][0] * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
    return torch.tensor(product)
