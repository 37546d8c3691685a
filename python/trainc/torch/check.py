# SPDX-License-Identifier: Apache-2.0
"""Holds the first step of a compiled program against PyTorch's own: the loss, every gradient, and what an optimizer of
torch.optim makes of them. Dropout is off in both."""
import contextlib
import copy

import torch
from torch import nn

from trainc.export import modes_kept, train_where_nothing_does
from trainc.torch import tensors

# Of f32, and of 16 bits: how far loss and gradients may be apart, relative to PyTorch's; gradients besides by a share of
# the norm of all, since one that is nothing but rounding has no digit of its own.
_FINE, _COARSE = (2e-4, 3e-2, 1e-4), (5e-2, 0.5, 2e-2)
# Where rounding is more, as of batch norms over few values: so many times PyTorch's own error, which is no rounding above
# this share. A ReLU that rounding turns over is an error that one run of PyTorch may miss: more of them in f64, at parameters
# that are so far away, relative, from one to many times the rounding of f32.
_OWN_ERRORS, _MOST_ROUNDING = 4, 0.3
_NEARBY = [2.0 ** -power for power in range(24, 17, -1)]
# Between two losses of one batch, relative: what no module that keeps nothing from call to call has.
_SAME = 1e-4
_SHOWN = 3
_REASONS = ("  try: the step of a file has the forward operators alone (docs/parameter_rules.md): no torch.no_grad() inside, no hooks, no backward of an\n"
            "       autograd.Function; load() after values of the module were changed, a new\n"
            "       TrainStep after requires_grad or train() and eval(); check=False, which trains all the same")


class CheckError(RuntimeError):
    """The compiled step is not the module's."""


@contextlib.contextmanager
def _without_dropout(module):
    functional = nn.functional
    names = [name for name in vars(functional) if name in ("dropout1d", "dropout2d", "dropout3d") or
             name.endswith("dropout") and not name.startswith("_")]
    kept = {name: getattr(functional, name) for name in [*names, "scaled_dot_product_attention"]}
    attention = kept["scaled_dot_product_attention"]
    recurrent = [(one, one.dropout) for one in module.modules() if isinstance(one, nn.RNNBase)]
    try:
        for name in names:
            setattr(functional, name, lambda values, *_, **__: values)
        functional.scaled_dot_product_attention = lambda query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **others: attention(
            query, key, value, attn_mask, 0.0, is_causal, **others)
        for one, _ in recurrent:
            one.dropout = 0.0
        yield
    finally:
        for name, function in kept.items():
            setattr(functional, name, function)
        for one, share in recurrent:
            one.dropout = share


def _loss_of(module, loss, args, kwargs, y):
    output = next((one for one in torch.utils._pytree.tree_leaves(module(*args, **kwargs)) if isinstance(one, torch.Tensor)))
    return loss(output, y)


def _of_torch(module, loss, args, kwargs, y):
    """Loss and gradients by name. The module, its `.grad`s and PyTorch's random numbers are as before."""
    parameters = {name: one for name, one in module.named_parameters(remove_duplicate=False) if one.requires_grad}
    with modes_kept(module), torch.random.fork_rng(), _without_dropout(module), torch.enable_grad():
        train_where_nothing_does(module)
        value = _loss_of(module, loss, args, kwargs, y)
        gradients = torch.autograd.grad(value, list(parameters.values()), allow_unused=True)
    return value.item(), {name: torch.zeros_like(one) if gradient is None else gradient.to_dense()
                          for (name, one), gradient in zip(parameters.items(), gradients)}


def _check_calls(module, loss, args, kwargs, y, before):
    """Raises CheckError where further calls have another loss than the one `before`."""
    losses = [before]
    with modes_kept(module), _without_dropout(module), torch.enable_grad():
        train_where_nothing_does(module)
        for _ in range(2):
            with torch.random.fork_rng():
                losses.append(_loss_of(module, loss, args, kwargs, y).item())
    if max(losses) - min(losses) > _SAME * max(map(abs, losses)):
        raise CheckError(f"the loss of one batch is {', '.join(f'{one:.6g}' for one in losses)} in calls of the module: it keeps something from call to "
                         "call, and a file has no place for that\n"
                         "  try: what it keeps as an input and an output of the module; check=False, which trains all the same")


