# SPDX-License-Identifier: Apache-2.0
#
# Low-rank adapters on q and v of a model of Qwen2.5's shapes, in PyTorch with PEFT in bf16 and in trainers of ours, one
# after the other in one run: seconds of a step (the fastest of --steps) and the peak of resident memory of each process.
# The weights are random on both sides. A trainer's model is one of large_llama.py with the same sizes:
#
#   large_llama.py q.onnx 24 896 4864 14 2 151936 512; trainc-fill q.onnx -o q05.onnx
#   trainc q05.onnx --loss cross_entropy --lora 'layers.*\.(q|v)\.weight' --lora-alpha 16 --precision bf16 \
#     --frozen-type bf16 --no-predictions -o plain     # and once more with --recompute full -o again
#   bench_lora.py --trainer plain --recomputing again
#
# --sizes: layers, hidden, inner, heads, key heads, vocabulary, length.
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

PYTORCH = """
import json, resource, sys, time
import torch
from peft import LoraConfig, get_peft_model
from transformers import Qwen2Config, Qwen2ForCausalLM
layers, hidden, inner, heads, key_heads, vocabulary, length = map(int, sys.argv[1].split(","))
torch.set_num_threads(int(sys.argv[4]))
config = Qwen2Config(vocab_size=vocabulary, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
                     num_attention_heads=heads, num_key_value_heads=key_heads, tie_word_embeddings=True,
                     max_position_embeddings=max(length, 1024), use_cache=False)
torch.set_default_dtype(torch.bfloat16)
base = Qwen2ForCausalLM(config)
model = get_peft_model(base, LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])).train()
if sys.argv[2] == "yes":
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
seconds = []
for _ in range(int(sys.argv[3])):
    tokens = torch.randint(0, vocabulary, (1, length))
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    seconds.append(time.perf_counter() - begin)
print(json.dumps([min(seconds), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


def write_tokens(path, rows, length, vocabulary, seed):
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, length)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    numbers = [(i * 7919 + seed) % vocabulary for i in range(rows * length)]
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}q", *numbers))


def of_pytorch(arguments, recomputing):
    words = [sys.executable, "-c", PYTORCH, arguments.sizes, recomputing, str(arguments.steps), str(arguments.threads)]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def of_trainer(arguments, folder, scratch):
    run = os.path.join(scratch, "run")
    process = subprocess.Popen(
        [os.path.join(folder, "trainer"), "train", "--data", f"tokens={scratch}/tokens.npy", "--data", f"labels={scratch}/labels.npy",
         "--steps", str(arguments.steps), "--threads", str(arguments.threads), "--no-checkpoints", "--no-progress", "--run", run,
         "--overwrite"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, f"{folder}: exit code {status}"
    with open(os.path.join(run, "log.jsonl")) as log:
        seconds = [json.loads(line)["milliseconds"] / 1000 for line in log if '"gradient_norm"' in line]
    return [min(seconds), usage.ru_maxrss * 1024]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", required=True, metavar="FOLDER")
    parser.add_argument("--recomputing", metavar="FOLDER", help="compiled with --recompute; PyTorch checkpoints its blocks beside it")
    parser.add_argument("--sizes", default="24,896,4864,14,2,151936,512")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--without-pytorch", action="store_true")
    arguments = parser.parse_args()
    vocabulary, length = map(int, arguments.sizes.split(",")[-2:])
    with tempfile.TemporaryDirectory() as scratch:
        for name, seed in (("tokens", 1), ("labels", 2)):
            write_tokens(f"{scratch}/{name}.npy", arguments.steps, length, vocabulary, seed)
        for folder, recomputing in ((arguments.trainer, "no"), (arguments.recomputing, "yes")):
            if not folder:
                continue
            begin = time.perf_counter()
            seconds, peak = of_trainer(arguments, folder, scratch)
            print(f"recomputing {recomputing}: ours {seconds:.2f} s a step, {peak / 1e9:.2f} GB", flush=True)
            if not arguments.without_pytorch:
                others, memory = of_pytorch(arguments, recomputing)
                print(f"  PyTorch with PEFT {others:.2f} s, {memory / 1e9:.2f} GB; {others / seconds:.2f} times its speed, "
                      f"{peak / memory:.2f} of its memory; {time.perf_counter() - begin:.0f} s in all", flush=True)


main()
