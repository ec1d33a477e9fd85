"""The text of a `.proto` file, as far as it describes messages.

Options, services and comments are not read. Groups, extensions and editions are refused.

Guarded by tests/messages/test_protobuf.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import InvalidArgument

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[A-Za-z_][\w.]*|\.[A-Za-z_][\w.]*|"""
    r"""[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|[-+]|[{}\[\]()<>=;,:/])""",
    re.DOTALL,
)

SCALARS = frozenset(
    {"double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"}
    | {"fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"}
)


@dataclass(frozen=True)
class ProtoField:
    """A field of a message."""

    name: str
    number: int
    kind: str
    """A scalar type, or the name of a message or an enum: the full one, once the file is complete."""
    repeated: bool = False
    has_presence: bool = False
    """True if a message says that it lacks a scalar field."""
    key: str = ""
    """The type of the keys of a map; `kind` is that of its values then."""
    default: str = ""
    """The default that proto2 gives, as it stands in the file."""
    oneof: str = ""
    """The name of the group of fields of which a message has one."""


@dataclass
class ProtoMessage:
    """A message."""

    name: str
    fields: list[ProtoField] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    """The full names of the messages in it, in their order."""


@dataclass
class ProtoFile:
    """The messages and enums of a file, by their full names."""

    package: str = ""
    imports: list[str] = field(default_factory=list)
    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)
    top: list[str] = field(default_factory=list)
    """The full names of the messages that stand in no other one, in their order."""
    is_proto3: bool = False


def proto_file(text: str) -> ProtoFile:
    """The messages of a file.

    >>> file = proto_file('syntax = "proto3"; package shop; message Order { int64 id = 1; repeated string tags = 2; }')
    >>> [(field.name, field.number, field.repeated) for field in file.messages["shop.Order"].fields]
    [('id', 1, False), ('tags', 2, True)]
    """
    return _Parser(text).file()


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise InvalidArgument(f"a schema of Protobuf has {text[place : place + 20]!r}, which is no part of one")
        place = found.end()
        if found[1]:
            yield found[1]


class _Parser:
    """Reads the tokens of a file, one after the other."""

    def __init__(self, text: str) -> None:
        self.tokens, self.place, self.out = [*_tokens(text), ""], 0, ProtoFile()

    @property
    def next(self) -> str:
        return self.tokens[self.place]

    def take(self, *wanted: str) -> str:
        token = self.next
        if not token or (wanted and token not in wanted):
            shown = repr(token) if token else "its end"
            raise InvalidArgument(f"a schema of Protobuf has {shown} where {' or '.join(wanted) or 'more'} should be")
        self.place += 1
        return token

    def skip_to(self, end: str) -> None:
        """Skip up to a sign, with all brackets in between."""
        depth = 0
        while depth or self.next != end:
            token = self.take()
            depth += (token in "{[(") - (token in "}])")
        self.take(end)

    def skip_block(self) -> None:
        while self.next != "{":
            self.take()
        self.take("{")
        self.skip_to("}")

    def file(self) -> ProtoFile:
        while self.next:
            word = self.take()
            if word == "syntax":
                self.take("=")
                self.out.is_proto3 = self.take().strip("'\"") == "proto3"
                self.take(";")
            elif word == "edition":
                raise InvalidArgument("a schema of Protobuf has an edition, which is not read: take proto3 or proto2")
            elif word == "package":
                self.out.package = self.take()
                self.take(";")
            elif word == "import":
                if self.next in ("public", "weak"):
                    self.take()
                self.out.imports.append(self.take().strip("'\""))
                self.take(";")
            elif word == "option":
                self.skip_to(";")
            elif word == "message":
                self.out.top.append(self.message(self.out.package))
            elif word == "enum":
                self.enum(self.out.package)
            elif word in ("service", "extend"):
                self.skip_block()
            elif word != ";":
                raise InvalidArgument(f"a schema of Protobuf has {word!r} where a message should be")
        return self.out

    def message(self, space: str) -> str:
        made = ProtoMessage(".".join(filter(None, (space, self.take()))))
        self.out.messages[made.name] = made
        self.take("{")
        while self.next != "}":
            word = self.take()
            if word == "message":
                made.inner.append(self.message(made.name))
            elif word == "enum":
                self.enum(made.name)
            elif word in ("option", "reserved", "extensions"):
                self.skip_to(";")
            elif word == "extend":
                self.skip_block()
            elif word == "oneof":
                group = self.take()
                self.take("{")
                while self.next != "}":
                    if self.next == "option":
                        self.skip_to(";")
                    else:
                        made.fields.append(self.field(self.take(), "", group))
                self.take("}")
            elif word != ";":
                made.fields.append(self.labelled(word))
        self.take("}")
        numbers = [one.number for one in made.fields]
        if len(set(numbers)) < len(numbers) or not all(0 < number < 1 << 29 for number in numbers):
            raise InvalidArgument(f"the message {made.name!r} of Protobuf has a field number twice, or a wrong one")
        return made.name

    def labelled(self, word: str) -> ProtoField:
        if word in ("optional", "required", "repeated"):
            return self.field(self.take(), word)
        return self.field(word, "")

    def field(self, kind: str, label: str, group: str = "") -> ProtoField:
        key = ""
        if kind == "map" and self.next == "<":
            self.take("<")
            key = self.take()
            self.take(",")
            kind = self.take()
            self.take(">")
        if kind == "group":
            raise InvalidArgument("a schema of Protobuf has a group, which is not read: take a message")
        name = self.take()
        self.take("=")
        number = int(self.take(), 0)
        default = self.options() if self.next == "[" else ""
        self.take(";")
        has_presence = label in ("optional", "required") or bool(group) or (not self.out.is_proto3 and label == "")
        repeated = label == "repeated" or bool(key)
        return ProtoField(name, number, kind, repeated, has_presence, key, default, group)

    def options(self) -> str:
        """The default among the options of a field."""
        begin = self.place
        self.take("[")
        self.skip_to("]")
        inside = self.tokens[begin : self.place]
        for i, token in enumerate(inside[:-3]):
            if token == "default" and inside[i + 1] == "=" and inside[i - 1] in ("[", ","):
                return inside[i + 2]
        return ""

    def enum(self, space: str) -> None:
        name = ".".join(filter(None, (space, self.take())))
        numbers: dict[int, str] = {}
        self.take("{")
        while self.next != "}":
            word = self.take()
            if word in ("option", "reserved"):
                self.skip_to(";")
            elif word != ";":
                self.take("=")
                sign = self.take() if self.next in ("-", "+") else ""
                numbers.setdefault(int(sign + self.take(), 0), word)
                if self.next == "[":
                    self.take("[")
                    self.skip_to("]")
                self.take(";")
        self.take("}")
        self.out.enums[name] = numbers


__all__ = ["SCALARS", "ProtoField", "ProtoFile", "ProtoMessage", "proto_file"]