def check_evaluation(module, loss, args, kwargs, y, state, own_loss, options):
    """Raises CheckError where PyTorch has another loss than `own_loss` in eval(), with `state` for parameters and buffers."""
    with modes_kept(module), torch.random.fork_rng(), torch.no_grad():
        module.eval()
        expected = _loss_of(lambda *args, **kwargs: torch.func.functional_call(module, state, args, kwargs), loss, args, kwargs, y).item()
    if _faults(own_loss, {}, (expected, {}), None, _tolerances(options, state.values())):
        raise CheckError(f"the loss of evaluate() is {own_loss:.6g}, that of the module in eval() {expected:.6g}: the compiled step switches dropout and "
                         "batch norm alone\n  try: sync(), and the module itself; check=False, which evaluates all the same")


def _apart(found, expected):
    """The norm of the difference, and that of what was found; of one that the program does not have, all of it."""
    if found is None:
        return expected.norm().item(), 0.0
    found = found.to(expected.device, torch.float64).reshape(expected.shape)
    return (found - expected).norm().item(), found.norm().item()


def _in_doubles(module, loss, args, kwargs, y):
    """The same of PyTorch in f64, and at parameters nearby: how far f32 and these are from it is what rounding makes of this
    model and batch. None where it cannot be computed."""
    def wide(value):
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
    try:
        loss = copy.deepcopy(loss).double() if isinstance(loss, nn.Module) else loss
        args, kwargs, y = torch.utils._pytree.tree_map(wide, (args, kwargs, y))
        beside = copy.deepcopy(module).double()
        for one, other in zip(module.parameters(), beside.parameters()):
            for hook in (one._backward_hooks or {}).values():  # which a copy does not have
                other.register_hook(hook)
        exact = _of_torch(beside, loss, args, kwargs, y)
        nearby, values = [], [one.detach().clone() for one in beside.parameters()]
        generator = torch.Generator().manual_seed(0)
        for distance in _NEARBY:
            with torch.no_grad():
                for one, value in zip(beside.parameters(), values):
                    away = 2 * torch.rand(value.shape, generator=generator, dtype=torch.float64).to(value.device) - 1
                    one.copy_(value * (1 + distance * away))
            nearby.append(_of_torch(beside, loss, args, kwargs, y))
        return exact, nearby
    except Exception:  # of the user's module; then f32 has to do
        return None


def _rounding(of_torch, nearby, size):
    """The largest of these distances from the exact value, as far as it is rounding; None where PyTorch's own is more than that."""
    most = _MOST_ROUNDING * size
    return None if of_torch > most else min(max([of_torch, *nearby]), most)


def _tolerances(options, tensors):
    is_fine = options.get("precision") in (None, "f32", "f64") and all(
        one.dtype in (torch.float32, torch.float64) for one in tensors if one.is_floating_point())
    return _FINE if is_fine else _COARSE


def _faults(own_loss, own, of_torch, exact, tolerances):
    """What is further apart than the tolerances, and where `exact` is known than a few times PyTorch's own error."""
    (torch_loss, gradients), (of_loss, of_gradient, of_total) = of_torch, tolerances
    (exact_loss, exact_gradients), nearby = exact or (of_torch, [])
    rounding = _rounding(abs(torch_loss - exact_loss), [abs(loss - exact_loss) for loss, _ in nearby], abs(exact_loss))
    if rounding is None:
        exact_loss, rounding = torch_loss, 0.0
    if not abs(own_loss - exact_loss) <= of_loss * max(abs(exact_loss), 1e-2) + _OWN_ERRORS * rounding:
        return [f"loss of this batch is {own_loss:.6g}, in PyTorch {torch_loss:.6g}"]
    total = sum(one.double().norm().item() ** 2 for one in exact_gradients.values()) ** 0.5
    faults = []
    for name, gradient in exact_gradients.items():
        gradient = gradient.double()
        of_own, torch_norm = _apart(gradients[name], gradient)
        rounding = _rounding(of_own, [_apart(others[name], gradient)[0] for _, others in nearby], gradient.norm().item())
        if rounding is None:
            gradient, rounding = gradients[name].double(), 0.0
        distance, own_norm = _apart(own.get(name), gradient)
        if not distance <= of_gradient * gradient.norm().item() + of_total * total + _OWN_ERRORS * rounding:
            faults.append(f"gradient of '{name}' has norm {own_norm:.4g}, in PyTorch {torch_norm:.4g}, and is {distance:.4g} away from it")
    return faults


