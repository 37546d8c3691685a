# SPDX-License-Identifier: Apache-2.0
#
# Whether the documents can be read once: short sentences, short lines, short pages, plain words. Comments of sources
# have the same plain words.
#
#   prose.py ROOT
#
# Pages that programs write, blocks of code and inline code are left out; lines of tables may be long, their cells
# are read like sentences. Prints what breaks a rule; ends with 1 where there is something.
import pathlib
import re
import sys

MOST_WORDS = 40  # of a sentence
MOST_CHARACTERS = 120  # of a line
MOST_LINES = {"README.md": 120}  # of a page
MOST_LINES_OF_OTHERS = 150
ENDLESS = {"CHANGELOG.md"}  # grows with releases
GENERATED = {"docs/trainc.md", "docs/operators.md", "docs/node_tests.md"}
SOURCES = ("compiler", "dialects", "passes", "runtime", "tools")
# Folders and files whose comments are still to be read for these words. No new ones.
UNREAD = (
    "compiler/driver.cpp",
    "compiler/onnx/adapters.cpp",
    "compiler/onnx/adapters_in_export.cpp",
    "compiler/onnx/file/",
    "compiler/onnx/gradient_graph/",
    "compiler/onnx/graph/",
    "compiler/onnx/initial_parameters.cpp",
    "compiler/onnx/reader.cpp",
    "compiler/options.h",
    "runtime/observe/",
    "runtime/options/",
    "runtime/run/",
    "runtime/train/",
    "tools/inspect/",
    "tools/simulate/",
)

# What to write instead of each.
WORDS = {
    r"\bbehind\b": "after",
    r"\bwhatever\b": "any, or a list",
    r"\bof which\b": "a sentence of its own",
    r"\bbut for\b": "except",
    r"(?<!\bthere )\b(?:is|are|was|were) no (?!\w+er\b|more\b|less\b)": "is not",
    r"\bcomput\w+ again\b": "recompute",
}


def is_table(line):
    return line.lstrip().startswith("|")


def prose(lines):
    """Lines with their numbers; code blocks are left out, inline code becomes one word."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def plain(text):
    text = re.sub(r"``.+?``|`[^`]*`", "code", text)
    return re.sub(r"\]\([^)]*\)", "]", text)  # a link is its words


def blocks(lines):
    """Paragraphs, list items, headings and table cells, each with the number of its first line."""
    start, words = 0, []
    for number, line in [*prose(lines), (0, "")]:
        begins = re.match(r"\s*(?:[-*] |\d+\. |#|\||$)", line)
        if begins or number != start + len(words):
            if words:
                yield start, " ".join(words)
            start, words = number, []
        if is_table(line):
            # A code span may hold a bar, which Markdown writes as \|.
            for cell in re.split(r"(?<!\\)\|", line):
                yield number, cell.strip()
            start, words = number + 1, []
        elif line.strip():
            words.append(line.strip())


def problems(name, text):
    lines = text.splitlines()
    most = MOST_LINES.get(name, MOST_LINES_OF_OTHERS)
    if len(lines) > most and name not in ENDLESS:
        yield len(lines), f"{len(lines)} lines, expected at most {most}"
    for number, line in prose(lines):
        if len(line) > MOST_CHARACTERS and not is_table(line):
            yield number, f"{len(line)} characters, expected at most {MOST_CHARACTERS}"
    for number, block in blocks(lines):
        block = plain(block)
        for sentence in re.split(r"[.!?][\"')*]*\s+", block):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if len(words) > MOST_WORDS:
                yield number, f"a sentence of {len(words)} words, expected at most {MOST_WORDS}: {' '.join(words[:8])} ..."
        for what in unwanted(block):
            yield number, what


def unwanted(text):
    for pattern, better in WORDS.items():
        for found in re.finditer(pattern, plain(text), re.IGNORECASE):
            yield f"'{found[0].strip()}'; try: {better}"


def comments(lines):
    """Neighbouring lines of comment as one, with the number of the first; a comment after code is one of its own."""
    start, words = 0, []
    for number, line in [*enumerate(lines, 1), (0, "")]:
        alone = re.match(r"\s*///?(?: (.*)|$)", line)
        if alone:
            start, words = start or number, [*words, alone[1] or ""]
            continue
        if words:
            yield start, " ".join(words)
        start, words = 0, []
        if beside := re.search(r"[;{,)}] +// (.*)", line):
            yield number, beside[1]


def main():
    root = pathlib.Path(sys.argv[1])
    pages = [root / "README.md", root / "CHANGELOG.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/*.md"))]
    status = 0
    for page in pages:
        name = page.relative_to(root).as_posix()
        if name in GENERATED:
            continue
        for number, what in problems(name, page.read_text()):
            print(f"{name}:{number}: {what}")
            status = 1
    for source in sorted(path for folder in SOURCES for path in (root / folder).rglob("*")):
        name = source.relative_to(root).as_posix()
        if source.suffix not in {".cpp", ".h", ".cu", ".hpp"} or name.startswith(UNREAD):
            continue
        for number, comment in comments(source.read_text().splitlines()):
            for what in unwanted(comment):
                print(f"{name}:{number}: {what}")
                status = 1
    sys.exit(status)


main()
