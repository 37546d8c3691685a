# SPDX-License-Identifier: Apache-2.0
"""Models that people export, from torchvision and transformers with small configurations and a few written here, by both
PyTorch exporters: the forward pass and 20 training steps against PyTorch in f64, with PyTorch's own f32 beside them. Each
is exported with default options and, where trainc refuses that, with the options that its message names. Prints a table; ends with 1
where a model trains otherwise (2e-5 of each loss, or 4 times PyTorch's own distance), predicts otherwise (1e-5) or does not train.

    python tests/models/compare/model_table.py --trainc build/release/bin/trainc FOLDER            # all, about an hour
    python tests/models/compare/model_table.py --trainc build/release/bin/trainc FOLDER resnet18 vit

Needs torch, torchvision, transformers, onnx and safetensors.
"""
import argparse
import json
import logging
import pathlib
import re
import subprocess
import sys
import warnings

import numpy
import safetensors.numpy
import torch
from torch import nn
from torch.nn import functional

STEPS, RATE, DECAY = 20, 1e-3, 0.01
TOKENS, LENGTH, WIDTH, HEADS = 64, 16, 32, 4
WITHIN, FORWARD, TIMES = 2e-5, 1e-5, 4


class Tokens(nn.Module):
    """A model of transformers that takes token ids, with a mask where it wants one, and returns the logits alone."""

    def __init__(self, kind, head, mask=True, **options):
        super().__init__()
        import transformers
        config = getattr(transformers, kind + "Config")(vocab_size=TOKENS + 1, pad_token_id=TOKENS, bos_token_id=0, eos_token_id=1,
                                                        attn_implementation="eager", **options)
        self.model, self.mask, self.decodes = getattr(transformers, kind + head)(config), mask, kind == "T5"

    def forward(self, input_ids):
        arguments = {"attention_mask": torch.ones_like(input_ids)} if self.mask else {}
        if self.decodes:
            arguments["decoder_input_ids"] = input_ids
        return self.model(input_ids=input_ids, **arguments).logits


def encoder(kind, mask=True):
    return lambda: Tokens(kind, "ForMaskedLM", mask, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=2 * WIDTH,
                          max_position_embeddings=TOKENS + 4 * LENGTH, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)


def distilbert():
    return Tokens("DistilBert", "ForMaskedLM", dim=WIDTH, n_layers=2, n_heads=HEADS, hidden_dim=2 * WIDTH, max_position_embeddings=4 * LENGTH,
                  dropout=0.0, attention_dropout=0.0)


def decoder(kind, **options):
    return lambda: Tokens(kind, "ForCausalLM", hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, num_key_value_heads=2,
                          intermediate_size=2 * WIDTH, max_position_embeddings=4 * LENGTH, use_cache=False, **options)


def t5():
    return Tokens("T5", "ForConditionalGeneration", mask=False, d_model=WIDTH, d_kv=8, d_ff=2 * WIDTH, num_layers=2, num_heads=HEADS, dropout_rate=0.0,
                  decoder_start_token_id=0, use_cache=False)


class Experts(nn.Module):
    """A feed-forward layer of which each token takes two of four experts, as in Mixtral; what they make is scattered back."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, 4, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.SiLU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(4))

    def forward(self, x):
        best, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        shares = torch.zeros(*x.shape[:-1], 4, dtype=x.dtype).scatter(-1, chosen, best / best.sum(-1, keepdim=True))
        return sum(shares[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


class Mixtral(nn.Module):
    """That of transformers is beyond both exporters (aten::histc, a loop over the experts that were chosen)."""

    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(TOKENS, WIDTH), nn.RMSNorm(WIDTH)
        self.attention, self.experts, self.head = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), Experts(), nn.Linear(WIDTH, TOKENS, bias=False)

    def forward(self, input_ids):
        x = self.embedding(input_ids)
        mask = torch.triu(torch.full((LENGTH, LENGTH), float("-inf"), dtype=x.dtype), 1)
        x = x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return self.head(x + self.experts(self.norm(x)))


class Recurrent(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding, self.layers, self.head = nn.Embedding(TOKENS, WIDTH), layers(WIDTH, WIDTH, num_layers=2, batch_first=True), nn.Linear(WIDTH, TOKENS)

    def forward(self, input_ids):
        return self.head(self.layers(self.embedding(input_ids))[0])


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())
        self.first, self.second, self.third = block(3, 8), block(8, 16), block(16, 32)
        self.up, self.back, self.last, self.head = nn.ConvTranspose2d(32, 16, 2, stride=2), block(32, 16), block(24, 8), nn.Conv2d(8, 10, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.second(functional.max_pool2d(a, 2))
        y = self.back(torch.cat([self.up(self.third(functional.max_pool2d(b, 2))), b], 1))
        y = self.last(torch.cat([functional.interpolate(y, scale_factor=2), a], 1))
        return self.head(y).mean((2, 3))


class Audio(nn.Module):
    """An encoder in the manner of Whisper: convolutions over time, attention."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(12, WIDTH, 3, padding=1), nn.Conv1d(WIDTH, WIDTH, 3, stride=2, padding=1)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
                                    for _ in range(2))
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        y = functional.gelu(self.second(functional.gelu(self.first(x)))).transpose(1, 2)
        for layer in self.layers:
            y = layer(y)
        return self.head(y.mean(1))


