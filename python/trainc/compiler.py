# SPDX-License-Identifier: Apache-2.0
"""Runs trainc, and keeps what it made for the next time."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path


class CompileError(RuntimeError):
    """The model was not compiled. The text is all that trainc said."""


class CompileWarning(UserWarning):
    """What trainc warns of; the text ends with the name of the finding, which `accept=[NAME]` turns off."""


def find_program():
    """The path of trainc: `TRAINC` of the environment, else the one beside this package (of a wheel, an installation or
    a build tree), else the one in PATH."""
    here = Path(__file__).resolve().parent
    builds = sorted(here.parents[1].glob("build/*/bin/trainc"), key=lambda path: path.stat().st_mtime, reverse=True)
    beside = [here / "bin" / "trainc", here.parents[1] / "bin" / "trainc", here.parents[3] / "bin" / "trainc"]
    for path in [*beside, *builds] if "TRAINC" not in os.environ else [Path(os.environ["TRAINC"])]:
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("trainc") if "TRAINC" not in os.environ else None
    if not found:
        raise CompileError("trainc was not found\n  try: the environment variable TRAINC with its path, or PATH with its folder")
    return found


def compile(path, *, loss=None, optimizer=None, dims=None, output=None, model=None, **options):
    """Compiles an ONNX file and returns it as a `trainc.Model`.

    path        the ONNX file
    loss        `cross_entropy`, `mse,reduction=sum`, ...; a list for the sum of several (docs/losses.md)
    optimizer   `adamw` by default
    dims        sizes of symbolic dimensions: {"batch": 8}
    output      the folder; default: one in the cache (`TRAINC_CACHE`, else ~/.cache/trainc), which is used again as long
                as the model's files, the options and the compiler are the same
    model       arguments of Model, as a dictionary: {"threads": 2}
    options     further options of trainc: precision="bf16", freeze=["wte.*"], ema=True

    Raises CompileError; warns with CompileWarning.
    """
    from trainc.model import Model
    return Model(library_of(path, loss=loss, optimizer=optimizer, dims=dims, output=output, **options), **(model or {}))


def library_of(path, *, loss=None, optimizer=None, dims=None, output=None, is_temporary=False, **options):
    """As `compile`; returns the output folder. Of a temporary file the content says all, and not what lies beside it."""
    program, path = find_program(), os.path.abspath(path)
    arguments = [path, "--library", "--quiet", *_words(loss=loss, optimizer=optimizer, **options)]
    for name, size in (dims or {}).items():
        arguments += ["--dim", f"{name}={size}"]
    if output is not None:
        folder, told = os.fspath(output), _run([program, *arguments, "-o", os.fspath(output)])
    else:
        folder, told = _cached(program, path, arguments, is_temporary)
    for text in told:
        warnings.warn(text, CompileWarning, stacklevel=2)
    return folder


def _words(**options):
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words += [option, str(one)]
    return words


def _run(command):
    """What was warned of, as a list of texts."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileError(_for_python((done.stderr or done.stdout).strip()))
    messages = re.split(r"\n(?!\s)", done.stderr.strip())
    return [_for_python(text) for text in messages if "warning: " in text.split("\n", 1)[0]]


# Words that follow an option in a message and are no value of it.
_NO_VALUES = "a|and|as|at|but|by|for|has|in|is|it|names|needs|of|on|or|says|takes|that|the|then|to|turns|where|which|with|without"


def _for_python(text):
    """Options of the command line as the arguments that they are here: --batch-norm file is batch_norm="file"."""
    text = re.sub(r"--dim ([^\s=,;]+)=([^\s,;]+)", r'dims={"\1": \2}', text)
    option = re.compile(rf"(?<![\w-])--([a-z][a-z0-9-]*)(?:[ =](?!(?:{_NO_VALUES})\b)([^\s,;:()'\"]+))?")
    return option.sub(lambda match: match[1].replace("-", "_") + (f'="{match[2]}"' if match[2] else ""), text)


def _digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _cached(program, path, arguments, is_temporary):
    """Entries are named after the options and the content of the model; what else trainc read stands beside with its
    digest. One that is not whole has no such list."""
    cache = Path(os.environ.get("TRAINC_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainc")
    status = os.stat(program)
    place = [os.path.basename(path)] if is_temporary else [path, os.getcwd()]  # options may name files from there
    key = json.dumps([_digest_of(path), arguments[1:], place, program, status.st_mtime_ns, status.st_size])
    folder = cache / hashlib.sha256(key.encode()).hexdigest()[:32]
    inputs = folder / "inputs.json"
    if inputs.is_file():
        before = json.loads(inputs.read_text())
        if all(os.path.isfile(name) and _digest_of(name) == digest for name, digest in before["read"].items()):
            return str(folder / "out"), before["warnings"]
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".writing-") as work:
        depfile = os.path.join(work, "inputs.d")
        told = _run([program, *arguments, "-o", os.path.join(work, "out"), "--depfile", depfile])
        read = _read_by(depfile)
        if is_temporary:  # the name of one is another every time, and the key has what is in it
            own = os.path.dirname(path) + os.sep
            read = [name for name in read if not os.path.abspath(name).startswith(own)]
        (Path(work) / "inputs.json").write_text(json.dumps({"read": {name: _digest_of(name) for name in read}, "warnings": told}))
        shutil.rmtree(folder, ignore_errors=True)
        try:
            os.rename(work, folder)
            os.mkdir(work)  # which is removed
        except OSError:  # another process was first
            if not inputs.is_file():
                raise
    return str(folder / "out"), told


def _read_by(depfile):
    """Files that a depfile names after the colon; a space in one is written `\\ `."""
    rule = Path(depfile).read_text().replace("\\\n", " ").split("\n", 1)[0].replace("\\ ", "\0")
    names = [name.replace("\0", " ").replace("$$", "$").replace("\\#", "#") for name in rule.split(": ", 1)[1].split()]
    return [name for name in names if os.path.isfile(name)]
