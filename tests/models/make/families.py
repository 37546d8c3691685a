# SPDX-License-Identifier: Apache-2.0
#
# The PyTorch modules that the fixtures are exports of, their seeded weights
# and the batches they are trained on. A family is one module with one set of
# weights; every export of it must train to the same losses.
import copy
import math

import numpy
import torch
from torch import nn
from torch.nn import functional

STEPS = 20
BATCH = 4
SEQUENCE = 16
POSITIONS = 24
VOCABULARY = 64
WIDTH = 32
HEADS = 4
LAYERS = 2
MLP_BATCH = 8
MLP_INPUTS = 12
MLP_HIDDEN = 33  # odd: no multiple of a vector length
MLP_OUTPUTS = 7
IMAGE_CHANNELS = 3
IMAGE_SIZE = 11
CNN_WIDTH = 6
RECURRENT_INPUTS = 24


class Mlp(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.first = nn.Linear(MLP_INPUTS, MLP_HIDDEN)
        self.activation = activation
        self.second = nn.Linear(MLP_HIDDEN, MLP_OUTPUTS)

    def forward(self, x):
        return self.second(self.activation(self.first(x)))


class LayerNorm(nn.Module):
    """Layer norm with an optional bias, as nanoGPT has it."""

    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    """Causal self-attention; `mask` says how causality is written: "buffer"
    (masked_fill by a registered tril buffer), "tril" (a mask built in the
    forward pass), "add" (a float mask added) or "sdpa" (the fused function)."""

    def __init__(self, width, heads, positions, bias, mask):
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        self.heads = heads
        self.width = width
        self.mask = mask
        if mask == "buffer":
            tril = torch.tril(torch.ones(positions, positions))
            self.register_buffer("causal", tril.view(1, 1, positions, positions), persistent=False)

    def scores_masked(self, scores, length):
        if self.mask == "buffer":
            return scores.masked_fill(self.causal[:, :, :length, :length] == 0, float("-inf"))
        ones = torch.ones(length, length, device=scores.device)
        if self.mask == "tril":
            return scores.masked_fill(torch.tril(ones) == 0, float("-inf"))
        return scores + torch.triu(ones * -1e9, diagonal=1).to(scores.dtype)

    def forward(self, x):
        batch, length, width = x.size()
        query, key, value = self.c_attn(x).split(self.width, dim=2)
        key = key.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        query = query.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        value = value.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        if self.mask == "sdpa":
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            scores = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(key.size(-1)))
            y = functional.softmax(self.scores_masked(scores, length), dim=-1) @ value
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        return self.c_proj(y)


class MultiLayerPerceptron(nn.Module):
    def __init__(self, width, bias, gelu):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width, bias=bias)
        self.gelu = nn.GELU(approximate=gelu)
        self.c_proj = nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        return self.c_proj(self.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width, heads, positions, bias, mask, gelu):
        super().__init__()
        self.ln_1 = LayerNorm(width, bias)
        self.attn = Attention(width, heads, positions, bias, mask)
        self.ln_2 = LayerNorm(width, bias)
        self.mlp = MultiLayerPerceptron(width, bias, gelu)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(nn.Module):
    """GPT-2 in the manner of nanoGPT: tied embedding and head, learned positions."""

    def __init__(self, vocabulary=VOCABULARY, width=WIDTH, heads=HEADS, layers=LAYERS,
                 positions=POSITIONS, bias=True, mask="buffer", gelu="tanh"):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(positions, width)
        self.h = nn.ModuleList(
            Block(width, heads, positions, bias, mask, gelu) for _ in range(layers))
        self.ln_f = LayerNorm(width, bias)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, input_ids):
        positions = torch.arange(0, input_ids.size(1), dtype=torch.long, device=input_ids.device)
        x = self.wte(input_ids) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class TextClassifier(nn.Module):
    """A class for each text: its tokens attend to those of the mask, whose mean is taken."""

    def __init__(self, vocabulary=256, width=64, heads=4, layers=2, positions=256, classes=4):
        super().__init__()
        self.heads = heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.projections = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.mixes = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.perceptrons = nn.ModuleList(MultiLayerPerceptron(width, True, "tanh") for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, input_ids, attention_mask):
        batch, length = input_ids.shape
        x = self.tokens(input_ids) + self.positions(torch.arange(length, device=input_ids.device))
        present = attention_mask[:, None, None, :] > 0
        for i, (projection, mix, perceptron) in enumerate(zip(self.projections, self.mixes, self.perceptrons)):
            parts = projection(self.norms[2 * i](x)).view(batch, length, 3, self.heads, -1)
            query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
            y = functional.scaled_dot_product_attention(query, key, value, attn_mask=present)
            x = x + mix(y.transpose(1, 2).reshape(batch, length, -1))
            x = x + perceptron(self.norms[2 * i + 1](x))
        weights = attention_mask[:, :, None].to(x.dtype)
        return self.head((x * weights).sum(1) / weights.sum(1))


