# SPDX-License-Identifier: Apache-2.0
#
# Rewrites a model so that its layer norms and GELUs are local functions: the
# norm takes its epsilon by attribute reference and leaves out its bias where the
# node had none, the GELU calls a second local function.
import onnx
from onnx import helper

DOMAIN = "layers"


def layer_norm(opset):
    nodes = [
        helper.make_node("Constant", [], ["two"], value_float=2.0),
        helper.make_node("Constant", [], ["last"], value_ints=[-1]),
        helper.make_node("ReduceMean", ["x", "last"], ["mean"], keepdims=1),
        helper.make_node("Sub", ["x", "mean"], ["centred"]),
        helper.make_node("Pow", ["centred", "two"], ["squared"]),
        helper.make_node("ReduceMean", ["squared", "last"], ["variance"], keepdims=1),
        helper.make_node("Constant", [], ["epsilon"]),
        helper.make_node("Add", ["variance", "epsilon"], ["shifted"]),
        helper.make_node("Sqrt", ["shifted"], ["deviation"]),
        helper.make_node("Div", ["centred", "deviation"], ["normalized"]),
        helper.make_node("Mul", ["normalized", "weight"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["y"]),
    ]
    reference = onnx.AttributeProto()
    reference.name = "value_float"
    reference.type = onnx.AttributeProto.FLOAT
    reference.ref_attr_name = "epsilon"
    nodes[6].attribute.append(reference)
    return helper.make_function(DOMAIN, "LayerNorm", ["x", "weight", "bias"], ["y"], nodes, [opset],
                                ["epsilon"])


def cube(opset):
    nodes = [helper.make_node("Mul", ["x", "x"], ["square"]),
             helper.make_node("Mul", ["square", "x"], ["y"])]
    return helper.make_function(DOMAIN, "Cube", ["x"], ["y"], nodes, [opset])


def gelu(opset, own):
    constants = {"half": 0.5, "one": 1.0, "factor": 0.044715, "root": 0.7978845608028654}
    nodes = [helper.make_node("Constant", [], [name], value_float=value)
             for name, value in constants.items()]
    nodes += [
        helper.make_node("Cube", ["x"], ["cube"], domain=DOMAIN),
        helper.make_node("Mul", ["cube", "factor"], ["cubic"]),
        helper.make_node("Add", ["x", "cubic"], ["sum"]),
        helper.make_node("Mul", ["sum", "root"], ["inner"]),
        helper.make_node("Tanh", ["inner"], ["tanh"]),
        helper.make_node("Add", ["tanh", "one"], ["outer"]),
        helper.make_node("Mul", ["x", "half"], ["halved"]),
        helper.make_node("Mul", ["halved", "outer"], ["y"]),
    ]
    return helper.make_function(DOMAIN, "TanhGelu", ["x"], ["y"], nodes, [opset, own])


def outline(path):
    model = onnx.load(path)
    opset = next(o for o in model.opset_import if o.domain == "")
    own = helper.make_opsetid(DOMAIN, 1)
    for node in model.graph.node:
        if node.op_type == "LayerNormalization":
            kept = [a for a in node.attribute if a.name == "epsilon"]
            node.op_type, node.domain = "LayerNorm", DOMAIN
        elif node.op_type == "Gelu":
            kept = []
            node.op_type, node.domain = "TanhGelu", DOMAIN
        else:
            continue
        del node.attribute[:]
        node.attribute.extend(kept)
    model.opset_import.append(own)
    del model.functions[:]
    model.functions.extend([layer_norm(opset), cube(opset), gelu(opset, own)])
    onnx.save(model, path)
