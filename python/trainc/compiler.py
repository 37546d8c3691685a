# SPDX-License-Identifier: Apache-2.0
"""Runs trainc, and keeps what it made for the next time."""
import contextlib
import fcntl
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
    """Entries are named after the options and the content of the model. What else trainc read and what it made stand
    beside with sizes and digests: what has changed is made anew."""
    cache = Path(os.environ.get("TRAINC_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainc")
    status = os.stat(program)
    place = [os.path.basename(path)] if is_temporary else [path, os.getcwd()]  # options may name files from there
    key = json.dumps([_digest_of(path), arguments[1:], place, program, status.st_mtime_ns, status.st_size])
    folder = cache / hashlib.sha256(key.encode()).hexdigest()[:32]
    told, is_damaged = _kept(folder)
    if told is not None:
        return str(folder / "out"), told
    if is_damaged:
        warnings.warn(f"{folder}: is damaged, and is made anew", stacklevel=4)
    with _work_folder(cache) as work:
        depfile, made = os.path.join(work, "inputs.d"), os.path.join(work, "entry")
        os.mkdir(made)
        told = _run([program, *arguments, "-o", os.path.join(made, "out"), "--depfile", depfile])
        read = _read_by(depfile)
        if is_temporary:  # the name of one is another every time, and the key has what is in it
            own = os.path.dirname(path) + os.sep
            read = [name for name in read if not os.path.abspath(name).startswith(own)]
        files = sorted(os.path.relpath(os.path.join(at, name), made) for at, _, names in os.walk(made) for name in names)
        entry = {"read": _marks_of(read), "made": _marks_of(files, made), "warnings": told}
        Path(made, "inputs.json").write_text(json.dumps(entry))
        if _kept(folder)[0] is None:  # else another process was first
            with contextlib.suppress(FileNotFoundError):
                os.rename(folder, os.path.join(work, "before"))
            try:
                os.rename(made, folder)
            except OSError:
                if _kept(folder)[0] is None:
                    raise
    return str(folder / "out"), told


_LARGE = 16 << 20  # bytes: such a file is compared by its size alone


def _mark_of(path):
    size = os.path.getsize(path)
    return [size, _digest_of(path) if size < _LARGE else ""]


def _marks_of(names, folder=""):
    return {name: _mark_of(os.path.join(folder, name)) for name in names}


def _have_marks(files, folder=""):
    try:
        return all(os.path.getsize(os.path.join(folder, name)) == size for name, (size, _) in files.items()) and \
            _marks_of(files, folder) == files
    except OSError:
        return False


def _kept(folder):
    """Warnings of the compilation that made the entry, None where there is none to use; and whether it is damaged."""
    try:
        entry = json.loads((folder / "inputs.json").read_text())
        if not _have_marks(entry["read"]):
            return None, False
        return (entry["warnings"], False) if _have_marks(entry["made"], folder) else (None, True)
    except FileNotFoundError:
        return None, folder.exists()
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # no text, no JSON, or another
        return None, True


@contextlib.contextmanager
def _work_folder(cache):
    """A folder in the cache with a lock, which the kernel ends with its process: what killed ones left is removed. Where the
    file system has no locks, it stays."""
    cache.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as turn:
        turn.enter_context(_lock(cache, fcntl.LOCK_EX))  # or another might remove the new folder before its lock is there
        for left in cache.glob(".writing-*"):
            with _lock(left, fcntl.LOCK_EX | fcntl.LOCK_NB) as is_locked:
                if is_locked:
                    shutil.rmtree(left, ignore_errors=True)
        work = stack.enter_context(tempfile.TemporaryDirectory(dir=cache, prefix=".writing-"))
        stack.enter_context(_lock(work, fcntl.LOCK_EX))
        turn.close()
        yield work


@contextlib.contextmanager
def _lock(folder, how):
    """Whether the folder is locked."""
    file, is_locked = -1, False
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(file, how)
        is_locked = True
    except OSError:
        pass
    try:
        yield is_locked
    finally:
        if file >= 0:
            os.close(file)


def _read_by(depfile):
    """Files that a depfile names after the colon; a space in one is written `\\ `."""
    rule = Path(depfile).read_text().replace("\\\n", " ").split("\n", 1)[0].replace("\\ ", "\0")
    names = [name.replace("\0", " ").replace("$$", "$").replace("\\#", "#") for name in rule.split(": ", 1)[1].split()]
    return [name for name in names if os.path.isfile(name)]
