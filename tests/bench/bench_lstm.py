# SPDX-License-Identifier: Apache-2.0
#
# A training step of an LSTM language model, 512 wide, 64 steps, batch 16, against PyTorch, in turns in one run on two
# threads. Needs torch and onnx.
#
#   bench_lstm.py TRAINC FOLDER
import json
import os
import subprocess
import sys
import time

import numpy
import torch
from torch import nn

THREADS, BATCH, STEPS, WIDTH, VOCABULARY, UPDATES, TURNS = 2, 16, 64, 512, 1000, 20, 3


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.rnn = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        return self.head(self.rnn(self.wte(ids))[0])


def report(name, milliseconds):
    print(f"{name:8} {min(milliseconds):7.1f} ms at best, {sorted(milliseconds)[len(milliseconds) // 2]:7.1f} in the median", flush=True)


def peer(model, ids, labels):
    optimizer, taken = torch.optim.SGD(model.parameters(), lr=0.1), []
    for update in range(UPDATES):
        rows = slice(update * BATCH, (update + 1) * BATCH)
        begin = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids[rows]).flatten(0, 1), labels[rows].flatten()).backward()
        optimizer.step()
        taken.append(1e3 * (time.perf_counter() - begin))
    report("pytorch", taken)


def main(trainc, folder):
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    torch.set_num_threads(THREADS)
    model = Model()
    ids, labels = (torch.randint(0, VOCABULARY, (BATCH * UPDATES, STEPS)) for _ in range(2))
    numpy.save("ids.npy", ids.numpy())
    numpy.save("labels.npy", labels.numpy())
    torch.onnx.export(model.eval(), (ids[:BATCH],), "lstm.onnx", dynamo=False, opset_version=17, do_constant_folding=False,
                      input_names=["ids"], output_names=["logits"])
    subprocess.run([trainc, "lstm.onnx", "--loss", "cross_entropy", "--optimizer", "sgd", "-o", "lstm"], check=True, capture_output=True)
    for _ in range(TURNS):
        peer(model.train(), ids, labels)
        subprocess.run(["lstm/trainer", "train", "--data", "ids=ids.npy", "--data", "labels=labels.npy", "--steps", str(UPDATES),
                        "--learning-rate", "0.1", "--no-checkpoints", "--run", "run", "--overwrite", "--no-progress"],
                       check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": str(THREADS)})
        with open("run/log.jsonl") as log:
            report("trainc", [record["milliseconds"] for record in map(json.loads, log) if "milliseconds" in record])


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2])
