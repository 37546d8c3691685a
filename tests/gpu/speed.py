# SPDX-License-Identifier: Apache-2.0
#
# How fast GPT-2 trains: tokens per second, each product and each kernel, beside what the device can do and beside
# PyTorch.
import array
import collections
import json
import os
import pathlib
import random
import statistics
import sys

import machine
from session import Failed, Skipped

HERE = pathlib.Path(__file__).resolve().parent

FIRST = ("bf16-8x1024", "f32-4x16")  # of the payload, and of that for the emulator
OTHERS = ("bf16-64x1024", "f32-8x1024")
CLOSE = 0.02  # losses of bf16 to those of f32
LEAST_SECONDS = 40  # for one of them
LEAST_SECONDS_OF_TORCH = 60
LONGEST = 180  # seconds of one command, which may compile or choose algorithms first
BESIDE = "bf16-64x1024"
PROFILED_STEPS = 5


def make_parameters(session, folder):
    """The trainers of one model share them."""
    target = folder / "parameters.safetensors"
    if target.exists() or not target.with_suffix(".header").exists():
        return
    header = target.with_suffix(".header").read_bytes()
    for other in folder.parent.glob("*/parameters.safetensors"):
        if other.with_suffix(".header").read_bytes() == header:
            return os.link(other, target)
    session.run([sys.executable, HERE / "parameters.py", "fill", target])


def make_tokens(path, settings, steps):
    count = settings["batch"] * settings["sequence"] * (steps + 2)
    path.write_bytes(array.array("H", random.Random(1).choices(range(settings["vocabulary"]), k=count)).tobytes())


def is_product(kernel):
    return kernel.startswith(("matmul", "attention"))


def kernels_of(profile):
    """What each kernel takes of a training step: times, seconds, operations, bytes."""
    kernels = collections.defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for entry in profile["ranks"][0]["entries"]:
        for step in entry["steps"]:
            row = kernels[step["kernel"]]
            for place, value in enumerate((1, step["seconds"], step.get("flops", 0), step.get("bytes", 0))):
                row[place] += entry["times"] * value
    return kernels


def floor_of(kernels, peaks, math, copy_rate):
    """Seconds of a step in which each kernel is as fast as the device's multiply-adds or its memory."""
    return sum(max(flops / (1e12 * peaks[math if is_product(kernel) else "f32"]), moved / copy_rate)
               for kernel, (_, _, flops, moved) in kernels.items())


def table(kernels, copy_rate):
    yield f"{'ms':>10}{'times':>7}{'TFLOP/s':>10}{'GB/s':>9}{'of a copy':>11}"
    for kernel, (times, seconds, flops, moved) in sorted(
            kernels.items(), key=lambda item: (not is_product(item[0]), -item[1][1])):
        share = f"{moved / seconds / copy_rate:11.1%}" if copy_rate and seconds else f"{'':11}"
        yield (f"{1e3 * seconds:10.4f}{times:7g}{flops / max(seconds, 1e-12) * 1e-12:10.2f}"
               f"{moved / max(seconds, 1e-12) * 1e-9:9.0f}{share}  {kernel}")