class Graph(nn.Module):
    """Two rounds of messages over the edges of a graph, the same for all samples, gathered and added where they lead."""

    def __init__(self):
        super().__init__()
        random = numpy.random.default_rng(5)
        self.register_buffer("source", torch.from_numpy(random.integers(0, 12, 40)))
        self.register_buffer("target", torch.from_numpy(random.integers(0, 12, 40)))
        self.messages, self.updates, self.head = nn.Linear(6, 6), nn.Linear(12, 6), nn.Linear(6, 10)

    def forward(self, x):
        for _ in range(2):
            sent = functional.relu(self.messages(x[:, self.source]))
            got = torch.zeros_like(x).index_add(1, self.target, sent)
            x = torch.tanh(self.updates(torch.cat([x, got], 2)))
        return self.head(x.mean(1))


def vision(name, **options):
    def build():
        import torchvision
        return getattr(torchvision.models, name)(num_classes=10, **options)
    return build


def vit():
    import torchvision
    return torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=HEADS, hidden_dim=WIDTH, mlp_dim=2 * WIDTH, num_classes=10)


PICTURES = ("x", (3, 64, 64), 4)
SMALL = ("x", (3, 32, 32), 4)
MODELS = {  # what builds it; its input, the shape of a sample and the batch, None for tokens; whether it is trained in train() for its batch norms
    "bert": (encoder("Bert"), None, False), "roberta": (encoder("Roberta"), None, False), "distilbert": (distilbert, None, False), "t5": (t5, None, False),
    "llama": (decoder("Llama"), None, False), "mixtral": (Mixtral, None, False),
    "lstm": (lambda: Recurrent(nn.LSTM), None, False), "gru": (lambda: Recurrent(nn.GRU), None, False),
    "vit": (vit, SMALL, False), "unet": (Unet, SMALL, True), "audio": (Audio, ("x", (12, 40), 4), False), "graph": (Graph, ("x", (12, 6), 4), False),
    "resnet18": (vision("resnet18"), PICTURES, True), "squeezenet1_1": (vision("squeezenet1_1", dropout=0.0), PICTURES, True),
    "mobilenet_v2": (vision("mobilenet_v2", dropout=0.0), PICTURES, True), "mobilenet_v3_small": (vision("mobilenet_v3_small", dropout=0.0), PICTURES, True),
    "efficientnet_b0": (vision("efficientnet_b0", dropout=0.0, stochastic_depth_prob=0.0), PICTURES, True),
    "densenet121": (vision("densenet121"), PICTURES, True), "convnext_tiny": (vision("convnext_tiny", stochastic_depth_prob=0.0), PICTURES, False),
}
# What an exporter itself cannot do, or what the file has lost under every option; all others train.
EXPECTED = {("graph", "script"): "not exported: SymbolicValueError", ("mixtral", "script"): "not exported: UnsupportedOperatorError"}  # of index_add_, rms_norm


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace").strip()


def data_of(shape, seed=7):
    """Inputs and labels of all steps, by the shape of a sample; None: tokens."""
    random = numpy.random.default_rng(seed)
    batch = 4
    if shape is None:
        text = random.integers(0, TOKENS, (STEPS * batch, LENGTH + 1))
        return text[:, :-1].copy(), text[:, 1:].copy()
    return random.standard_normal((STEPS * batch, *shape)).astype(numpy.float32), random.integers(0, 10, STEPS * batch)


def make(name):
    torch.manual_seed(3)
    return MODELS[name][0]()


def train(name, dtype, x, labels):
    module = make(name).to(dtype).train(MODELS[name][2])
    decays = [p for p in module.parameters() if p.dim() >= 2]
    others = [p for p in module.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}], lr=RATE)
    x, labels = torch.from_numpy(x), torch.from_numpy(labels)
    x = x.to(dtype) if x.is_floating_point() else x
    batch, losses = len(x) // STEPS, []
    with torch.no_grad():
        predicted = module.eval()(x[:batch]).numpy()
    module.train(MODELS[name][2])
    for step in range(STEPS):
        rows = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        out = module(x[rows])
        loss = functional.cross_entropy(out.reshape(-1, out.shape[-1]), labels[rows].reshape(-1))
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return predicted, losses


def distance(a, b):
    return max(abs(p - q) / abs(q) for p, q in zip(a, b, strict=True))


