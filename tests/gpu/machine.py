# SPDX-License-Identifier: Apache-2.0
#
# The machine that trainers run on: its GPU, the libraries that they need, and what they leave there.
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import site
import subprocess

# TFLOP/s of dense products, of NVIDIA's data sheets, by what the device's name has; the first that fits.
PEAKS = (
    ("H100 PCIe", {"f32": 51, "tf32": 378, "bf16": 756}),
    ("H100", {"f32": 67, "tf32": 494, "bf16": 989}),
    ("H200", {"f32": 67, "tf32": 494, "bf16": 989}),
    ("A100", {"f32": 19.5, "tf32": 156, "bf16": 312}),
    ("B200", {"f32": 75, "tf32": 1100, "bf16": 2250}),
)

LEAST_DRIVER = 580  # that runs CUDA 13

CUDNN = "libcudnn.so.9"
PLACES = ("/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib", "/usr/lib/x86_64-linux-gnu",
          "/usr/lib64")


def peaks_of(device):
    return next((peaks for name, peaks in PEAKS if name in device), None)


def program(name):
    """The path of a program of CUDA's; None: there is none."""
    return shutil.which(name) or max(glob.glob(f"/usr/local/cuda*/bin/{name}"), default=None)


def steps_of(log):
    rows = [json.loads(line) for line in pathlib.Path(log).read_text().splitlines()]
    return [row for row in rows if "step" in row and "loss" in row]


def bits_of(run):
    """A digest of the losses and of the last checkpoint's tensors."""
    digest = hashlib.sha256(json.dumps([row["loss"] for row in steps_of(run / "log.jsonl")]).encode())
    last = max((run / "checkpoints").iterdir())
    for file in sorted(last.glob("*.safetensors")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def missing_libraries(trainer, environment):
    """Names that the loader does not find, or finds too old."""
    output = subprocess.run(["ldd", trainer], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True).stdout
    names = re.findall(r"^\s*(\S+) => not found", output, re.M)
    return set(names) | {os.path.basename(path) for path in re.findall(r"(\S+): version `\S+' not found", output)}


def look_in(folder, environment):
    before = environment.get("LD_LIBRARY_PATH")
    environment["LD_LIBRARY_PATH"] = folder + (f":{before}" if before else "")


def find_libraries(trainer, payload, environment):
    """Adds the folders of what is missing: of CUDA, of Python's packages, or what came with the payload."""
    packages = [f"{folder}/nvidia/**/lib" for folder in [*site.getsitepackages(), site.getusersitepackages()]]
    for pattern in [*PLACES, *packages, str(payload / "libraries")]:
        missing = missing_libraries(trainer, environment)
        for folder in sorted(glob.glob(pattern, recursive=True)):
            if missing & set(os.listdir(folder)):
                look_in(folder, environment)
                missing = missing_libraries(trainer, environment)
    # A trainer opens cuDNN itself, where there is one.
    for pattern in [*PLACES, *packages]:
        folders = [folder for folder in sorted(glob.glob(pattern, recursive=True)) if CUDNN in os.listdir(folder)]
        if folders:
            look_in(folders[-1], environment)
            break
    return missing_libraries(trainer, environment)


def description(session):
    trainers = sorted(session.payload.glob("*/*/trainer"))
    missing = find_libraries(trainers[0], session.payload, session.environment)
    if missing:
        raise SystemExit(f"gpu.sh: these libraries are not found: {', '.join(sorted(missing))}\n"
                         "  try: LD_LIBRARY_PATH with their folders; CUDA 13 and NCCL have them")
    if not shutil.which("nvidia-smi"):
        return "no nvidia-smi on PATH"
    found = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if found.returncode != 0:
        raise SystemExit(f"gpu.sh: no GPU is visible here: nvidia-smi says: {found.stdout.strip()}\n"
                         "  try: a machine with one and its driver")
    line = found.stdout.strip().splitlines()[0]
    driver = line.split(",")[1].strip()
    if int(driver.split(".")[0]) < LEAST_DRIVER:
        raise SystemExit(f"gpu.sh: the driver is {driver}, and CUDA 13 needs {LEAST_DRIVER} or newer\n  try: another machine")
    return line
