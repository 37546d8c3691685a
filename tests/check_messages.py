#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that messages for programs say what the text says.

    check_messages.py SCHEMA FOLDER COMMANDS NODES

FOLDER holds N.txt, N.json and N.sarif: one command's messages in the three formats, and N.code, its exit code, of so many COMMANDS,
which name at least so many NODES. Every JSON object must fit the schema, and the text must follow from the objects, nodes included."""
import glob
import json
import os
import sys

KINDS = {0: "warning", 1: "internal-error", 2: "usage", 3: "unreadable-model", 4: "unsupported-model", 5: "output-not-written",
         6: "host-compiler-failed", 7: "over-limit"}
TYPES = {"string": str, "integer": int, "array": list}


def quoted(nodes):
    if not nodes:
        return ""
    if len(nodes) == 1:
        return ": node '%s'" % nodes[0]
    if len(nodes) == 2:
        return ": nodes '%s' and '%s'" % tuple(nodes)
    rest = len(nodes) - 2
    return ": nodes '%s', '%s' and %d other%s" % (nodes[0], nodes[1], rest, "" if rest == 1 else "s")


def as_text(message):
    text = message.get("file") or message.get("option") or "trainc"
    if "part" in message:
        text += ": " + message["part"]
    text += quoted(message.get("nodes", []))
    if "operator" in message:
        text += " (%s, opset %d)" % (message["operator"], message["opset"])
    first, newline, rest = message["text"].partition("\n")
    name = " [%s]" % message["finding"] if "finding" in message else ""
    text += ": " + ("warning: " if message["severity"] == "warning" else "") + first + name + newline + rest + "\n"
    if "remedy" in message:
        text += "  try: " + message["remedy"] + "\n"
    return text


def check(message, schema):
    for name in schema["required"]:
        assert name in message, "no '%s'" % name
    for name, value in message.items():
        assert name in schema["properties"], "'%s' is not in the schema" % name
        rule = schema["properties"][name]
        assert isinstance(value, TYPES[rule["type"]]), "'%s' is no %s" % (name, rule["type"])
        assert "enum" not in rule or value in rule["enum"], "'%s' is '%s'" % (name, value)
    assert message["kind"] == KINDS[message["exit_code"]], "kind and exit code differ"
    assert (message["severity"] == "warning") == (message["exit_code"] == 0)
    if "nodes" in message:
        assert message["node"] == message["nodes"][0]


def check_sarif(document, messages):
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert len(run["results"]) == len(messages), "another number of results"
    for result, message in zip(run["results"], messages):
        assert result["ruleId"] == message.get("finding", message["kind"]) and result["ruleId"] in rules
        assert result["level"] == message["severity"]
        assert message["text"] in result["message"]["text"]
        names = [place["name"] for location in result["locations"] for place in location.get("logicalLocations", [])
                 if place["kind"] == "node"]
        assert names == message.get("nodes", []), "other nodes"


def main(schema_file, folder, commands, least_nodes):
    with open(schema_file) as file:
        schema = json.load(file)
    texts = glob.glob(os.path.join(folder, "*.txt"))
    count = nodes = 0
    for path in texts:
        name = path[:-len(".txt")]
        try:
            with open(name + ".json") as file:
                messages = [json.loads(line) for line in file]
            assert messages, "no message"
            for message in messages:
                check(message, schema)
                nodes += len(message.get("nodes", []))
            codes = [message["exit_code"] for message in messages if message["exit_code"]]
            assert codes[0] == int(open(name + ".code").read()), "another exit code"
            text = open(path).read()
            assert text == "".join(map(as_text, messages)), "the text is another:\n" + text
            with open(name + ".sarif") as file:
                check_sarif(json.load(file), messages)
        except (AssertionError, KeyError, ValueError) as problem:
            sys.exit("%s: %s\n%s" % (name, problem, open(name + ".json").read()))
        count += len(messages)
    print("%d commands, %d messages, %d nodes" % (len(texts), count, nodes))
    assert len(texts) == int(commands), "%s commands were expected" % commands
    assert nodes >= int(least_nodes), "at least %s nodes were expected" % least_nodes


if __name__ == "__main__":
    main(*sys.argv[1:])