def step_time(session, folder, settings, math):
    steps = session.options.steps
    tokens = folder / "tokens.bin"
    make_tokens(tokens, settings, steps)
    session.run([folder / "trainer", "train", "--tokens", tokens, "--token-type", "u16", "--steps", steps,
                 "--math", math, "--no-progress", "--no-checkpoints", "--no-tensorboard",
                 "--run", folder / "run", "--overwrite"], longest=LONGEST)
    rows = machine.steps_of(folder / "run" / "log.jsonl")
    if math == "ieee":
        session.losses[folder.name] = [row["loss"] for row in rows]
    return statistics.median(row["milliseconds"] for row in rows[steps // 4:])


def measure_one(session, folder, name, math):
    if session.left() < LEAST_SECONDS:
        raise Skipped(f"less than {LEAST_SECONDS} s are left")
    settings = json.loads((folder / "settings.json").read_text())
    make_parameters(session, folder)
    median = step_time(session, folder, settings, math)
    rate = 1e3 * settings["batch"] * settings["sequence"] / median
    found = session.document["speed"][name] = {**settings, "milliseconds": median, "tokens_per_second": rate}
    path = session.results / f"profile-{name}.json"
    session.run([folder / "trainer", "profile", "--steps", PROFILED_STEPS, "--math", math, "-o", path])
    profile = json.loads(path.read_text())
    kernels, copy_rate, peaks = kernels_of(profile), profile.get("copy_rate"), machine.peaks_of(profile["device"])
    products = [row for kernel, row in kernels.items() if kernel.startswith("matmul")]
    found["device"] = profile["device"]
    found["copy_rate"] = copy_rate
    found["flops_of_products"] = sum(row[2] for row in products) / sum(row[1] for row in products)
    words = [f"{median:.2f} ms, {rate:.0f} tokens/s", f"products at {found['flops_of_products'] * 1e-12:.1f} TFLOP/s"]
    if copy_rate:
        words.append(f"a copy at {copy_rate * 1e-9:.0f} GB/s")
    if copy_rate and peaks:
        precision = "tf32" if math == "tf32" else settings["precision"]
        found["share_of_roofline"] = 1e3 * floor_of(kernels, peaks, precision, copy_rate) / median
        words.append(f"{found['share_of_roofline']:.1%} of the roofline")
    return "\n".join([", ".join(words), *table(kernels, copy_rate)])


def compare_precisions(session):
    narrow, wide = session.losses["bf16-8x1024"], session.losses["f32-8x1024"]
    worst = max(abs(a - b) for a, b in zip(narrow, wide))
    if not worst <= CLOSE:
        raise Failed(f"losses of bf16 are up to {worst:.3g} from those of f32; at most {CLOSE} is right\n{narrow}\n{wide}")
    return f"{worst:.1e}"


def measure(session, names):
    for name in names:
        folder = session.payload / "speed" / name
        if not folder.exists():
            continue
        maths = {"ieee": folder.name}
        if folder.name.startswith("f32"):
            maths["tf32"] = "t" + folder.name
        for math, name in maths.items():
            session.check(f"GPT-2 {name}", lambda: measure_one(session, folder, name, math))
    if names == OTHERS and {"bf16-8x1024", "f32-8x1024"} <= session.losses.keys():
        session.check("GPT-2: losses of bf16 beside f32", lambda: compare_precisions(session))


def count(session):
    """Nsight Compute's counters of the kernels of a step, where it is found."""
    program, folder = machine.program("ncu"), session.payload / "speed" / FIRST[0]
    if not program or not folder.exists():
        return session.say("skipped counters: no ncu on PATH or in CUDA's folder, or no GPT-2")

    def work():
        try:
            profile(json.loads((folder / "settings.json").read_text()))
        except Failed as problem:
            log = session.results / "ncu.csv"
            if "ERR_NVGPUCTRPERM" in str(problem) + (log.read_text() if log.exists() else ""):
                raise Skipped("counters are for administrators here") from None
            raise

    def profile(settings):
        make_tokens(folder / "tokens.bin", settings, 2)
        # at the clocks that training has
        session.run([program, "--clock-control", "none", "--set", "basic", "--csv", "--log-file", session.results / "ncu.csv",
                     folder / "trainer", "train", "--tokens", folder / "tokens.bin", "--token-type", "u16", "--steps", 2,
                     "--no-progress", "--no-checkpoints", "--no-tensorboard", "--no-tuning", "--run", folder / "counted",
                     "--overwrite"], longest=LONGEST)
    session.check("counters of GPT-2", work)


def compare_torch(session):
    """In the environment that the script was started in: PyTorch brings its libraries."""
    batch, sequence = BESIDE.split("-")[1].split("x")

    def work(vocabulary):
        if session.left() < LEAST_SECONDS_OF_TORCH:
            raise Skipped(f"less than {LEAST_SECONDS_OF_TORCH} s are left")
        try:
            output = session.run([sys.executable, HERE / "torch_gpt2.py", "--batch", batch, "--sequence", sequence,
                                  "--vocabulary", vocabulary], longest=LONGEST,
                                 environment={"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
                                              "TORCHINDUCTOR_CACHE_DIR": str(session.payload / "torch")})
        except Failed as problem:
            if str(problem).endswith("exit code 4"):
                raise Skipped("no PyTorch with CUDA") from None
            raise
        found = session.document["speed"][f"torch.compile {vocabulary}"] = json.loads(output.splitlines()[-1])
        words = f"{found['milliseconds']:.2f} ms, {found['tokens_per_second']:.0f} tokens/s"
        if BESIDE in session.document["speed"]:
            ratio = found["milliseconds"] / session.document["speed"][BESIDE]["milliseconds"]
            words += f", {ratio:.2f} times the time of trainc"
        return words

    if (session.payload / "speed" / BESIDE).exists():
        for vocabulary in (50257, 50304):  # GPT-2's, and a multiple of 64
            session.check(f"torch.compile {BESIDE}, vocabulary {vocabulary}", lambda: work(vocabulary))