class HuggingFaceGpt2(nn.Module):
    """`GPT2LMHeadModel` that takes token ids and returns the logits alone."""

    def __init__(self, attention, activation="gelu_new"):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel
        config = GPT2Config(
            vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS,
            n_head=HEADS, activation_function=activation, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, use_cache=False, bos_token_id=0, eos_token_id=0,
            attn_implementation=attention)
        self.model = GPT2LMHeadModel(config)

    def forward(self, input_ids):
        # TorchScript cannot export the mask that is made when none is given
        mask = torch.ones_like(input_ids)
        return self.model(input_ids=input_ids, attention_mask=mask, use_cache=False).logits


class NormMlp(nn.Module):
    """Linear layers with layer norms between them; biases start at zero, as many recipes have it."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(MLP_INPUTS, MLP_HIDDEN)
        self.norm = nn.LayerNorm(MLP_HIDDEN)
        self.second = nn.Linear(MLP_HIDDEN, MLP_HIDDEN)
        self.last_norm = nn.LayerNorm(MLP_HIDDEN)
        self.head = nn.Linear(MLP_HIDDEN, MLP_OUTPUTS)
        for layer in (self.first, self.second, self.head):
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        x = self.norm(functional.relu(self.first(x)))
        return self.head(self.last_norm(functional.relu(self.second(x))))


class BatchNormMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(MLP_INPUTS, MLP_HIDDEN)
        self.norm = nn.BatchNorm1d(MLP_HIDDEN)
        self.head = nn.Linear(MLP_HIDDEN, MLP_OUTPUTS)

    def forward(self, x):
        return self.head(functional.relu(self.norm(self.first(x))))


class SharedMlp(nn.Module):
    """One layer used twice, copies of it that only start equal, and norms of both kinds."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(MLP_INPUTS, MLP_HIDDEN)
        self.shared = nn.Linear(MLP_HIDDEN, MLP_HIDDEN)
        self.copies = nn.ModuleList(copy.deepcopy(self.shared) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(MLP_HIDDEN) for _ in range(4))
        self.norms[2] = self.norms[1]
        self.head = nn.Linear(MLP_HIDDEN, MLP_OUTPUTS)

    def forward(self, x):
        x = self.first(x)
        for norm, layer in zip(self.norms, [self.shared, *self.copies, self.shared]):
            x = functional.relu(layer(norm(x)))
        return self.head(x)


class HuggingFace(nn.Module):
    """A model of transformers that takes token ids and returns the logits alone. Of the TorchScript
    exporter some need an attention mask; encoder and decoder read the same tokens."""

    def __init__(self, kind, mask=False, **options):
        super().__init__()
        import transformers
        # PyTorch's embeddings give their padding row no gradient: no batch here has that token.
        padding = {} if kind == "GPT2" else {"pad_token_id": VOCABULARY}
        config = getattr(transformers, kind + "Config")(
            vocab_size=VOCABULARY + len(padding), bos_token_id=0, eos_token_id=1, **padding,
            **options)
        suffix = {"Bert": "ForMaskedLM", "T5": "ForConditionalGeneration",
                  "Pegasus": "ForConditionalGeneration", "GPT2": "LMHeadModel"}
        self.model = getattr(transformers, kind + suffix.get(kind, "ForCausalLM"))(config)
        self.mask = mask
        self.decodes = kind in ("T5", "Pegasus")
        self.caches = kind != "Bert"

    def forward(self, input_ids):
        arguments = {"input_ids": input_ids}
        if self.mask:
            arguments["attention_mask"] = torch.ones_like(input_ids)
        if self.decodes:
            arguments["decoder_input_ids"] = input_ids
        if self.caches:
            arguments["use_cache"] = False
        return self.model(**arguments).logits


def fresh_bert():
    return HuggingFace("Bert", hidden_size=WIDTH, num_hidden_layers=LAYERS,
                       num_attention_heads=HEADS, intermediate_size=2 * WIDTH,
                       max_position_embeddings=POSITIONS, hidden_dropout_prob=0.0,
                       attention_probs_dropout_prob=0.0)


