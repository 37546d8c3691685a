# SPDX-License-Identifier: Apache-2.0
"""Forward pass, backward pass and update of a module as one call of a compiled model."""
import os
import tempfile
import threading
import warnings
from collections.abc import Mapping

import numpy
import torch

from trainc.compiler import CompileError, library_of
from trainc.export import export_without_values, warn_of_modes
from trainc.model import Model, ModelError, ModelWarning
from trainc.torch import losses, optimizers, tensors
from trainc.torch.check import CheckError, UpdateCheck, check_evaluation, check_gradients


def _inputs_in(x):
    """Positional and named inputs: one tensor, a tuple or list of several, or a dictionary by name."""
    if isinstance(x, Mapping):
        return (), dict(x)
    return (tuple(x) if isinstance(x, (tuple, list)) else (x,)), {}


def _as_tensors(values):
    return torch.utils._pytree.tree_map(lambda one: torch.from_numpy(one) if isinstance(one, numpy.ndarray) else one, values)


class TrainStep:
    """Forward pass, backward pass and update of a module as one compiled call.

    module          what is trained; its parameters with requires_grad, in the modes that its parts are in
    loss            of the module's output: a loss of torch.nn with its settings, or text for `--loss`, such as
                    "cross_entropy" of the last axis, or "OUTPUT=mse" where there are several outputs
    optimizer       "adamw", "sgd", ... (docs/trainc.md), or one of torch.optim: its kind and its hyperparameters, which a
                    scheduler may change
    example         (x, y): inputs and labels of a batch; x is a tensor or array, a tuple of them or a dictionary by name;
                    y is None where the module returns its loss
    micro_batches   accumulate() so often less one, then a call: a step over all of them
    threads, seed   as of trainc.Model
    check           hold the first step after a load() against PyTorch's: loss, gradients, and the update of an optimizer of
                    torch.optim. Costs a step of PyTorch; with dropout also a second program, which has none
    settings        hyperparameters: learning_rate=1e-3, weight_decay=0.01, clip_norm=1
    compile         further options of trainc, as a dictionary: {"precision": "bf16"}

    What is compiled is kept in a cache (trainc.compile). Raises ExportError and CompileError, which list what is missing,
    and CheckError; warns with CompileWarning and ModelWarning.
    """

    def __init__(self, module, loss, optimizer="adamw", *, example, micro_batches=1, threads=0, seed=0, check=True, compile=None, **settings):
        warn_of_modes(module)
        self.module = module
        self._torch_optimizer = optimizer if isinstance(optimizer, torch.optim.Optimizer) else None
        self._settings = settings
        if self._torch_optimizer is not None:
            settings = {**optimizers.settings_of(optimizer), **settings}
            given = {id(one) for one in optimizer.param_groups[0]["params"] if one.requires_grad}
            if given != {id(one) for one in module.parameters() if one.requires_grad}:
                raise CompileError("the optimizer's parameters are not those of the module that have requires_grad\n  try: "
                                   "requires_grad_(False) for those that it does not have")
            optimizer = optimizers.name_of(optimizer)
        self._optimizer_name = optimizer
        if not isinstance(example, (tuple, list)) or len(example) != 2:
            raise CompileError("example: expected (x, y), inputs and labels\n  try: example=((ids, mask), y) where there are several inputs; (x, None) "
                               "where the module returns its loss")
        x, y = example
        self._example = _as_tensors((*_inputs_in(x), y))
        self._options = {"decay": ".*", **(compile or {})}  # PyTorch's optimizers decay every parameter
        self._run = {"threads": threads, "seed": seed}
        folder, self._without_dropout = self._compiled(loss, check)
        self.model = Model(folder, micro_batches=micro_batches, **self._run)
        if len(self.model.labels) > 1:
            raise CompileError(f"there are several labels: {', '.join(self.model.labels)}\n  try: trainc.compile, and a dictionary of arrays")
        self._names = [name for name in self.model.inputs if name not in self.model.labels]
        self._loss = (losses.of_text(loss) if isinstance(loss, str) else loss) if check else None
        self._micro_batches = micro_batches
        self.model.set(**settings)
        self._taken = {}  # hyperparameters of the optimizer of torch.optim
        self._passes = 0  # since the module was written or read
        self._lock = threading.RLock()  # a step is several calls of the model
        self.load()

    def __reduce_ex__(self, protocol):
        raise TypeError("a TrainStep is neither copied nor pickled: it holds a compiled model\n  try: sync(), then a TrainStep of the copy")

    def _compiled(self, loss, check):
        """The folder of the program, and that of one without dropout to check it by, where that is another."""
        args, kwargs, y = self._example
        options = {"optimizer": self._optimizer_name, "is_temporary": True, **self._options}
        with tempfile.TemporaryDirectory(prefix="trainc-") as work:
            path, beside = os.path.join(work, "module.onnx"), os.path.join(work, "without_dropout.onnx")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                axes, drops = export_without_values(self.module, args, path, kwargs=kwargs, without_dropout=beside)
            options["loss"] = losses.text_of(loss, axes, y)
            folder = library_of(path, **options)
            if not (check and drops):
                return folder, None
            with warnings.catch_warnings():  # the same again
                warnings.simplefilter("ignore")
                return folder, library_of(beside, **options)

    def load(self, optimizer=None):
        """Takes parameters and buffers from the module, and state and hyperparameters from the optimizer of torch.optim that
        was given at first, or from `optimizer`. What was accumulated is forgotten."""
        optimizer = self._checked(optimizer)
        self._load_module(self.model)
        self._loaded, self._taken = optimizer, {}
        if optimizer is not None:
            self._take_settings()
            states = optimizers.states_of(self.module, optimizer)
            if states:
                tensors.give_to(self.model.load_optimizer_state, states)
        self._passes = self._accumulated = 0
        self._unchecked_gradients = self._unchecked_evaluation = self._loss is not None
        # PyTorch's optimizer has one rate and decay for all
        self._unchecked_update = self._loss is not None and optimizer is not None and self._options["decay"] == ".*" and "group" not in self._options

    def _take_settings(self):
        """What a scheduler has changed since: the rate, and with some the momentum. What the step was made with stays."""
        now = optimizers.settings_of(self._loaded)
        self.model.set(**{name: value for name, value in now.items()
                          if value != self._taken.get(name) and name not in self._settings})
        self._taken = now

    def _own(self):
        """All of the module that the graph may read: buffers of every type too, and those that a state dict leaves out."""
        return {name: one for values in (self.module.named_parameters, self.module.named_buffers)
                for name, one in values(remove_duplicate=False)}

    def _load_module(self, model):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tensors.give_to(model.load_state_dict, self._own())
        for warning in told:  # one text has all that the call says; what is lacking would be zeros
            if "initial values have" in str(warning.message):
                raise ModelError(4, str(warning.message))

    def _checked(self, optimizer):
        optimizer = optimizer or self._torch_optimizer
        if optimizer is not None and type(optimizer).__name__.lower() != self._optimizer_name:
            raise ModelError(2, f"the step trains with {self._optimizer_name}; {type(optimizer).__name__} has other states\n"
                                "  try: an optimizer of that kind")
        return optimizer

    def _batch(self, x, y):
        args, batch = _inputs_in(x)
        if args:
            if len(args) != len(self._names):
                raise ModelError(2, f"a batch has {len(self._names)} inputs ({', '.join(self._names)}); found {len(args)}")
            batch = dict(zip(self._names, args))
        if y is not None:
            if not self.model.labels:
                raise ModelError(2, "there are labels, and the loss takes none")
            batch[self.model.labels[0]] = y
        return batch

    def __call__(self, x, y=None, **settings):
        """A step over a batch, and what was accumulated before. Returns the loss of the step. Threads take turns. A step that
        Ctrl-C ends forgets what was accumulated."""
        with self._lock:
            try:
                return self._step(x, y, settings)
            except KeyboardInterrupt:
                self.discard()
                raise

    def _step(self, x, y, settings):
        if self._loaded is not None:
            self._take_settings()
        self.model.set(**settings)
        self._accumulate(x, y)
        applied_before = self.model.last is None or self.model.last["applied"]
        check = self._update_check({**self._settings, **settings})
        loss = self.model.update()
        self._accumulated = 0
        if self._loaded is not None:
            self._loaded._opt_called = True  # schedulers look whether it stepped
        if check is not None:
            check.compare()
        if not self.model.last["applied"] and applied_before:
            warnings.warn(self._not_finite(x, y), ModelWarning, stacklevel=3)
        return loss

    def _update_check(self, settings):
        if not self._unchecked_update:
            return None
        self._unchecked_update = False
        try:
            return UpdateCheck(self.module, self._loaded, self.model, settings)
        except Exception as error:  # of PyTorch's optimizer
            self._warn_of_no_check(error)
            return None

    @staticmethod
    def _warn_of_no_check(error, what="step"):
        warnings.warn(f"the first {what} was not compared with PyTorch's, which has an error: {error}\n  try: check=False, which compares nothing",
                      ModelWarning, stacklevel=5)

    def accumulate(self, x, y=None):
        """Forward and backward pass of a micro-batch of several; a call makes the step with the last of them. Returns its loss."""
        if self._accumulated + 1 >= self._micro_batches:
            raise ModelError(2, ("the step has one micro-batch" if self._micro_batches == 1 else
                                 f"of the step's {self._micro_batches} micro-batches only the last is left") + "\n  try: the step itself for it; "
                                "TrainStep(..., micro_batches=N), which has N; discard()")
        with self._lock:
            return self._accumulate(x, y)

    def _accumulate(self, x, y):
        batch = self._batch(x, y)
        if self._unchecked_gradients and (self._without_dropout or self._micro_batches > 1):
            with Model(self._without_dropout or self.model.folder, **self._run) as beside:
                self._load_module(beside)
                self._check(x, y, beside, beside.forward_backward(batch))
        loss = self.model.forward_backward(batch)
        self._passes += 1
        self._accumulated += 1
        self._check(x, y, self.model, loss)
        return loss

    def _check(self, x, y, model, loss):
        if not self._unchecked_gradients:
            return
        args, kwargs, labels = self._as_in_example(x, y)
        try:
            self._unchecked_gradients = not check_gradients(self.module, self._loss, args, kwargs, labels, model, loss, self._options)
        except CheckError:
            raise
        except Exception as error:  # of the user's module or loss
            self._unchecked_gradients = False
            self._warn_of_no_check(error)

    def _as_in_example(self, x, y):
        """On the module's device, and of the example's types."""
        def alike(value, example):
            return tensors.plain(torch.as_tensor(value)).to(example) if isinstance(example, torch.Tensor) else value

        args, kwargs, labels = self._example
        own_args, own_kwargs = _inputs_in(x)
        return (tuple(map(alike, own_args, args)), {name: alike(one, kwargs.get(name)) for name, one in own_kwargs.items()}, alike(y, labels))

    def _state_of(self, own):
        """What the program has for these tensors of the module, as they are there."""
        return {name: one.reshape(own[name].shape).to(own[name])
                for name, one in tensors.written_by(self.model.save_state_dict).items() if name in own}

    def _not_finite(self, x, y):
        """What is said of a step that changed nothing, with the first tensor that PyTorch finds in the same place."""
        last = self.model.last
        text = f"step {last['step']} changed nothing: loss {last['loss']:.6g}, norm of the gradients {last['gradient_norm']:.6g}"
        first = []

        def note(name, values):
            for one in torch.utils._pytree.tree_leaves(values):
                if not first and isinstance(one, torch.Tensor) and one.is_floating_point() and not torch.isfinite(one).all():
                    first.append(f"{name} has {'NaN' if torch.isnan(one).any() else 'infinity'}")

        args, kwargs, labels = self._as_in_example(x, y)
        note("an input", (args, kwargs))
        note("a label", labels)
        own = dict(self.module.named_parameters(remove_duplicate=False))
        state = self._state_of(own)
        for name, one in state.items():
            note(f"parameter '{name}'", one)
        if not first:
            buffers = {name: one.clone() for name, one in self.module.named_buffers(remove_duplicate=False)}
            hooks = [part.register_forward_hook(lambda part, given, output, name=name: note(f"the output of '{name or 'the module'}'", output))
                     for name, part in self.module.named_modules()]
            try:
                with torch.no_grad(), torch.random.fork_rng():
                    torch.func.functional_call(self.module, {**state, **buffers}, args, kwargs)
            except Exception:  # of whatever kind: it is an explanation that is lacking, and no step
                pass
            finally:
                for hook in hooks:
                    hook.remove()
        return text + (f"; {first[0]}, the first of all" if first else "; no output of a module is the first, but the loss or a gradient")

    def evaluate(self, x, y=None):
        """The loss in inference mode, without dropout and by the running statistics of batch norms. The first after a load() is
        held against that of the module in eval()."""
        with self._lock:
            loss = self.model.evaluate(self._batch(x, y))
            if self._unchecked_evaluation:
                self._unchecked_evaluation = False
                self._check_evaluation(x, y, loss)
        return loss

    def _check_evaluation(self, x, y, loss):
        try:
            args, kwargs, labels = self._as_in_example(x, y)
            check_evaluation(self.module, self._loss, args, kwargs, labels, self._state_of(self._own()), loss, self._options)
        except CheckError:
            raise
        except Exception as error:  # of the user's module or loss
            self._warn_of_no_check(error, "evaluation")

    def discard(self):
        """Forgets the micro-batches since the last step."""
        self.model.discard()
        self._accumulated = 0

    @property
    def last(self):
        """Of the last step: loss, gradient_norm, applied, step."""
        return self.model.last

    def sync(self, optimizer=None):
        """Writes parameters and buffers back into the module, and the optimizer's state into one of torch.optim: the one
        that was given at first, or `optimizer`."""
        optimizer = self._checked(optimizer)
        own = self._own()
        with torch.no_grad():
            for name, values in tensors.written_by(self.model.save_state_dict).items():
                if name not in own:
                    raise ModelError(4, f"'{name}' has been trained, and the module has nothing of that name")
                own[name].copy_(values.reshape(own[name].shape))
            for part in self.module.modules():
                if part.training and getattr(part, "num_batches_tracked", None) is not None:
                    part.num_batches_tracked += self._passes
            if optimizer is not None:
                optimizers.take_states(self.module, optimizer, tensors.written_by(self.model.save_optimizer_state))
        self._passes = 0
        return self.module
