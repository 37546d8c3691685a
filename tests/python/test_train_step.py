# SPDX-License-Identifier: Apache-2.0
"""trainc.torch.TrainStep beside the same PyTorch loop: losses of 20 steps, and what sync() leaves in the module."""
import copy

import pytest
import torch
import torchvision
import trainc
import transformers
from torch import nn
from trainc.torch import CompileError, ModelError, TrainStep

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


def test_attention_dropout_trains():
    config = copy.deepcopy(GPT2)
    config.attn_pdrop = 0.5
    module, x, y = Logits(transformers.GPT2LMHeadModel(config)), torch.randint(0, 101, (2, 16)), torch.randint(0, 101, (2, 16))
    module.train()
    step = TrainStep(module, "cross_entropy", example=(x, y), learning_rate=0.0)
    losses = {step(x, y) for _ in range(4)}
    assert len(losses) == 4  # other numbers are dropped each time
    assert step.evaluate(x, y) == step.evaluate(x, y)


def test_the_same_shapes_are_compiled_once(monkeypatch):
    import trainc.compiler
    runs = []
    monkeypatch.setattr(trainc.compiler, "_run", lambda command, run=trainc.compiler._run: (runs.append(command), run(command)))
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
