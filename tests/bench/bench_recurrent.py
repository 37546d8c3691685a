# SPDX-License-Identifier: Apache-2.0
#
# A training step of a recurrent language model, 512 wide, 64 steps, batch 16, against PyTorch, in turns in one run on
# two threads. With --avx2 both sides do without AVX-512. Needs torch and onnx.
#
#   bench_recurrent.py TRAINC FOLDER [--cell lstm|gru] [--avx2] [--turns N]
import argparse
import json
import os
import resource
import statistics
import subprocess
import time

THREADS, BATCH, STEPS, WIDTH, VOCABULARY, UPDATES, WARM_UP = 2, 16, 64, 512, 1000, 20, 3
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def make_model(cell):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(VOCABULARY, WIDTH)
            self.rnn = {"lstm": nn.LSTM, "gru": nn.GRU}[cell](WIDTH, WIDTH, batch_first=True)
            self.head = nn.Linear(WIDTH, VOCABULARY)

        def forward(self, ids):
            return self.head(self.rnn(self.wte(ids))[0])

    return Model()


def time_pytorch(model, ids, labels, clock):
    optimizer, taken = torch.optim.SGD(model.parameters(), lr=0.1), []
    for update in range(UPDATES):
        rows = slice(update * BATCH, (update + 1) * BATCH)
        begin = clock()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(ids[rows]).flatten(0, 1), labels[rows].flatten()).backward()
        optimizer.step()
        taken.append(1e3 * (clock() - begin))
    return taken


def train(steps):
    subprocess.run(["model/trainer", "train", "--data", "ids=ids.npy", "--data", "labels=labels.npy", "--steps", str(steps),
                    "--learning-rate", "0.1", "--no-checkpoints", "--run", "run", "--overwrite", "--no-progress"],
                   check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": str(THREADS)})


def time_trainc():
    train(UPDATES)
    with open("run/log.jsonl") as log:
        return [record["milliseconds"] for record in map(json.loads, log) if "milliseconds" in record][WARM_UP:]


def processor_time_of_threads():
    return time.process_time() / THREADS


def processor_time_of_trainc():
    def of_children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (usage.ru_utime + usage.ru_stime) / THREADS

    times = [of_children()]
    for steps in (WARM_UP, UPDATES):
        train(steps)
        times.append(of_children())
    start, begun, all_done = times
    return [1e3 * ((all_done - begun) - (begun - start)) / (UPDATES - WARM_UP)]


def compile_model(trainc, model, ids, options):
    torch.onnx.export(model.eval(), (ids,), "model.onnx", dynamo=False, opset_version=17, do_constant_folding=False,
                      input_names=["ids"], output_names=["logits"])
    subprocess.run([trainc, "model.onnx", "--loss", "cross_entropy", "--optimizer", "sgd", "-o", "model", *options],
                   check=True, capture_output=True)


def report(name, milliseconds):
    print(f"{name:8} {min(milliseconds):7.1f} ms at best, {statistics.median(milliseconds):7.1f} in the median", flush=True)


def main(trainc, options):
    torch.set_num_threads(THREADS)
    model = make_model(options.cell)
    ids, labels = (torch.randint(0, VOCABULARY, (BATCH * UPDATES, STEPS)) for _ in range(2))
    numpy.save("ids.npy", ids.numpy())
    numpy.save("labels.npy", labels.numpy())
    compile_model(trainc, model, ids[:BATCH], ["--march", "x86-64-v3"] if options.avx2 else [])
    if options.processor_time:
        sides = {"pytorch": lambda: time_pytorch(model.train(), ids, labels, processor_time_of_threads)[WARM_UP:],
                 "trainc": processor_time_of_trainc}
    else:
        sides = {"pytorch": lambda: time_pytorch(model.train(), ids, labels, time.perf_counter)[WARM_UP:],
                 "trainc": time_trainc}
    all_taken = {name: [] for name in sides}
    for _ in range(options.turns):
        for name, side in sides.items():
            taken = side()
            report(name, taken)
            all_taken[name].append(taken)
    best, median = ({name: function(map(function, turns)) for name, turns in all_taken.items()} for function in (min, statistics.median))
    print(f"PyTorch's time by trainc's: {best['pytorch'] / best['trainc']:.2f} at best, {median['pytorch'] / median['trainc']:.2f} in the median")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("trainc", type=os.path.abspath)
    parser.add_argument("folder")
    parser.add_argument("--cell", choices=("lstm", "gru"), default="lstm")
    parser.add_argument("--avx2", action="store_true")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.avx2:
        os.environ.update(AVX2)  # read when torch is imported
    if arguments.processor_time:
        os.environ["OMP_WAIT_POLICY"] = "passive"
    import numpy
    import torch
    from torch import nn
    os.makedirs(arguments.folder, exist_ok=True)
    os.chdir(arguments.folder)
    main(arguments.trainc, arguments)
