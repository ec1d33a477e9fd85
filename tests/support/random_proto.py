"""Random messages of Protobuf: a schema as text and as a class of Google's library, values, and the expected rows."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)

SCALARS = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
        *("sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}
KNOWN = ["Timestamp", "Duration", "StringValue", "Int64Value", "BoolValue", "DoubleValue"]
WORDS = ["", "a", "é🙂", "long " * 20]
KEYS = ["string", "int32", "bool"]


@dataclass
class ProtoModel:
    """A message that is drawn: its fields by name, each a label, a type and a number."""

    name: str
    fields: list[tuple[str, str, str, int]] = field(default_factory=list)
    inner: list[ProtoModel] = field(default_factory=list)


class ProtoDraw:
    """Draws a file with one message, in which others are."""

    def __init__(self, r: random.Random) -> None:
        self.r, self.count = r, 0
        self.model = self.message(2)

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def message(self, depth: int) -> ProtoModel:
        r, made = self.r, ProtoModel(f"M{self.name()}")
        numbers = r.sample([*range(1, 20), 100, 5000], r.randrange(1, 9))
        for number in numbers:
            label = r.choice(["", "", "optional", "repeated", "oneof", "map"])
            draw = r.random()
            if depth > 1 and draw < 0.25:
                made.inner.append(self.message(depth - 1))
                kind = made.inner[-1].name
            elif draw < 0.4:
                kind = f"google.protobuf.{r.choice(KNOWN)}"
            else:
                kind = r.choice([*SCALARS, "Color"])
            made.fields.append((self.name(), label, kind, number))
        return made

    @property
    def text(self) -> str:
        """The file."""
        imports = "".join(f'import "google/protobuf/{one}.proto";\n' for one in ("timestamp", "duration", "wrappers"))
        enum = "enum Color { option allow_alias = false; RED = 0; GREEN = 1 [deprecated = true]; BLUE = -5; }\n"
        return f'syntax = "proto3"; // a file\npackage shop.v1;\n{imports}{_text(self.model)}{enum}'

    def kind(self) -> Any:
        """The class of the message."""
        pool = descriptor_pool.DescriptorPool()
        for module in (timestamp_pb2, duration_pb2, wrappers_pb2):
            pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
        file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop.v1", syntax="proto3")
        file.dependency.extend(f"google/protobuf/{one}.proto" for one in ("timestamp", "duration", "wrappers"))
        color = file.enum_type.add(name="Color")
        for name, number in (("RED", 0), ("GREEN", 1), ("BLUE", -5)):
            color.value.add(name=name, number=number)
        _describe(self.model, file.message_type.add(), "shop.v1")
        pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shop.v1.{self.model.name}"))

    def fill(self, message: Any) -> None:
        """Set some of the fields."""
        r = self.r
        for one in message.DESCRIPTOR.fields:
            if r.random() < 0.3:
                continue
            if one.message_type is not None and one.message_type.GetOptions().map_entry:
                self._fill_map(getattr(message, one.name), one)
            elif is_repeated(one):
                for _ in range(r.choice([0, 1, 3])):
                    if one.message_type is None:
                        getattr(message, one.name).append(self.scalar(one))
                    else:
                        self._fill_one(getattr(message, one.name).add())
            elif one.message_type is not None:
                getattr(message, one.name).SetInParent()
                self._fill_one(getattr(message, one.name))
            else:
                setattr(message, one.name, self.scalar(one))

    def _fill_map(self, pairs: Any, one: Any) -> None:
        key, value = (one.message_type.fields_by_name[name] for name in ("key", "value"))
        for _ in range(self.r.choice([0, 1, 3])):
            if value.message_type is None:
                pairs[self.scalar(key)] = self.scalar(value)
            else:
                self._fill_one(pairs[self.scalar(key)])

    def _fill_one(self, message: Any) -> None:
        name = message.DESCRIPTOR.full_name
        if name == "google.protobuf.Timestamp":
            message.seconds = self.r.randrange(-62_135_596_800, 253_402_300_800)
            message.nanos = self.r.choice([0, 1, 999_999_999, 500_000_000])
        elif name == "google.protobuf.Duration":
            sign = self.r.choice([1, -1])
            message.seconds = sign * self.r.randrange(10**6)
            message.nanos = sign * self.r.choice([0, 1, 999_999_999, 1_500])
        else:
            self.fill(message)

    def scalar(self, one: Any) -> Any:
        r, kind = self.r, one.type
        names = {number: name for name, number in SCALARS.items()}
        name = names.get(kind, "enum")
        if name == "enum":
            return r.choice([0, 1, -5, 77])
        if name == "bool":
            return r.random() < 0.5
        if name == "string":
            return r.choice(WORDS)
        if name == "bytes":
            return r.randbytes(r.randrange(5))
        if name in ("double", "float"):
            return r.choice([0.0, -0.0, float("nan"), float("inf"), 0.5, 1e30])
        bits = int(name[-2:])
        least, most = (0, 2**bits - 1) if name.startswith(("u", "fixed")) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return r.choice(
            [0, 1, least, most, r.randint(least, most), r.randrange(300) if least == 0 else -r.randrange(300)]
        )


def is_repeated(one: Any) -> bool:
    """True for a field of several values."""
    found = getattr(one, "is_repeated", None)
    return bool(one.label == one.LABEL_REPEATED if found is None else found)


def _text(model: ProtoModel) -> str:
    lines = [f'message {model.name} {{ /* reserved */ reserved 900 to 999; reserved "old";']
    for name, label, kind, number in model.fields:
        if label == "map":
            lines.append(f"map<{KEYS[number % 3]}, {kind}> {name} = {number};")
        elif label == "oneof":
            lines.append(f"oneof of_{name} {{ {kind} {name} = {number}; bool other_{name} = {number + 10_000}; }}")
        else:
            lines.append(f'{label} {kind} {name} = {number} [deprecated = false, json_name = "{name}X"];')
    return "\n".join([*lines, *map(_text, model.inner), "}\n"])


def _describe(model: ProtoModel, to: Any, space: str) -> None:
    to.name = model.name
    own = f"{space}.{model.name}"
    names = {inner.name: f".{own}.{inner.name}" for inner in model.inner}

    def add(at: Any, name: str, number: int, kind: str, repeated: bool = False) -> Any:
        label = at.field.add(name=name, number=number, label=3 if repeated else 1)
        if kind in SCALARS:
            label.type = SCALARS[kind]
        elif kind == "Color":
            label.type, label.type_name = label.TYPE_ENUM, ".shop.v1.Color"
        else:
            label.type, label.type_name = label.TYPE_MESSAGE, names.get(kind, f".{kind}")
        return label

    synthetic = []
    for name, label, kind, number in model.fields:
        if label == "map":
            entry = to.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
            entry.options.map_entry = True
            add(entry, "key", 1, KEYS[number % 3])
            add(entry, "value", 2, kind)
            names[entry.name] = f".{own}.{entry.name}"
            add(to, name, number, entry.name, repeated=True)
        elif label == "oneof":
            to.oneof_decl.add(name=f"of_{name}")
            add(to, name, number, kind).oneof_index = len(to.oneof_decl) - 1
            add(to, f"other_{name}", number + 10_000, "bool").oneof_index = len(to.oneof_decl) - 1
        else:
            made = add(to, name, number, kind, label == "repeated")
            if label == "optional":
                made.proto3_optional = True
                synthetic.append(made)
    for made in synthetic:
        to.oneof_decl.add(name=f"_{made.name}")
        made.oneof_index = len(to.oneof_decl) - 1
    for inner in model.inner:
        _describe(inner, to.nested_type.add(), own)


def row_of(message: Any) -> dict[str, Any]:
    """The row of a message, in plain values; maps are sorted."""
    return {one.name: _value(message, one) for one in message.DESCRIPTOR.fields}


def _value(message: Any, one: Any) -> Any:
    value = getattr(message, one.name)
    if one.message_type is not None and one.message_type.GetOptions().map_entry:
        key, inner = (one.message_type.fields_by_name[name] for name in ("key", "value"))
        pairs = ((_scalar(key, k), _scalar(inner, value[k])) for k in value)
        return sorted(pairs, key=repr)
    if is_repeated(one):
        return [_scalar(one, part) for part in value]
    if one.has_presence and not message.HasField(one.name):
        return None
    return _scalar(one, value)


def _scalar(one: Any, value: Any) -> Any:
    if one.message_type is not None:
        name = one.message_type.full_name
        if name == "google.protobuf.Timestamp":
            return value.seconds * 1_000_000 + value.nanos // 1000
        if name == "google.protobuf.Duration":
            return value.seconds * 1_000_000 + int(value.nanos / 1000)
        if name.startswith("google.protobuf."):
            return _scalar(one.message_type.fields_by_name["value"], value.value)
        return row_of(value)
    if one.enum_type is not None:
        known = one.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if one.type in (SCALARS["double"], SCALARS["float"]):
        return repr(value)
    return Decimal(value) if one.type in (SCALARS["uint64"], SCALARS["fixed64"]) else value


def sorted_maps(row: Any) -> Any:
    """A plain row with its maps sorted; a map is a list of pairs."""
    if isinstance(row, dict):
        return {key: sorted_maps(value) for key, value in row.items()}
    if isinstance(row, list):
        inner = [sorted_maps(value) for value in row]
        return sorted(inner, key=repr) if inner and isinstance(inner[0], tuple) else inner
    return tuple(map(sorted_maps, row)) if isinstance(row, tuple) else row