def fresh_gpt2():
    return HuggingFace("GPT2", mask=True, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS,
                       n_head=HEADS, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def fresh_decoder(kind, **options):
    return HuggingFace(kind, mask=True, hidden_size=WIDTH, num_hidden_layers=LAYERS,
                       num_attention_heads=HEADS, num_key_value_heads=2,
                       intermediate_size=2 * WIDTH, max_position_embeddings=POSITIONS, **options)


def fresh_t5():
    return HuggingFace("T5", d_model=WIDTH, d_kv=WIDTH // HEADS, d_ff=2 * WIDTH, num_layers=1,
                       num_heads=HEADS, dropout_rate=0.0, decoder_start_token_id=0)


def fresh_pegasus():
    return HuggingFace("Pegasus", d_model=WIDTH, encoder_layers=1, decoder_layers=1,
                       encoder_attention_heads=HEADS, decoder_attention_heads=HEADS,
                       encoder_ffn_dim=2 * WIDTH, decoder_ffn_dim=2 * WIDTH,
                       max_position_embeddings=POSITIONS, dropout=0.0, attention_dropout=0.0,
                       activation_dropout=0.0, decoder_start_token_id=0)


class Cnn(nn.Module):
    """A small network for images: convolutions with and without stride, groups, dilation and bias."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(IMAGE_CHANNELS, CNN_WIDTH, 3, padding=1)
        self.reduce = nn.Conv2d(CNN_WIDTH, 2 * CNN_WIDTH, 3, stride=2, padding=1, bias=False)
        self.depthwise = nn.Conv2d(2 * CNN_WIDTH, 2 * CNN_WIDTH, 3, padding=2, dilation=2,
                                   groups=2 * CNN_WIDTH)
        self.pointwise = nn.Conv2d(2 * CNN_WIDTH, 3 * CNN_WIDTH, 1)
        self.head = nn.Linear(3 * CNN_WIDTH, MLP_OUTPUTS)

    def forward(self, x):
        x = functional.relu(self.stem(x))
        x = functional.relu(self.reduce(x))
        x = functional.relu(self.pointwise(self.depthwise(x)))
        return self.head(x.mean((2, 3)))


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width, momentum=0.3)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + x)


class ResNet(nn.Module):
    """A small residual network: convolutions with batch norm, a pool of largest elements, one of means."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(IMAGE_CHANNELS, CNN_WIDTH, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(CNN_WIDTH)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer = ResidualBlock(CNN_WIDTH)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(CNN_WIDTH, MLP_OUTPUTS)

    def forward(self, x):
        x = self.maxpool(functional.relu(self.bn1(self.conv1(x))))
        return self.head(torch.flatten(self.avgpool(self.layer(x)), 1))


class DenseNet(nn.Module):
    """Norms in front of convolutions, so that no exporter folds them, and concatenated features."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(IMAGE_CHANNELS, CNN_WIDTH, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(CNN_WIDTH)
        self.conv1 = nn.Conv2d(CNN_WIDTH, CNN_WIDTH, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * CNN_WIDTH)
        self.pool = nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True)
        self.head = nn.Linear(2 * CNN_WIDTH, MLP_OUTPUTS)

    def forward(self, x):
        x = self.conv(x)
        y = self.conv1(functional.relu(self.norm1(x)))
        x = functional.relu(self.norm2(torch.cat([x, y], 1)))
        return self.head(self.pool(x).mean((2, 3)))


class MixedModes(nn.Module):
    """What a file does not say by itself: a norm in eval() beside one in train(), a frozen layer, a tied
    weight, a layer called twice, a number that is learnt and a table that is not."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(IMAGE_CHANNELS, CNN_WIDTH, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(CNN_WIDTH)
        self.frozen = nn.Conv2d(CNN_WIDTH, CNN_WIDTH, 1)
        self.norm2 = nn.BatchNorm2d(CNN_WIDTH)
        self.twice = nn.Linear(CNN_WIDTH, CNN_WIDTH)
        self.tied = nn.Linear(CNN_WIDTH, CNN_WIDTH)
        self.tied.weight = self.twice.weight
        self.before, self.behind = nn.LayerNorm(CNN_WIDTH), nn.LayerNorm(CNN_WIDTH)
        self.scale = nn.Parameter(torch.ones(()))
        self.register_buffer("table", torch.ones(CNN_WIDTH))
        self.head = nn.Linear(CNN_WIDTH, MLP_OUTPUTS)
        self.frozen.requires_grad_(False)
        with torch.no_grad():
            self.norm1.running_mean.uniform_(-0.5, 0.5)
            self.norm1.running_var.uniform_(0.5, 2)

    def train(self, mode=True):
        super().train(mode)
        self.norm1.eval()
        return self

    def forward(self, x):
        x = functional.relu(self.norm1(self.conv1(x)))
        x = self.norm2(self.frozen(x)).mean((2, 3))
        x = functional.gelu(self.twice(self.twice(self.before(x)))) * self.table
        return self.head(self.behind(self.tied(x)) * self.scale)


def seed_weights(module, seed):
    """Weights that put every part of the model to work: norms off one, biases off zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() >= 2:
                parameter.copy_(0.15 * noise)
            elif name.endswith("weight"):
                parameter.copy_(1.0 + 0.1 * noise)
            else:
                parameter.copy_(0.05 * noise)
    return module.eval()


def tokens(name):
    return {"inputs": {"input_ids": "input_ids.npy"}, "labels": name, "batch": BATCH,
            "loss": "cross_entropy"}


def images():
    return {"inputs": {"x": "images.npy"}, "labels": "image_classes.npy", "batch": MLP_BATCH,
            "loss": "cross_entropy"}


def vectors(labels, loss):
    return {"inputs": {"x": "x.npy"}, "labels": labels, "batch": MLP_BATCH, "loss": loss}


class Recurrent(nn.Module):
    """A language model of recurrent layers, whose initial states are zeros made in the graph."""

    def __init__(self, layers, **options):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, RECURRENT_INPUTS)
        self.rnn = layers(RECURRENT_INPUTS, WIDTH, num_layers=LAYERS, batch_first=True, **options)
        self.head = nn.Linear(WIDTH * (2 if self.rnn.bidirectional else 1), VOCABULARY)

    def forward(self, input_ids):
        states, _ = self.rnn(self.wte(input_ids))
        return self.head(states)


def fresh_lstm():
    """Biases of zeros, as other frameworks begin with, so that those of all layers and directions are equal."""
    model = Recurrent(nn.LSTM, bidirectional=True)
    for name, parameter in model.rnn.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(parameter)
    return model


FAMILIES = {
    "mlp_relu": (lambda: Mlp(nn.ReLU()), 1, vectors("classes.npy", "cross_entropy")),
    "mlp_gelu": (lambda: Mlp(nn.GELU()), 2, vectors("targets.npy", "mse")),
    "mlp_tanh_gelu": (lambda: Mlp(nn.GELU(approximate="tanh")), 3,
                      vectors("bits.npy", "bce_with_logits")),
    "nanogpt": (lambda: NanoGpt(), 4, tokens("labels.npy")),
    "nanogpt_erf": (lambda: NanoGpt(mask="tril", gelu="none"), 5, tokens("labels_ignored.npy")),
    "nanogpt_add": (lambda: NanoGpt(mask="add", gelu="tanh"), 6, tokens("labels.npy")),
    "nanogpt_sdpa": (lambda: NanoGpt(mask="sdpa", gelu="none", bias=False), 7,
                     tokens("labels.npy")),
    "gpt2": (lambda: HuggingFaceGpt2("eager"), 8, tokens("labels.npy")),
    "gpt2_sdpa": (lambda: HuggingFaceGpt2("sdpa", "gelu"), 9, tokens("labels_ignored.npy")),
    # As their constructors leave them: many parameters are equal, many are zero.
    "fresh_norm_mlp": (NormMlp, 10, vectors("classes.npy", "cross_entropy")),
    "fresh_shared_mlp": (SharedMlp, 11, vectors("classes.npy", "cross_entropy")),
    "fresh_bert": (fresh_bert, 12, tokens("labels.npy")),
    "fresh_gpt2": (fresh_gpt2, 13, tokens("labels.npy")),
    "fresh_llama": (lambda: fresh_decoder("Llama"), 14, tokens("labels.npy")),
    "fresh_gemma": (lambda: fresh_decoder("Gemma", head_dim=WIDTH // HEADS), 15,
                    tokens("labels.npy")),
    "fresh_t5": (fresh_t5, 16, tokens("labels.npy")),
    "fresh_pegasus": (fresh_pegasus, 17, tokens("labels.npy")),
    "cnn": (Cnn, 18, images()),
    "fresh_cnn": (Cnn, 19, images()),
    # Batch norms: trained in train(), which is another function than eval().
    "resnet": (ResNet, 20, images()),
    "fresh_densenet": (DenseNet, 21, images()),
    "fresh_mixed_modes": (MixedModes, 27, images()),
    "lstm": (lambda: Recurrent(nn.LSTM), 23, tokens("labels.npy")),
    "gru": (lambda: Recurrent(nn.GRU), 24, tokens("labels.npy")),
    "rnn": (lambda: Recurrent(nn.RNN, bidirectional=True), 25, tokens("labels.npy")),
}


def trains_batch_norm(family):
    return family in ("resnet", "fresh_densenet", "fresh_mixed_modes")


def is_fresh(family):
    return family.startswith("fresh_")


def make(family):
    build, seed, recipe = FAMILIES[family]
    if is_fresh(family):
        torch.manual_seed(seed)
        return build().eval(), recipe
    return seed_weights(build(), seed), recipe


def make_text():
    """A flat text of byte tokens, as many windows as the batches hold, and the last label."""
    random = numpy.random.default_rng(21)
    text = [1]
    for _ in range(STEPS * BATCH * SEQUENCE):
        text.append(int(random.integers(0, VOCABULARY)) if random.random() < 0.2
                    else (7 * text[-1] + 5) % VOCABULARY)
    return numpy.array(text, numpy.uint8)


def windows(text):
    """The text as a trainer reads it: windows that follow each other, labels one further."""
    tokens = text.astype(numpy.int64)
    shape = (STEPS * BATCH, SEQUENCE)
    return {"input_ids.npy": tokens[:-1].reshape(shape), "labels.npy": tokens[1:].reshape(shape)}


def make_pictures():
    """Waves with one direction and length per class, at a place of their own and with noise."""
    random = numpy.random.default_rng(22)
    samples = STEPS * MLP_BATCH
    classes = random.integers(0, MLP_OUTPUTS, samples)
    rows, columns = numpy.meshgrid(range(IMAGE_SIZE), range(IMAGE_SIZE), indexing="ij")
    angles = numpy.pi * classes / MLP_OUTPUTS
    along = (numpy.cos(angles)[:, None, None] * rows + numpy.sin(angles)[:, None, None] * columns)
    phases = random.uniform(0, 2 * numpy.pi, (samples, IMAGE_CHANNELS, 1, 1))
    noise = 0.3 * random.standard_normal((samples, IMAGE_CHANNELS, IMAGE_SIZE, IMAGE_SIZE))
    pictures = numpy.sin((0.8 + 0.1 * classes)[:, None, None, None] * along[:, None] + phases) + noise
    return pictures.astype(numpy.float32), classes.astype(numpy.int64)


def make_data():
    """All batches, by file name: STEPS times the batch along the first axis."""
    random = numpy.random.default_rng(20)
    # a text with structure, so that the loss falls: the next token is mostly a function of this one
    rows = STEPS * BATCH
    text = numpy.zeros((rows, SEQUENCE + 1), numpy.int64)
    text[:, 0] = random.integers(0, VOCABULARY, rows)
    for position in range(SEQUENCE):
        follow = (5 * text[:, position] + 3) % VOCABULARY
        stray = random.integers(0, VOCABULARY, rows)
        text[:, position + 1] = numpy.where(random.random(rows) < 0.8, follow, stray)
    labels = text[:, 1:].copy()
    ignored = labels.copy()
    ignored[random.random(ignored.shape) < 0.25] = -100
    samples = STEPS * MLP_BATCH
    x = random.standard_normal((samples, MLP_INPUTS)).astype(numpy.float32)
    secret = random.standard_normal((MLP_INPUTS, MLP_OUTPUTS)).astype(numpy.float32)
    scores = x @ secret
    pictures, classes = make_pictures()
    return {
        "input_ids.npy": text[:, :-1].copy(),
        "labels.npy": labels,
        "labels_ignored.npy": ignored,
        "x.npy": x,
        "classes.npy": scores.argmax(axis=1).astype(numpy.int64),
        "targets.npy": numpy.tanh(scores).astype(numpy.float32),
        "bits.npy": (scores > 0).astype(numpy.float32),
        "images.npy": pictures,
        "image_classes.npy": classes,
    }


def loss_of(kind, output, labels):
    if kind == "cross_entropy":
        return functional.cross_entropy(
            output.reshape(-1, output.shape[-1]), labels.reshape(-1), ignore_index=-100)
    if kind == "mse":
        return functional.mse_loss(output, labels)
    return functional.binary_cross_entropy_with_logits(output, labels)
