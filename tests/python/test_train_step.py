# SPDX-License-Identifier: Apache-2.0
"""trainc.torch.TrainStep beside the same PyTorch loop: losses of 20 steps, and what sync() leaves in the module."""
import copy
import signal
import threading
import warnings

import pytest
import torch
import torchvision
import trainc
import transformers
from torch import nn
from trainc.torch import CheckError, CompileError, ExportError, ModelError, TrainStep

STEPS = 20


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TRAINC_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    torch.manual_seed(0)


class Logits(nn.Module):
    """A transformers model by its logits, of token ids."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


class Pixels(Logits):

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits


def image_model(make, size=32, **arguments):
    return lambda: (make(num_classes=10, **arguments), torch.randn(4, 3, size, size), torch.randint(0, 10, (4,)))


def language_model(config, make):
    def build():
        model = Logits(make(config))
        return model, torch.randint(0, config.vocab_size, (2, 16)), torch.randint(0, config.vocab_size, (2, 16))
    return build


SMALL = {"vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
GPT2 = transformers.GPT2Config(vocab_size=101, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
BERT = transformers.BertConfig(**SMALL, max_position_embeddings=32, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
LLAMA = transformers.LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=32)
QWEN = transformers.Qwen2Config(**SMALL, num_key_value_heads=2, max_position_embeddings=32)
OPT = transformers.OPTConfig(vocab_size=101, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=32,
                             max_position_embeddings=32, dropout=0, attention_dropout=0)
DISTILBERT = transformers.DistilBertConfig(vocab_size=101, dim=32, n_layers=2, n_heads=4, hidden_dim=64, dropout=0, attention_dropout=0,
                                           max_position_embeddings=32)
VIT = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
                             hidden_dropout_prob=0, attention_probs_dropout_prob=0, num_labels=10)


class Recurrent(nn.Module):

    def __init__(self):
        super().__init__()
        self.table, self.cell, self.head = nn.Embedding(50, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 50)
        self.table.weight.requires_grad = False  # frozen

    def forward(self, ids):
        return self.head(self.cell(self.table(ids))[0])


def mostly_frozen():
    model = torchvision.models.resnet18(num_classes=10)
    for name, part in model.named_children():
        if name not in ("layer4", "fc"):
            part.requires_grad_(False)
            part.eval()
    return model, torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))


CASES = {
    "resnet18": image_model(torchvision.models.resnet18),
    "resnet18_mostly_frozen": mostly_frozen,
    "mobilenet_v2": image_model(torchvision.models.mobilenet_v2, dropout=0),
    "squeezenet1_1": image_model(torchvision.models.squeezenet1_1, size=64, dropout=0),
    "shufflenet": image_model(torchvision.models.shufflenet_v2_x0_5),
    "alexnet": image_model(torchvision.models.alexnet, size=64, dropout=0),
    "regnet": image_model(torchvision.models.regnet_y_400mf),
    "gpt2": language_model(GPT2, transformers.GPT2LMHeadModel),
    "bert": language_model(BERT, transformers.BertForMaskedLM),
    "llama": language_model(LLAMA, transformers.LlamaForCausalLM),
    "qwen2": language_model(QWEN, transformers.Qwen2ForCausalLM),
    "opt": language_model(OPT, transformers.OPTForCausalLM),
    "distilbert": language_model(DISTILBERT, transformers.DistilBertForMaskedLM),
    "vit": lambda: (Pixels(transformers.ViTForImageClassification(VIT)), torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))),
    "lstm_frozen_embedding": lambda: (Recurrent(), torch.randint(0, 50, (4, 12)), torch.randint(0, 50, (4, 12))),
}


def torch_step(module, optimizer, x, y):
    optimizer.zero_grad()
    logits = module(x)
    loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


def batches(x, y, count):
    for i in range(count):
        yield (x.roll(i, 0) + 0.01 * i, y.roll(i, 0)) if x.is_floating_point() else ((x + i) % int(x.max() + 1), y.roll(i, -1))


def adamw(module):
    return torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], lr=1e-4, weight_decay=0.1)


def relative(one, other):
    return max(abs(a - b) / abs(b) for a, b in zip(one, other))


@pytest.mark.parametrize("name", CASES)
def test_beside_pytorch(name, record_property):
    module, x, y = CASES[name]()
    if not name.endswith("mostly_frozen"):
        module.train()
    beside, double = copy.deepcopy(module), copy.deepcopy(module).double()
    optimizer = adamw(module)
    # classes lie along the last axis of a language model
    loss = "cross_entropy" if y.dim() == 2 else nn.CrossEntropyLoss()
    step = TrainStep(module, loss, optimizer, example=(x, y))
    ours = [step(*batch) for batch in batches(x, y, STEPS)]
    of_torch = adamw(beside)
    theirs = [torch_step(beside, of_torch, *batch) for batch in batches(x, y, STEPS)]
    of_double = adamw(double)
    exact = [torch_step(double, of_double, a.double() if a.is_floating_point() else a, b) for a, b in batches(x, y, STEPS)]
    own_error = relative(theirs, exact)  # f32's
    print(f"{name}: {relative(ours, exact):.2e}, PyTorch's own {own_error:.2e}")
    assert relative(ours, exact) < max(2e-5, 4 * own_error)

    step.sync()
    for key, value in module.state_dict().items():
        if "num_batches" in key:
            assert torch.equal(value, beside.state_dict()[key]), key
    after = [torch_step(module, optimizer, *batch) for batch in batches(x, y, 5)]
    after_theirs = [torch_step(beside, of_torch, *batch) for batch in batches(x, y, 5)]
    assert relative(after, after_theirs) < max(1e-4, 8 * own_error)
    step.load()
    assert step(x, y) == pytest.approx(torch_step(module, optimizer, x, y), rel=max(1e-4, 8 * own_error))


def test_micro_batches_and_evaluate():
    module = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    beside, x, y = copy.deepcopy(module), torch.randn(8, 6), torch.randn(8, 3)
    step = TrainStep(module, nn.HuberLoss(delta=0.7), "sgd", example=(x[:4], y[:4]), micro_batches=2, momentum=0.9, learning_rate=0.1)
    optimizer = torch.optim.SGD(beside.parameters(), lr=0.1, momentum=0.9)
    for _ in range(5):
        step.accumulate(x[:4], y[:4])
        loss = step(x[4:], y[4:])
        optimizer.zero_grad()
        expected = nn.functional.huber_loss(beside(x), y, delta=0.7)
        expected.backward()
        optimizer.step()
        assert loss == pytest.approx(expected.item(), rel=1e-5)
    expected = nn.functional.huber_loss(beside(x[:4]), y[:4], delta=0.7).item()
    assert step.evaluate(x[:4], y[:4]) == pytest.approx(expected, rel=1e-5)


def test_nadam_goes_on_in_pytorch():
    module = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    beside, x, y = copy.deepcopy(module), torch.randn(8, 6), torch.randn(8, 3)
    optimizer, theirs = torch.optim.NAdam(module.parameters(), lr=1e-2), torch.optim.NAdam(beside.parameters(), lr=1e-2)
    step = TrainStep(module, nn.MSELoss(), optimizer, example=(x, y))

    def of_torch(model, own):
        own.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        own.step()
        return loss.item()

    assert [step(x, y) for _ in range(5)] == pytest.approx([of_torch(beside, theirs) for _ in range(5)], rel=1e-5)
    step.sync()
    expected = theirs.state[beside[0].weight]["mu_product"].item()
    assert optimizer.state[module[0].weight]["mu_product"].item() == pytest.approx(expected, rel=1e-6)
    assert of_torch(module, optimizer) == pytest.approx(of_torch(beside, theirs), rel=1e-5)
    with pytest.raises(ModelError, match="trains with nadam"):
        step.sync(torch.optim.AdamW(module.parameters()))


def test_bfloat16_tensors_in_a_batch():
    module = nn.Linear(6, 3)
    x, y = torch.randn(8, 6).bfloat16(), torch.randn(8, 3).bfloat16()
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x.float(), y.float()))
    assert step.evaluate(x, y) == step.evaluate(x.float(), y.float())


def test_tied_weights_stay_tied():
    model = transformers.GPT2LMHeadModel(GPT2)
    module, x, y = Logits(model), torch.randint(0, 101, (2, 16)), torch.randint(0, 101, (2, 16))
    step = TrainStep(module, "cross_entropy", example=(x, y))
    step(x, y, learning_rate=1e-2)
    step.sync()
    assert model.lm_head.weight is model.transformer.wte.weight
    assert sum(name.endswith(("lm_head.weight", "wte.weight")) for name in step.model.parameters) == 1


@pytest.mark.parametrize("elsewhere", [0.0, 0.1])
def test_attention_dropout_trains(elsewhere):
    config = copy.deepcopy(GPT2)
    config.attn_pdrop = 0.5
    config.resid_pdrop = config.embd_pdrop = elsewhere
    module, x, y = Logits(transformers.GPT2LMHeadModel(config)), torch.randint(0, 101, (2, 16)), torch.randint(0, 101, (2, 16))
    module.train()
    step = TrainStep(module, "cross_entropy", example=(x, y), learning_rate=0.0)
    losses = {step(x, y) for _ in range(4)}
    assert len(losses) == 4  # other numbers are dropped each time
    assert step.evaluate(x, y) == step.evaluate(x, y)


def test_the_same_shapes_are_compiled_once(monkeypatch):
    import trainc.compiler
    runs = []
    monkeypatch.setattr(trainc.compiler, "_run", lambda command, run=trainc.compiler._run: (runs.append(command), run(command))[1])
    for seed in (1, 2):  # other parameters, the same module
        torch.manual_seed(seed)
        TrainStep(nn.Linear(5, 3), "mse", example=(torch.randn(2, 5), torch.randn(2, 3)))
    assert len(runs) == 1


@pytest.mark.parametrize("optimizer, message", [
    (lambda parameters: torch.optim.SGD(parameters, lr=0.1, maximize=True), "maximize"),
    (lambda parameters: torch.optim.AdamW(parameters, amsgrad=True), "amsgrad"),
    (lambda parameters: torch.optim.ASGD(parameters), "asgd"),
])
def test_optimizers_that_trainc_does_not_have(optimizer, message):
    module = nn.Linear(5, 3)
    with pytest.raises(CompileError, match=message):
        TrainStep(module, "mse", optimizer(module.parameters()), example=(torch.randn(2, 5), torch.randn(2, 3)))


def test_classes_lie_along_axis_1():
    module, x, y = nn.Conv1d(3, 6, 1), torch.randn(4, 3, 6), torch.randint(0, 6, (4, 6))
    beside = nn.functional.cross_entropy(module(x), y).item()
    assert TrainStep(module, nn.CrossEntropyLoss(), example=(x, y)).evaluate(x, y) == pytest.approx(beside, rel=1e-5)
    shares = torch.rand(4, 5).softmax(1)
    head, z = nn.Linear(3, 5), torch.randn(4, 3)
    beside = nn.functional.cross_entropy(head(z), shares).item()
    assert TrainStep(head, nn.CrossEntropyLoss(), example=(z, shares)).evaluate(z, shares) == pytest.approx(beside, rel=1e-5)


def test_an_optimizer_of_a_part_is_refused():
    module = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3))
    with pytest.raises(CompileError, match="requires_grad"):
        TrainStep(module, "mse", torch.optim.SGD(module[1].parameters(), lr=0.1), example=(torch.randn(2, 5), torch.randn(2, 3)))


def test_a_module_that_lacks_parameters_is_not_loaded():
    module, x, y = nn.Sequential(nn.Linear(5, 4), nn.Linear(4, 3)), torch.randn(2, 5), torch.randn(2, 3)
    step = TrainStep(module, "mse", example=(x, y))
    step.module = nn.Sequential(module[0], nn.Tanh(), nn.Linear(4, 3))  # the second layer has another name
    with pytest.raises(ModelError, match="initial values have"):
        step.load()


def test_what_cannot_be_compiled():
    with pytest.raises(CompileError, match="TripletMarginLoss"):
        TrainStep(nn.Linear(5, 3), nn.TripletMarginLoss(), example=(torch.randn(2, 5), torch.randn(2, 3)))


def test_an_export_in_bfloat16_is_not_compared(tmp_path):
    pytest.importorskip("onnxruntime")
    with pytest.warns(UserWarning, match="onnxruntime cannot compute the file"):
        trainc.export(nn.Linear(5, 3).bfloat16(), torch.randn(2, 5).bfloat16(), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").exists()


# ---- each of these trained another model without a word

def module_of_two(inputs=5, outputs=4):
    return nn.Sequential(nn.Linear(inputs, 6), nn.Tanh(), nn.Linear(6, outputs))


def test_norms_that_are_all_frozen_keep_their_statistics():
    module = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 4))
    module[1].running_mean.normal_()
    module.train()
    module[1].eval()
    x, y, before = torch.randn(8, 5), torch.randn(8, 4), module[1].running_mean.clone()
    expected = nn.functional.mse_loss(module(x), y).item()
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    assert step(x, y) == pytest.approx(expected, rel=1e-5)
    step.sync()
    assert torch.equal(before, module[1].running_mean)


def focal_of(base):
    return type("Focal", (base,), {"forward": lambda self, output, target: base.forward(self, output, target) ** 2})


LOSSES = {
    nn.CrossEntropyLoss: torch.tensor([0, 1, 2, 3]), nn.NLLLoss: torch.tensor([0, 1, 2, 3]), nn.HuberLoss: torch.randn(4, 4),
    nn.SmoothL1Loss: torch.randn(4, 4), nn.KLDivLoss: torch.rand(4, 4), nn.MSELoss: torch.randn(4, 4), nn.L1Loss: torch.randn(4, 4),
    nn.BCEWithLogitsLoss: torch.rand(4, 4),
}


@pytest.mark.parametrize("base", LOSSES, ids=lambda base: base.__name__)
def test_a_loss_that_is_made_from_another(base):
    module, x, y = module_of_two(), torch.randn(4, 5), LOSSES[base]
    with pytest.raises(CompileError, match="(?s)Focal is made from.*output"):
        TrainStep(module, focal_of(base)(), "sgd", example=(x, y))
    same = type("Same", (base,), {})()
    assert TrainStep(module, same, "sgd", example=(x, y)).evaluate(x, y) == pytest.approx(same(module(x), y).item(), rel=1e-5)


@pytest.mark.parametrize("shape", [(), (1,), (4,), (4, 1), (3, 1, 1), (1, 4, 1)])
def test_weights_of_positive_labels_are_broadcast(shape):
    module, x, y = nn.Conv2d(3, 3, 3, padding=1), torch.randn(2, 3, 4, 4), (torch.randn(2, 3, 4, 4) > 0).float()
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.rand(shape) * 3)
    step = TrainStep(module, loss, "sgd", example=(x, y))
    assert step(x, y, learning_rate=0.0) == pytest.approx(loss(module(x), y).item(), rel=1e-5)


def test_weights_of_positive_labels_along_two_axes_are_refused():
    module, x, y = nn.Conv2d(3, 4, 3, padding=1), torch.randn(2, 3, 4, 4), torch.rand(2, 4, 4, 4)
    with pytest.raises(CompileError, match=r"pos_weight of shape \[4, 4\]"):
        TrainStep(module, nn.BCEWithLogitsLoss(pos_weight=torch.rand(4, 4)), "sgd", example=(x, y))


def test_files_that_options_name_are_in_the_cache_key(tmp_path, monkeypatch):
    module, x, y = nn.Linear(5, 4), torch.randn(8, 5), torch.arange(8) % 4
    for folder, weights in (("a", (1, 1, 1, 1)), ("a", (1, 5, .2, 3)), ("b", (2, 1, 1, 1)), ("a", (1, 5, .2, 3))):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        weights = torch.tensor(weights, dtype=torch.float32)
        __import__("numpy").save("w.npy", weights.numpy())
        step = TrainStep(module, "cross_entropy,class_weights=w.npy", "sgd", example=(x, y))
        assert step(x, y, learning_rate=0.0) == pytest.approx(nn.functional.cross_entropy(module(x), y, weight=weights).item(), rel=1e-5)


def test_dampening_goes_on_in_mid_run():
    module, x, y = module_of_two(), torch.randn(8, 5), torch.randn(8, 4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, dampening=0.5)

    def of_torch(own, optimizer):
        optimizer.zero_grad()
        nn.functional.mse_loss(own(x), y).backward()
        optimizer.step()

    for _ in range(3):
        of_torch(module, optimizer)
    step = TrainStep(module, nn.MSELoss(), optimizer, example=(x, y))
    step(x, y)
    beside = copy.deepcopy(module)
    of_torch(module, optimizer)
    step.module = beside
    step._torch_optimizer = None
    step.sync()
    for own, expected in zip(beside.parameters(), module.parameters()):
        torch.testing.assert_close(own, expected)


VIEWS = {
    "negated": lambda: torch.complex(torch.randn(8, 5), torch.randn(8, 5)).conj().imag,
    "conjugated": lambda: torch.complex(torch.randn(8, 5), torch.randn(8, 5)).conj().real,
    "transposed": lambda: torch.randn(5, 8).T,
    "sliced": lambda: torch.randn(16, 11)[::2, 1::2],
    "expanded": lambda: torch.randn(1, 5).expand(8, 5),
    "flipped": lambda: torch.randn(8, 5).flip(0),
    "of_a_graph": lambda: torch.randn(8, 5, requires_grad=True) * 2,
    "double": lambda: torch.randn(8, 5).double(),
    "half": lambda: torch.randn(8, 5).half(),
    "integers": lambda: torch.randint(0, 9, (8, 5)),
    "bool": lambda: torch.randn(8, 5) > 0,
    "array": lambda: torch.randn(8, 5).numpy(),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_batch_is_what_its_tensor_says(view):
    module, x, y = nn.Linear(5, 4), VIEWS[view](), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(torch.randn(8, 5), y))
    expected = nn.functional.mse_loss(module(torch.as_tensor(x).float()), y).item()
    assert step(x, y, learning_rate=0.0) == pytest.approx(expected, rel=1e-5)
    assert step.evaluate(x, y) == pytest.approx(expected, rel=1e-5)


class WithBuffers(nn.Module):

    def __init__(self, **buffers):
        super().__init__()
        self.layer = nn.Linear(5, 4)
        for name, (value, persistent) in buffers.items():
            self.register_buffer(name, value, persistent=persistent)

    def forward(self, x):
        x = self.layer(x)
        for value in self.buffers():
            x = x.masked_fill(value, 0) if value.dtype == torch.bool else x * value
        return x


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("value, other", [
    (torch.tensor([True, False, False, True]), torch.tensor([False, False, True, True])),
    (torch.tensor([1, 2, 3, 4]), torch.tensor([4, 3, 2, 1])),
    (torch.tensor([1., 2, 3, 4]), torch.tensor([4., 3, 2, 1])),
])
def test_buffers_are_loaded_or_refused(persistent, value, other):
    module, x, y = WithBuffers(one=(value, persistent)), torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    assert step(x, y, learning_rate=0.0) == pytest.approx(nn.functional.mse_loss(module(x), y).item(), rel=1e-5)
    module.one.copy_(other)
    try:
        step.load()
    except ModelError as error:
        assert "'one'" in str(error)
    else:
        assert step(x, y) == pytest.approx(nn.functional.mse_loss(module(x), y).item(), rel=1e-5)


# ---- the first step is PyTorch's, or an error

class WithoutGradient(nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 6), nn.Linear(6, 4)

    def forward(self, x):
        with torch.no_grad():
            x = self.first(x)
        return self.second(x)


class Straight(torch.autograd.Function):

    @staticmethod
    def forward(context, x):
        return torch.round(x)

    @staticmethod
    def backward(context, gradient):
        return gradient


class Rounded(nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 6), nn.Linear(6, 4)

    def forward(self, x):
        return self.second(Straight.apply(self.first(x)))


def with_hook():
    module = module_of_two()
    module[0].weight.register_hook(lambda gradient: gradient * 0.5)
    return module


@pytest.mark.parametrize("make", [WithoutGradient, Rounded, with_hook])
def test_gradients_of_another_kind_are_found(make):
    module, x, y = make(), torch.randn(8, 5), torch.randn(8, 4)
    try:
        step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    except (CompileError, ExportError):
        return  # which says it earlier
    with pytest.raises(CheckError, match="gradient of '.*' has norm .*, in PyTorch (?s:.*)no_grad"):
        step(x, y)
    unchecked = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y), check=False)
    assert unchecked(x, y) > 0


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = nn.Linear(5, 4), 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) / self.calls


class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.state = nn.RNN(5, 4), torch.zeros(1, 4)

    def forward(self, x):
        y, state = self.cell(x, self.state)
        self.state = state.detach()
        return y


class Averages(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


@pytest.mark.parametrize("make", [Counts, Remembers, lambda: nn.Sequential(nn.Linear(5, 4), Averages())])
def test_what_a_module_keeps_from_call_to_call_is_found(make):
    x, y = torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(make(), nn.MSELoss(), "sgd", example=(x, y))
    with pytest.raises(CheckError, match="in calls of the module: it keeps something(?s:.*)try: "):
        step(x, y)


class DropsPaths(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 4), nn.Linear(5, 4)

    def forward(self, x):
        return self.first(x) * 2 if self.training else self.first(x) + self.second(x)


def test_evaluation_is_held_against_eval():
    x, y = torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(DropsPaths(), nn.MSELoss(), "sgd", example=(x, y))
    step(x, y)
    with pytest.raises(CheckError, match=r"that of the module in eval\(\)(?s:.*)try: sync"):
        step.evaluate(x, y)
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y), learning_rate=0.1)
    for _ in range(3):
        step(x, y)
    found = step.evaluate(x, y)
    module = step.sync().eval()
    assert found == pytest.approx(nn.functional.mse_loss(module(x), y).item(), rel=1e-5)


def test_threads_take_turns():
    module = module_of_two()
    batches = [(torch.randn(8, 5), torch.full((8, 4), 10.0 * i)) for i in range(4)]
    step = TrainStep(module, nn.MSELoss(), "sgd", example=batches[0], learning_rate=0.0)
    expected, found = [step(*batch) for batch in batches], [set() for _ in batches]

    def run(i):
        for _ in range(50):
            found[i].add(step(*batches[i]))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{loss} for loss in expected]


def test_an_interrupted_step_is_forgotten(monkeypatch):
    module, x, y = module_of_two(), torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y), learning_rate=0.0)
    loss = step(x, y)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(trainc.Model, "update", lambda *_, **__: signal.raise_signal(signal.SIGINT))
        step(x, y)
    assert step(x, y) == loss


def test_sparse_gradients_are_compared():
    module, x, y = nn.Sequential(nn.Embedding(7, 4, sparse=True), nn.Linear(4, 3)), torch.randint(0, 7, (8,)), torch.randn(8, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", trainc.ModelWarning)
        assert TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))(x, y) > 0


def test_a_module_that_has_changed_is_found():
    module, x, y = module_of_two(), torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    with torch.no_grad():
        module[0].weight.mul_(3)
    with pytest.raises(CheckError, match="the loss of this batch"):
        step(x, y)


def focal_step():
    x, y = torch.randn(8, 5), torch.randint(0, 4, (8,))
    TrainStep(module_of_two(), focal_of(nn.CrossEntropyLoss)(), "sgd", example=(x, y))(x, y)


def pos_weight_step():
    x, y = torch.randn(2, 3, 4, 4), (torch.randn(2, 4, 4, 4) > 0).float()
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1., 2, 3, 4]).view(4, 1, 1))
    TrainStep(nn.Conv2d(3, 4, 3, padding=1), loss, "sgd", example=(x, y))(x, y)


def load_parameters_alone(step, model):
    with __import__("tempfile").TemporaryDirectory() as work:
        trainc.torch.tensors.write(work + "/state", dict(step.module.named_parameters()))
        model.load_state_dict(work + "/state")


def buffer_step():
    module, x, y = WithBuffers(one=(torch.tensor([1., 2, 3, 4]), False)), torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    module.one.mul_(2)
    step.load()
    step(x, y)


def norms_that_train(patch, library_of=trainc.torch.step.library_of):
    patch.setattr(trainc.torch.step, "library_of", lambda *args, **options: library_of(*args, **{**options, "batch_norm": "train"}))


def states_without_steps(patch, load=trainc.Model.load_optimizer_state):
    patch.setattr(trainc.Model, "load_optimizer_state", lambda model, path: (load(model, path), model.set(step=0)))


# What puts a fault back, and what then has to be found.
FAULTS = {
    "norms": (norms_that_train, test_norms_that_are_all_frozen_keep_their_statistics),
    "loss": (lambda patch: patch.setattr(trainc.torch.losses, "_name_of", lambda loss: "cross_entropy"), focal_step),
    "pos_weight": (lambda patch: patch.setattr(trainc.torch.losses, "_positive_weight",
                                               lambda weight, axes: ["pos_weight=" + trainc.torch.losses._numbers(weight)]), pos_weight_step),
    "dampening": (states_without_steps, test_dampening_goes_on_in_mid_run),
    "views": (lambda patch: patch.setattr(trainc.model, "_plain", lambda values: -values.detach().resolve_neg() if values.is_neg() else values.detach()),
              lambda: test_a_batch_is_what_its_tensor_says("negated")),
    "buffers": (lambda patch: patch.setattr(TrainStep, "_load_module", load_parameters_alone), buffer_step),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds_each_of_these_faults(fault, monkeypatch):
    put_back, run = FAULTS[fault]
    put_back(monkeypatch)
    with pytest.raises(CheckError):
        run()


@pytest.mark.parametrize("options", [{"freeze": ["0.weight"]}, {"train_only": ["2.*"]}, {"decay": ".*weight"}, {"group": ["head=2.*"]}])
def test_options_that_pytorch_does_not_have_are_no_faults(options):
    module, x, y = module_of_two(), torch.randn(8, 5), torch.randn(8, 4)
    optimizer = torch.optim.AdamW(module.parameters(), weight_decay=0.5, lr=0.1)
    TrainStep(module, nn.MSELoss(), optimizer, example=(x, y), compile=options, beta1=0.8)(x, y)


def test_the_check_leaves_all_as_it_was():
    module = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 4)).train()
    module[0].weight.grad = torch.ones(6, 5)
    x, y = torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    before, numbers = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    step(x, y)  # with dropout, which the check has not
    assert torch.equal(torch.get_rng_state(), numbers)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert torch.equal(module[0].weight.grad, torch.ones(6, 5)) and module[1].weight.grad is None
    assert module.training and module[2].training


# ---- what people have

@pytest.mark.parametrize("make", [torch.optim.AdamW, torch.optim.NAdam, torch.optim.Adafactor, torch.optim.Adagrad, torch.optim.RMSprop,
                                  lambda parameters: torch.optim.SGD(parameters, momentum=0.9)])
def test_pytorch_goes_on_with_a_module_of_16_bits(make):
    module, x, y = nn.Linear(5, 4).bfloat16(), torch.randn(8, 5).bfloat16(), torch.randn(8, 4).bfloat16()
    optimizer = make(module.parameters())
    step = TrainStep(module, nn.MSELoss(), optimizer, example=(x, y))
    step(x, y)
    step.sync()
    nn.functional.mse_loss(module(x), y).backward()
    optimizer.step()


SCHEDULERS = {
    "OneCycleLR": lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=9),
    "CyclicLR": lambda optimizer: torch.optim.lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, step_size_up=2),
    "SWALR": lambda optimizer: torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05),
    "LambdaLR": lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9 ** step),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedulers_that_write_into_the_optimizer(name):
    module, x, y = module_of_two(), torch.randn(8, 5), torch.randn(8, 4)
    beside = copy.deepcopy(module)
    optimizer, theirs = torch.optim.AdamW(module.parameters()), torch.optim.AdamW(beside.parameters())
    scheduler, of_torch = SCHEDULERS[name](optimizer), SCHEDULERS[name](theirs)
    step = TrainStep(module, nn.MSELoss(), optimizer, example=(x, y))
    for _ in range(4):
        own = step(x, y)
        theirs.zero_grad()
        loss = nn.functional.mse_loss(beside(x), y)
        loss.backward()
        theirs.step()
        of_torch.step()
        scheduler.step()
        assert own == pytest.approx(loss.item(), rel=1e-5)


def test_rates_that_are_given_stay():
    module, x, y = module_of_two(), torch.randn(8, 5), torch.randn(8, 4)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = TrainStep(module, nn.MSELoss(), optimizer, example=(x, y), weight_decay=0.5)
    optimizer.param_groups[0].update(lr=0.25, weight_decay=0.125)
    step(x, y)
    assert (step.model.get("learning_rate"), step.model.get("weight_decay")) == (0.25, 0.5)
    for _ in range(2):
        step(x, y, learning_rate=0.0625)
        assert step.model.get("learning_rate") == 0.0625
    step(x, y)  # the optimizer's has not changed since
    assert step.model.get("learning_rate") == 0.0625


@pytest.mark.parametrize("example", [lambda x, y: (x, x, y), lambda x, y: x])
def test_examples_of_another_form(example):
    with pytest.raises(CompileError, match=r"example: expected \(x, y\)"):
        TrainStep(nn.Linear(5, 4), nn.MSELoss(), example=example(torch.randn(8, 5), torch.randn(8, 4)))


def test_arrays_and_smaller_batches():
    module, x, y = nn.Linear(5, 4), torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x.numpy(), y.numpy()))
    assert step(x.numpy(), y.numpy()) == pytest.approx(nn.functional.mse_loss(module(x), y).item(), rel=1e-5)
    with pytest.raises(ModelError, match="(?s)expected shape .8, 5., found .3, 5..*drop_last=True"):
        step(x[:3], y[:3])
    with pytest.raises(ModelError, match="a batch has 1 inputs"):
        step((x, x), y)


def test_steps_are_neither_copied_nor_pickled():
    x, y = torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(nn.Linear(5, 4), nn.MSELoss(), "sgd", example=(x, y))
    for copied in (copy.deepcopy, __import__("pickle").dumps):
        with pytest.raises(TypeError, match="sync"):
            copied(step)
        with pytest.raises(TypeError, match="save"):
            copied(step.model)


def test_a_step_that_is_not_finite_says_what_is_first():
    module, x, y = nn.Sequential(nn.Linear(5, 6), nn.Linear(6, 4)), torch.randn(8, 5), torch.randn(8, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    step(x, y)
    bad = x.clone()
    bad[0, 0] = float("nan")
    with pytest.warns(trainc.ModelWarning, match="changed nothing.*an input has NaN"):
        step(bad, y)
    step(x, y)
    with pytest.warns(trainc.ModelWarning, match="no output of a module is the first, but the loss"):
        step(x * 1e25, y)
    step(x, y)
    step.model.parameters["0.weight"][:] = 1e20
    with pytest.warns(trainc.ModelWarning, match="the output of '0' has infinity, the first of all"):
        step(x.abs() * 1e20, y)


def test_warnings_are_pythons():
    x, y = torch.randn(8, 5).bfloat16(), torch.randn(8, 4).bfloat16()
    with pytest.warns(trainc.CompileWarning) as told:
        TrainStep(nn.Linear(5, 4).bfloat16(), nn.MSELoss(), "sgd", example=(x, y))
    assert not any("--" in str(one.message) for one in told)


def test_a_convolution_of_three_axes_without_bias(tmp_path):
    module = nn.Sequential(nn.Conv3d(3, 4, 3, padding=1, bias=False), nn.ReLU())
    x, y = torch.randn(2, 3, 4, 8, 8), torch.randn(2, 4, 4, 8, 8)
    trainc.export(module, x, tmp_path / "m.onnx")
    step = TrainStep(module, nn.MSELoss(), "sgd", example=(x, y))
    assert step(x, y) == pytest.approx(nn.functional.mse_loss(module(x), y).item(), rel=1e-5)


def test_exports_by_name_say_what_pytorch_says(tmp_path):
    class ByName(nn.Module):
        def forward(self, *, x):
            return self.missing(x)
    with pytest.raises(ExportError, match="missing"), pytest.warns(UserWarning, match="the batch is that of the example"):
        trainc.export(ByName(), (), tmp_path / "m.onnx", kwargs={"x": torch.randn(2, 5)})


class Product(nn.Module):

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x, z):
        return self.left(x) * self.right(z)


def test_a_tensor_that_is_the_example_of_two_inputs():
    """The exporter makes one input of it."""
    module, x, z = Product(), torch.randn(4, 6), torch.randn(4, 6)
    y = torch.randn(4, 4)
    step = TrainStep(module, nn.MSELoss(), "sgd", example=((x, x), y))
    expected = nn.functional.mse_loss(module(x, z), y).item()
    assert step((x, z), y, learning_rate=0.1) == pytest.approx(expected, rel=1e-5)


def test_a_head_alone_in_train():
    """module.eval() and head.train(): the norms of the backbone keep their statistics, as in PyTorch."""
    module = nn.Sequential(nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)), nn.Linear(8, 3))
    module.eval()
    module[1].train()
    x, y = torch.randn(4, 6) + 3, torch.randint(0, 3, (4,))
    expected, before = nn.functional.cross_entropy(module(x), y).item(), module[0][1].running_mean.clone()
    step = TrainStep(module, nn.CrossEntropyLoss(), "sgd", example=(x, y))
    assert step(x, y, learning_rate=0.1) == pytest.approx(expected, rel=1e-5)
    assert torch.equal(step.sync()[0][1].running_mean, before)


def losses_of(step, optimizer, batches, change):
    """Of a step and, with a copy of the module made before, of PyTorch; `change` alters the groups of both after each third."""
    module = copy.deepcopy(step.module)
    other = type(optimizer)(module.parameters(), **optimizer.defaults)
    own, expected = [], []
    for number, (x, y) in enumerate(batches):
        if number > 0 and number % (len(batches) // 3) == 0:
            change(optimizer.param_groups[0])
            change(other.param_groups[0])
        own.append(step(x, y))
        other.zero_grad()
        loss = nn.functional.cross_entropy(module(x), y)
        loss.backward()
        other.step()
        expected.append(loss.item())
    return own, expected


def test_momentum_that_comes_and_goes():
    module = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.3)
    batches = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(15)]
    step = TrainStep(module, nn.CrossEntropyLoss(), optimizer, example=batches[0])
    own, expected = losses_of(step, optimizer, batches, lambda group: group.update(momentum=0.9 - group["momentum"]))
    assert own == pytest.approx(expected, rel=1e-5)


def test_what_an_optimizer_cannot_become_in_mid_run():
    module, x, y = nn.Linear(6, 3), torch.randn(4, 6), torch.randint(0, 3, (4,))
    optimizer = torch.optim.AdamW(module.parameters())
    step = TrainStep(module, nn.CrossEntropyLoss(), optimizer, example=(x, y))
    step(x, y)
    optimizer.param_groups[0]["decoupled_weight_decay"] = False
    with pytest.raises(CompileError, match="decoupled_weight_decay=False"):
        step(x, y)


def test_an_optimizer_may_have_frozen_parameters():
    module = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 3))
    module[0].requires_grad_(False)
    x, y = torch.randn(4, 6), torch.randint(0, 3, (4,))
    step = TrainStep(module, nn.CrossEntropyLoss(), torch.optim.AdamW(module.parameters()), example=(x, y))
    assert step(x, y) == pytest.approx(nn.functional.cross_entropy(module(x), y).item(), rel=1e-5)


def test_schedulers_and_constants_are_no_reason_to_warn():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 3)
            self.register_buffer("scale", torch.tensor([0.5, 1.0, 2.0]))

        def forward(self, x):
            return self.linear(x) * self.scale

    module, x, y = Scaled(), torch.randn(4, 6), torch.randint(0, 3, (4,))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    step = TrainStep(module, nn.CrossEntropyLoss(), optimizer, example=(x, y))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            step(x, y)
            scheduler.step()
        step.sync()


def test_a_module_that_is_all_in_eval_is_said_to_train():
    module = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)).eval()
    module[0].requires_grad_(False)
    with pytest.warns(UserWarning, match="in eval.. with all its parts.*batch norms, .1. the first"):
        TrainStep(module, nn.CrossEntropyLoss(), "sgd", example=(torch.randn(4, 6), torch.randint(0, 3, (4,))))


def test_micro_batches_are_counted():
    module, x, y = nn.Linear(6, 3), torch.randn(4, 6), torch.randint(0, 3, (4,))
    step = TrainStep(module, nn.CrossEntropyLoss(), "sgd", example=(x, y), micro_batches=2)
    for _ in range(2):
        step.accumulate(x, y)
        with pytest.raises(ModelError, match="only the last is left"):
            step.accumulate(x, y)
        step(x, y)
    one = TrainStep(module, nn.CrossEntropyLoss(), "sgd", example=(x, y))
    with pytest.raises(ModelError, match="micro_batches=N"):
        one.accumulate(x, y)
    one(x, y)
