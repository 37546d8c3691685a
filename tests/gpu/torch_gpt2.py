# SPDX-License-Identifier: Apache-2.0
#
# A training step of GPT-2 124M in PyTorch by torch.compile: bf16 autocast over parameters of f32, fused attention,
# fused AdamW. Prints one line of JSON. Ends with 4 where there is no PyTorch, or it has no such device.
#
#   torch_gpt2.py [--batch N] [--sequence N] [--steps N] [--layers N] [--width N] [--vocabulary N] [--device cuda]
import argparse
import json
import statistics
import sys
import time

NO_TORCH = 4
WARM_UP = 5  # steps

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    sys.exit(NO_TORCH)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, sequence, width = x.shape
        query, key, value = (
            part.view(batch, sequence, self.heads, -1).transpose(1, 2)
            for part in self.attention(self.norm_1(x)).split(width, dim=2))
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.contract(functional.gelu(self.expand(self.norm_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, vocabulary, layers, width, positions):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, width // 64) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, labels):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("batch", 64), ("sequence", 1024), ("steps", 20), ("layers", 12), ("width", 768),
                        ("vocabulary", 50257)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit(NO_TORCH)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Gpt2(arguments.vocabulary, arguments.layers, arguments.width, arguments.sequence).to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, fused=True)
    compiled = torch.compile(model)
    shape = (arguments.batch, arguments.sequence)
    times = []
    for step in range(WARM_UP + arguments.steps):
        tokens, labels = (torch.randint(arguments.vocabulary, shape, device=arguments.device) for _ in range(2))
        begin = time.perf_counter()
        with torch.autocast(arguments.device, torch.bfloat16):
            loss = compiled(tokens, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()  # waits for the device
        times.append(1e3 * (time.perf_counter() - begin))
    median = statistics.median(times[WARM_UP:])
    print(json.dumps({"torch": torch.__version__, "batch": arguments.batch, "sequence": arguments.sequence,
                      "milliseconds": median, "tokens_per_second": 1e3 * shape[0] * shape[1] / median}))


main()
