# SPDX-License-Identifier: Apache-2.0
"""The CUDA kernels of the models of model_table.py, each exported by both of PyTorch's exporters, through nvcc for three
architectures: which of them spill registers, and the most registers that one takes. Equal kernels are compiled once. Ends with 1
where one spills, where nvcc has something to say, or where no export of a model compiles.

    python tests/models/compare/model_spills.py --trainc build/release/bin/trainc FOLDER            # all, some minutes on many cores
    python tests/models/compare/model_spills.py --trainc build/release/bin/trainc FOLDER resnet18 vit
    python tests/models/compare/model_spills.py --sources FOLDER                                     # nvcc alone, of a folder made before

Needs nvcc, and to make the sources what model_table.py needs.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ARCHITECTURES = (80, 90, 100)
ROOT = pathlib.Path(__file__).resolve().parents[3]


def make_sources(trainc, folder, names):
    """FOLDER/MODEL-EXPORTER/out/source/kernels.cu of each; the number of models without any."""
    import logging
    import warnings

    import model_table
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    missing = 0
    for name in names or model_table.MODELS:
        shape = model_table.MODELS[name][1]
        x, _ = model_table.data_of(shape and shape[1])
        made = []
        for exporter in ("script", "dynamo"):
            work = folder / f"{name}-{exporter}"
            work.mkdir(exist_ok=True)
            way, _ = model_table.compiled_export(trainc, name, exporter, work, x, "--target", "cuda", "--source-only")
            if way is not None:
                made.append(exporter)
        print(f"{name}: {', '.join(made) or 'no export compiles'}", flush=True)
        missing += not made
    return missing


def compile_kernels(nvcc, source, architecture):
    words = [nvcc, "-std=c++20", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-Xcompiler=-Wall,-Wextra", "-Werror", "all-warnings",
             "-Xptxas", "-v", "-gencode", f"arch=compute_{architecture},code=sm_{architecture}", "-I", ROOT, "-c", source, "-o", os.devnull]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    return architecture, done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainc")
    parser.add_argument("--sources", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    missing = 0
    if not options.sources:
        if not options.trainc:
            parser.error("--trainc or --sources")
        missing = make_sources(pathlib.Path(options.trainc).resolve(), options.folder, options.models)
    sources = sorted(options.folder.glob("*/out/source/kernels.cu"))
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    parts, distinct = max(1, min(len(sources), os.cpu_count())), options.folder / "distinct"
    subprocess.run([sys.executable, ROOT / "tests/train/compile/distinct_kernels.py", str(parts), distinct, *sources], check=True)
    spills, registers, kernels, failures = [], collections.Counter(), 0, []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(compile_kernels, nvcc, distinct / f"kernels_{part}.cu", architecture)
                for part in range(parts) for architecture in ARCHITECTURES]
        for job in jobs:
            architecture, code, text = job.result()
            if code:
                failures.append(text[-2000:])
            for entry in re.split(r"(?=Compiling entry function)", text)[1:]:
                kernels += 1
                name = re.search(r"'([^']+)'", entry).group(1)
                used = re.search(r"Used (\d+) registers", entry)
                registers[architecture] = max(registers[architecture], int(used.group(1)) if used else 0)
                stored = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", entry)
                if stored and any(map(int, stored.groups())):
                    spills.append(f"sm_{architecture} {name}: {stored.group(0)}")
    print(f"{len(sources)} programs, {kernels} compilations, {len(spills)} spill; registers at most: "
          + ", ".join(f"{most} (sm_{number})" for number, most in sorted(registers.items())))
    print("\n".join(spills + failures))
    return 1 if spills or failures or missing or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