def export(name, exporter, options, path, x):
    module = make(name).train(options.get("training") == torch.onnx.TrainingMode.TRAINING)
    batch = len(x) // STEPS
    for module_of in module.modules():  # so that exporting moves no statistics
        if isinstance(module_of, nn.modules.batchnorm._BatchNorm):
            module_of.momentum = 0.0
    torch.onnx.export(module, (torch.from_numpy(x[:batch]),), path, input_names=["x"], output_names=["y"], dynamo=exporter == "dynamo", verbose=False, **options)


def ways(exporter):
    """Options of an export: the default, then those that trainc's messages name."""
    if exporter == "dynamo":
        return [("default", {}), ("optimize=False", {"optimize": False})]
    return [("default", {}), ("do_constant_folding=False", {"do_constant_folding": False}),
            ("training", {"do_constant_folding": False, "training": torch.onnx.TrainingMode.TRAINING})]


def compiled(trainc, path, out, *more):
    """Once more with the patterns that the message names, where it asks for a decision."""
    words = [trainc, path, "--loss", "cross_entropy", "--quiet", "-o", out, *more]
    code, text = run(*words)
    patterns = re.findall(r"--freeze '([^']+)'", text) if code else []
    return run(*words, *(word for pattern in patterns for word in ("--freeze", pattern))) if patterns else (code, text)


def compiled_export(trainc, name, exporter, folder, x, *more):
    """FOLDER/out, compiled from the first export that trainc takes, FOLDER/m.onnx: how it was exported, or None and what was said of each."""
    said = []
    for way, options in ways(exporter):
        try:
            export(name, exporter, options, folder / "m.onnx", x)
        except Exception as problem:  # the exporter's own
            said.append(f"{way}: not exported: {type(problem).__name__} {str(problem).strip().splitlines()[0][:60]}")
            continue
        code, text = compiled(trainc, folder / "m.onnx", folder / "out", *more)
        if code == 0:
            return way, ""
        lines = [line for line in text.splitlines() if "warning" not in line and line.strip()]
        said.append(f"{way}: {lines[0].partition('m.onnx: ')[2][:110]}")
    return None, "; ".join(said)


def answer(trainc, name, exporter, folder):
    shape = MODELS[name][1]
    x, labels = data_of(shape and shape[1])
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "labels.npy", labels)
    way, said = compiled_export(trainc, name, exporter, folder, x)
    if way is None:
        return said, False
    predicted, exact = train(name, torch.float64, x, labels)
    code, text = run(folder / "out/trainer", "train", "--steps", STEPS, "--no-progress", "--overwrite", "--run", folder / "run", "--data", f"x={folder}/x.npy",
                     "--data", f"labels={folder}/labels.npy", "--no-shuffle", "--learning-rate", RATE, "--weight-decay", DECAY)
    if code:
        return f"{way}: trainer ends with {code}: {text.splitlines()[0]}", False
    losses = [json.loads(line) for line in (folder / "run/log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in losses if "loss" in line]
    code, text = run(folder / "out/trainer", "predict", "--checkpoint", "initial", "--data", f"x={folder}/x.npy", "-o", folder / "y.safetensors")
    if code:
        return f"{way}: predict ends with {code}: {text.splitlines()[0]}", False
    made = next(iter(safetensors.numpy.load_file(folder / "y.safetensors").values()))[: len(predicted)]
    forward = abs(made - predicted).max() / max(abs(predicted).max(), 1e-3)  # a vision transformer begins with a head of zeros
    worst, bound = distance(losses, exact), WITHIN
    beside = ""
    if worst > bound:
        own = distance(train(name, torch.float32, x, labels)[1], exact)
        bound, beside = max(bound, TIMES * own), f" (PyTorch's f32: {own:.1e})"
    return f"{way} | {forward:.1e} | {worst:.1e}{beside}", bool(forward <= FORWARD and worst <= bound)


def print_rows(folder, names, answer):
    """A row for each model and exporter: answer(name, exporter, its folder) gives the text and whether it is fine. Whether all are."""
    good = True
    for name in names or MODELS:
        for exporter in ("script", "dynamo"):
            own = (folder / name / exporter).resolve()
            own.mkdir(parents=True, exist_ok=True)
            text, fine = answer(name, exporter, own)
            fine = fine or bool(EXPECTED.get((name, exporter)) and EXPECTED[name, exporter] in text)
            good &= fine
            print(f"| {name} | {exporter} | {text}{'' if fine else ' WRONG'} |", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainc", required=True)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # what exporters print where they fail
    trainc = pathlib.Path(options.trainc).resolve()
    print("| model | exporter | options | forward | largest relative difference of 20 losses from f64 |\n|---|---|---|---|---|")
    good = print_rows(options.folder, options.models, lambda *of: answer(trainc, *of))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