def check_gradients(module, loss, args, kwargs, y, model, own_loss, options):
    """`model` has the gradients of this batch, whose loss was `own_loss`. Raises CheckError where PyTorch has others; returns
    whether there was something to compare. `options` are those of trainc."""
    of_torch = expected_loss, expected = _of_torch(module, loss, args, kwargs, y)
    own = tensors.written_by(model.save_gradients)
    if not options.keys().isdisjoint({"freeze", "train_only"}):
        expected = {name: one for name, one in expected.items() if name in own}
        of_torch = expected_loss, expected
    if not (abs(expected_loss) < float("inf") and all(torch.isfinite(one).all() for one in expected.values())):
        return False
    tolerances = _tolerances(options, expected.values())
    faults = _faults(own_loss, own, of_torch, None, tolerances)
    if faults and tolerances is _FINE:
        exact = _in_doubles(module, loss, args, kwargs, y)
        if exact is not None:
            (exact_loss, gradients), nearby = exact
            exact = (exact_loss, {name: gradients[name] for name in expected}), nearby
            faults = _faults(own_loss, own, of_torch, exact, tolerances)
    if faults:
        more = f"; so are {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise CheckError("the compiled step is not the module's: the " + "; the ".join(faults[:_SHOWN]) + f"{more}\n{_REASONS}")
    if "buffer" not in options:
        _check_calls(module, loss, args, kwargs, y, expected_loss)
    return True


class UpdateCheck:
    """What an optimizer of torch.optim would make of the gradients of the library: taken before the update, compared after."""

    def __init__(self, module, optimizer, model, settings):
        parameters, gradients = tensors.written_by(model.save_state_dict), tensors.written_by(model.save_gradients)
        names = [name for name, one in module.named_parameters() if one.requires_grad and name in gradients]
        self._model, self._kind = model, type(optimizer).__name__
        self._before = {name: parameters[name] for name in names}
        self._after = {name: nn.Parameter(parameters[name].clone()) for name in names}
        group = optimizer.param_groups[0]
        own = {key: group[key] for key in optimizer.defaults if key not in ("fused", "foreach", "capturable", "decoupled_weight_decay")}
        own.update({key: value for key, value in settings.items() if key in own}, lr=model.get("learning_rate"))
        if "betas" in own:
            own["betas"] = tuple(settings.get(f"beta{i}", value) for i, value in enumerate(own["betas"], 1))
        if isinstance(own.get("eps"), tuple):
            own["eps"] = tuple(settings.get(f"eps{i}", value) for i, value in enumerate(own["eps"], 1))
        beside = type(optimizer)(list(self._after.values()), **own)
        originals = dict(module.named_parameters())
        for name, parameter in self._after.items():
            parameter.grad = gradients[name].reshape(parameter.shape)
            state = optimizer.state.get(originals[name], {})
            beside.state[parameter].update({slot: self._as(slot, value, parameter) for slot, value in state.items()})
        for name, clip in (("clip_norm", nn.utils.clip_grad_norm_), ("clip_value", nn.utils.clip_grad_value_)):
            if 0 < model.get(name) < float("inf"):
                clip(self._after.values(), model.get(name))
        beside.step()

    @staticmethod
    def _as(slot, value, parameter):
        if not isinstance(value, torch.Tensor):
            return value
        return value.detach().cpu().clone() if slot in ("step", "mu_product") else value.detach().to(parameter, copy=True)

    def compare(self):
        """Raises CheckError where the parameters are others now."""
        if not self._model.last["applied"]:
            return
        own = tensors.written_by(self._model.save_state_dict)
        for name, expected in self._after.items():
            expected, before = expected.detach().double(), self._before[name].double()
            distance, _ = _apart(own[name], expected)
            step = (expected - before).norm().item()
            if not distance <= 1e-2 * step + 1e-6 * expected.norm().item():
                found = (own[name].double() - before).norm().item()
                raise CheckError(f"the compiled step is not that of torch.optim.{self._kind}: it changes '{name}' by {found:.4g} in norm, PyTorch by "
                                 f"{step:.4g}\n  try: load() after the optimizer was changed; check=False, which trains all the same")
