# SPDX-License-Identifier: Apache-2.0
#
# Prints compiler/onnx/file/schemas.inc: what each operator of ONNX's own set takes and makes, by the
# operator set from which it holds. Only versions that operator sets from 6 on use, and of these only
# those whose arity, types or attributes differ from the version before. An operator that ends has a last entry that
# says `deprecated`. Needs the Python package onnx.
#
#   python3 tests/import/list_schemas.py >compiler/onnx/file/schemas.inc
import re

from onnx import defs

OLDEST = 6
KINDS = {"FLOAT": "float", "INT": "int", "STRING": "string", "TENSOR": "tensor", "GRAPH": "graph",
         "SPARSE_TENSOR": "sparse_tensor", "TYPE_PROTO": "type"}


def kind_of(attribute):
    name = attribute.type.name
    single = {"INTS": "INT", "FLOATS": "FLOAT", "STRINGS": "STRING"}.get(name)
    return KINDS[single] + "s" if single else KINDS[name]


def letters(parameters):
    """r: required, o: optional, v: any number of them."""
    option = {"Single": "r", "Optional": "o", "Variadic": "v"}
    return "".join(option[parameter.option.name] for parameter in parameters)


def types(schema):
    """A letter for each input: i: integers, b: bools, the same capital: the same type, -: any."""
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    uses = [parameter.type_str for parameter in schema.inputs]
    capitals = {}
    found = ""
    for parameter in schema.inputs:
        name = parameter.type_str
        kinds = allowed.get(name, [name])
        is_variadic = parameter.option.name == "Variadic"
        if all(re.fullmatch(r"tensor\(u?int\d+\)", kind) for kind in kinds):
            found += "i"
        elif kinds == ["tensor(bool)"]:
            found += "b"
        elif (uses.count(name) > 1 or is_variadic) and parameter.is_homogeneous and kinds[0].startswith("tensor"):
            found += capitals.setdefault(name, "ABCDEF"[len(capitals)])
        else:
            found += "-"
    return found.rstrip("-")


def declaration(schema, is_last):
    if schema.deprecated and is_last:
        return "", "", 0, "", 0, "deprecated"
    attributes = [name + ":" + kind_of(attribute) + ("!" if attribute.required else "")
                  for name, attribute in sorted(schema.attributes.items())]
    return (letters(schema.inputs), types(schema), schema.min_input, letters(schema.outputs), schema.min_output,
            " ".join(attributes))


def main():
    versions = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions.setdefault(schema.name, []).append(schema)
    print(f"// ONNX's operator sets {OLDEST} to {defs.onnx_opset_version()}; written by "
          "tests/import/list_schemas.py.")
    for name, schemas in sorted(versions.items()):
        schemas.sort(key=lambda schema: schema.since_version)
        while len(schemas) > 1 and schemas[1].since_version <= OLDEST:
            schemas.pop(0)
        before = None
        for schema in schemas:
            found = declaration(schema, schema is schemas[-1])
            if found != before:
                inputs, input_types, fewest_inputs, outputs, fewest_outputs, attributes = found
                print(f'{{"{name}", {schema.since_version}, "{inputs}", "{input_types}", {fewest_inputs}, "{outputs}", '
                      f'{fewest_outputs}, "{attributes}"}},')
            before = found


main()
