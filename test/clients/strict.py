"""Holds every answer that boto3 gets against botocore's own model of it.

botocore passes over elements that it does not know, and leaves out what is missing, so a client works with an answer that is
wrong by half. Here each answer is compared, as it came, with the shape that the model gives its operation: what the
model does not have, values that are not of their type or their enum, and required members that are missing.
"""

import json
import re
import xml.etree.ElementTree as ElementTree

TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


class Strict:
    """Collects what answers have that their models do not. Attach it to each client."""

    def __init__(self):
        self.complaints = set()
        self.answers = 0

    def attach(self, client):
        model = client.meta.service_model

        def judge(response_dict=None, event_name="", **_):
            if response_dict is None or response_dict["status_code"] >= 300:
                return  # errors are told by their codes
            service, action = event_name.split(".")[1:3]
            self.answers += 1
            self.judge(service + "." + action, model, model.operation_model(action), response_dict["body"])

        client.meta.events.register("response-received", judge)
        return client

    def judge(self, path, model, operation, body):
        protocol = model.metadata["protocol"]
        shape = operation.output_shape
        if protocol in ("ec2", "query"):
            root = ElementTree.fromstring(body)
            namespace = root.tag[1:].partition("}")[0]
            if protocol == "query" and namespace != model.metadata["xmlNamespace"]:
                self.complain(path, "namespace is %s, not %s" % (namespace, model.metadata["xmlNamespace"]))
            if local(root) != operation.name + "Response":
                self.complain(path, "is a %s" % local(root))
            nodes = [n for n in root if local(n) not in ("requestId", "ResponseMetadata", "return")]
            wrapper = shape.serialization.get("resultWrapper") if shape else None
            if wrapper:
                if [local(n) for n in nodes] != [wrapper]:
                    self.complain(path, "has %s in place of %s" % ([local(n) for n in nodes], wrapper))
                    return
                nodes = list(nodes[0])
            if shape is None:
                for node in nodes:
                    self.complain(path, "has %s where nothing is answered" % local(node))
                return
            self.xml_structure(path, shape, nodes)
        elif shape is not None:
            self.json_value(path, shape, json.loads(body or b"{}"))

    def complain(self, path, what):
        self.complaints.add(path + ": " + what)

    # XML: the ec2 and the query protocol.

    def xml_structure(self, path, shape, nodes):
        known = {}
        for name, member in shape.members.items():
            wire = member.serialization.get("name", name)
            if member.type_name == "list" and member.serialization.get("flattened"):
                wire = member.member.serialization.get("name", wire)
            known[wire] = (name, member)
        seen = {}
        for node in nodes:
            if local(node) not in known:
                self.complain(path, "has an unknown %s" % local(node))
                continue
            seen.setdefault(local(node), []).append(node)
        for wire, found in seen.items():
            name, member = known[wire]
            if member.serialization.get("flattened"):
                inner = member.member if member.type_name == "list" else None
                for node in found:
                    if inner is not None:
                        self.xml_value(path + "." + name, inner, node)
                    else:
                        self.xml_entry(path + "." + name, member, node)
                continue
            if len(found) > 1:
                self.complain(path, "has more than one %s" % wire)
            self.xml_value(path + "." + name, member, found[0])
        # An empty list or map is nothing at all where it is flattened.
        present = {name for wire, (name, member) in known.items() if wire in seen or member.serialization.get("flattened")}
        self.required(path, shape, present)

    def xml_entry(self, path, shape, node):
        names = {shape.key.serialization.get("name", "key"), shape.value.serialization.get("name", "value")}
        if {local(n) for n in node} != names:
            self.complain(path, "entry has %s, not %s" % (sorted(local(n) for n in node), sorted(names)))

    def xml_value(self, path, shape, node):
        kind = shape.type_name
        if kind == "structure":
            self.xml_structure(path, shape, list(node))
        elif kind == "list":
            name = shape.member.serialization.get("name", "member")
            for item in node:
                if local(item) != name:
                    self.complain(path, "has items named %s, not %s" % (local(item), name))
                    continue
                self.xml_value(path + "[]", shape.member, item)
        elif kind == "map":
            for entry in node:
                self.xml_entry(path, shape, entry)
        else:
            if len(node):
                self.complain(path, "is a %s and has elements" % kind)
            self.scalar(path, shape, node.text or "")

    def scalar(self, path, shape, text):
        kind = shape.type_name
        if kind in ("integer", "long") and not re.match(r"^-?\d+$", text):
            self.complain(path, "%r is no integer" % text)
        elif kind in ("float", "double") and not re.match(r"^-?\d+(\.\d+)?$", text):
            self.complain(path, "%r is no number" % text)
        elif kind == "boolean" and text not in ("true", "false"):
            self.complain(path, "%r is no boolean" % text)
        elif kind == "timestamp" and not TIMESTAMP.match(text):
            self.complain(path, "%r is no timestamp" % text)
        elif kind == "string" and not in_enum(shape, text):
            self.complain(path, "%r is not one of its values" % text)

    # JSON: the json and the rest-json protocol.

    def json_value(self, path, shape, value):
        kind = shape.type_name
        types = {"structure": dict, "map": dict, "list": list, "string": str, "boolean": bool, "integer": int, "long": int,
                 "timestamp": (int, float), "float": (int, float), "double": (int, float), "blob": str}
        if not isinstance(value, types[kind]) or (isinstance(value, bool) and kind != "boolean"):
            self.complain(path, "is a %s, not a %s" % (type(value).__name__, kind))
        elif kind == "structure":
            known = {member.serialization.get("name", name): (name, member) for name, member in shape.members.items()}
            for key, inner in value.items():
                if key not in known:
                    self.complain(path, "has an unknown %s" % key)
                elif inner is not None:
                    self.json_value(path + "." + key, known[key][1], inner)
            self.required(path, shape, {known[key][0] for key in value if key in known})
        elif kind == "list":
            for item in value:
                self.json_value(path + "[]", shape.member, item)
        elif kind == "map":
            for inner in value.values():
                self.json_value(path + "{}", shape.value, inner)
        elif kind == "string" and not in_enum(shape, value):
            self.complain(path, "%r is not one of its values" % value)

    def required(self, path, shape, present):
        for name in shape.required_members:
            if name not in present:
                self.complain(path, "lacks %s" % name)


def in_enum(shape, value):
    """Whether a value is of its shape's enum. New instance types come before a new botocore does."""
    return shape.name == "InstanceType" or not getattr(shape, "enum", []) or value in shape.enum


def local(node):
    return node.tag.rpartition("}")[2]
