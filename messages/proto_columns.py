"""Messages of Protobuf as columns: the next field of many messages at once, until none has one.

Stricter than Protobuf's own parsers, which a reader of tables would not notice: a field with the wire type of another
type, a number out of the range of its type, and a boolean of 2 make a message bad.

Guarded by tests/messages/test_protobuf.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from .proto_scalars import FIXED32, FIXED64, SPAN, VARINT, Scalars, packed, scalars, taken, wire_type
from .proto_text import ProtoField, ProtoMessage
from .proto_types import DURATION, TIMESTAMP, WRAPPERS, ProtoSchema
from .spans.column_parts import assembled, list_of, map_of
from .spans.cursors import PAD, Cursors, Fault, binary_of, not_utf8

_ENTRY = "map entry"
"""The name of the messages in which a map has its keys and values; no message of a file has one like it."""

_MANY = 1 << 29
"""The number after those that fields have; it stands for all unknown fields."""

_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799
"""The seconds of the years 1 and 9999, which a Timestamp keeps to."""

_LONGEST = 315_576_000_000
"""The most seconds of a Duration."""


@dataclass
class _Values:
    """The values of a field that were met: the messages that have them, and numbers, or the places of spans."""

    owners: list[np.ndarray] = field(default_factory=list)
    first: list[np.ndarray] = field(default_factory=list)
    second: list[np.ndarray] = field(default_factory=list)

    def add(self, owners: np.ndarray, first: np.ndarray, second: np.ndarray | None = None) -> None:
        self.owners.append(owners)
        self.first.append(first)
        if second is not None:
            self.second.append(second)

    def drop(self, owners: np.ndarray) -> _Values:
        """Forget the values of some messages, and give them."""
        gone, dropped = [np.isin(own, owners) for own in self.owners], _Values()
        for own, parts in zip(dropped.parts, self.parts, strict=True):
            own[:] = [part[mask] for part, mask in zip(parts, gone, strict=False)]
            parts[:] = [part[~mask] for part, mask in zip(parts, gone, strict=False)]
        return dropped

    @property
    def parts(self) -> tuple[list[np.ndarray], ...]:
        return self.owners, self.first, self.second

    def ordered(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """All values, those of one message in their order, and the messages in theirs."""
        owners = _joined(self.owners)
        order = np.argsort(owners, kind="stable")
        second = _joined(self.second)[order] if self.second else None
        return owners[order], _joined(self.first)[order], second


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@dataclass(frozen=True)
class MessageReader:
    """Reads messages of one type."""

    schema: ProtoSchema
    name: str

    def __call__(self, c: Cursors) -> list[pa.Array]:
        """The columns of the messages, one for each field; the messages are at their ends then."""
        begins = c.pos
        fields = {one.number: one for one in self.schema.messages[self.name].fields}
        met: dict[int, _Values] = {number: _Values() for number in fields}
        going = np.flatnonzero(c.pos < c.end)
        while len(going):
            is_all = len(going) == len(c)
            some = c if is_all else c.part(going)
            tags = self._known(some, some.varints(), fields)
            for tag in _distinct(tags[some.fault == 0]):
                mask = (tags == tag) & (some.fault == 0)
                if mask.all():
                    self._take(some, int(tag), fields, met, going)
                else:
                    places = np.flatnonzero(mask)
                    inner = some.part(places)
                    self._take(inner, int(tag), fields, met, going[places])
                    some.put(places, inner)
            if not is_all:
                c.put(going, some)
            going = going[(some.pos < some.end) & (some.fault == 0)]
        return [self._column(c, one, met[one.number], begins) for one in fields.values()]

    def _known(self, c: Cursors, tags: np.ndarray, fields: dict[int, ProtoField]) -> np.ndarray:
        """The tags, with one for all unknown fields of a wire type, since random bytes have many."""
        numbers = tags >> np.uint64(3)
        c.fail((numbers == 0) | (numbers >= _MANY), Fault.FIELD)
        known = np.isin(numbers, np.array(list(fields), np.uint64))
        return tags if known.all() else np.where(known, tags, (tags & np.uint64(7)) | np.uint64(_MANY << 3))

    def _take(
        self, c: Cursors, tag: int, fields: dict[int, ProtoField], met: dict[int, _Values], owners: np.ndarray
    ) -> None:
        """The field that begins with a tag."""
        number, wire = tag >> 3, tag & 7
        everyone = np.ones(len(c), np.bool_)
        if wire in (3, 4):
            c.fail(everyone, Fault.GROUP)
        elif wire not in (VARINT, FIXED64, SPAN, FIXED32):
            c.fail(everyone, Fault.WIRE)
        elif number not in fields:
            if self.name == _ENTRY:
                c.fail(everyone, Fault.ENTRY)
            elif wire == SPAN:
                _spans(c)
            else:
                taken(c, wire)
        else:
            self._values(c, fields[number], wire, met, owners)

    def _values(self, c: Cursors, one: ProtoField, wire: int, met: dict[int, _Values], owners: np.ndarray) -> None:
        if one.oneof:
            self._choose(c, one, met, owners)
        values, kind = met[one.number], "message" if one.key else self.schema.kind_of(one)
        wanted = wire_type(kind)
        if wire == wanted == SPAN:
            values.add(owners, *_spans(c))
        elif wire == wanted:
            values.add(owners, taken(c, wire))
        elif wire == SPAN and one.repeated:
            words, spans = packed(c, kind, *_spans(c))
            values.add(owners[spans], words)
        else:
            c.fail(np.ones(len(c), np.bool_), Fault.WIRE)

    def _choose(self, c: Cursors, one: ProtoField, met: dict[int, _Values], owners: np.ndarray) -> None:
        """Forget the values of the other fields of which a message has one; they must be good, too."""
        for other in self.schema.messages[self.name].fields:
            if other.oneof != one.oneof or other.number == one.number or not met[other.number].owners:
                continue
            dropped = met[other.number].drop(owners)
            if sum(map(len, dropped.owners)):
                gone, first, second = dropped.ordered()
                own = np.searchsorted(owners, gone)  # the messages of a round are in order
                self._elements(c, other, self.schema.kind_of(other), own, first, second)

    def _column(self, c: Cursors, one: ProtoField, met: _Values, begins: np.ndarray) -> pa.Array:
        kind, to = self.schema.kind_of(one), self.schema.arrow(one)
        if one.key:
            return self._map(c, one, met, to)
        if one.repeated:
            owners, first, second = met.ordered()
            values = self._elements(c, one, kind, owners, first, second)
            return list_of(values, [owners], len(c), to)
        there = np.zeros(len(c), np.bool_)
        for owners in met.owners:
            there[owners] = True
        if kind == "message":
            some = np.flatnonzero(there)
            data, starts, ends = _merged(c, met, some)
            part = self._messages(c, one.kind, data, starts, ends, some)
            return part if len(some) == len(c) else assembled([part], [some], len(c), to)
        if wire_type(kind) == SPAN:
            starts, ends = begins.copy(), begins.copy()
            for owners, first, second in zip(met.owners, met.first, met.second, strict=True):
                starts[owners], ends[owners] = first, second
            if sum(map(len, met.owners)) > np.count_nonzero(there):  # values that do not count must be good, too
                self._elements(c, one, kind, *met.ordered())
            values = _text(c, one.kind, c.data, starts, ends, np.arange(len(c)))
        else:
            words = np.zeros(len(c), np.uint64)
            for owners, numbers in zip(met.owners, met.first, strict=True):
                words[owners] = numbers
            values = _noted(c, scalars(kind, words, self.schema.enums.get(one.kind)), np.arange(len(c)))
        if not one.has_presence or there.all():
            return values
        default = pa.scalar(default_of(one, kind), to)
        if default.is_valid:
            both = pa.concat_arrays([values, pa.array([default.as_py()], to)])
            return both.take(pa.array(np.where(there, np.arange(len(c)), len(c))))
        return values.take(pa.array(np.arange(len(c)), mask=~there))

    def _elements(
        self, c: Cursors, one: ProtoField, kind: str, owners: np.ndarray, first: np.ndarray, second: np.ndarray | None
    ) -> pa.Array:
        """The values of a repeated field, one after the other."""
        if kind == "message":
            return self._messages(c, one.kind, c.data, first, _joined([]) if second is None else second, owners)
        if wire_type(kind) == SPAN:
            return _text(c, one.kind, c.data, first, _joined([]) if second is None else second, owners)
        words = first.astype(np.uint64, copy=False)
        return _noted(c, scalars(kind, words, self.schema.enums.get(one.kind)), owners)

    def _map(self, c: Cursors, one: ProtoField, met: _Values, to: pa.DataType) -> pa.Array:
        """A map is a repeated message of a key and a value; of a key that is there twice the last value counts."""
        owners, starts, ends = met.ordered()
        entries = Cursors(c.data, starts, _joined([]) if ends is None else ends)
        keys, values = MessageReader(_entry(self.schema, one), _ENTRY)(entries)
        _pass_on(c, entries, owners)
        if self.schema.kind_of(one) == "message":  # a value that is left out is a message without fields
            nothing = Cursors(c.data, np.zeros(1, np.int64), np.zeros(1, np.int64))
            empty = self._message(one.kind, nothing)
            both = pa.concat_arrays([values, empty])
            lacks = np.asarray(values.is_null()) if one.kind not in WRAPPERS else np.zeros(len(values), np.bool_)
            values = both.take(pa.array(np.where(lacks, len(values), np.arange(len(values)))))
        return map_of(keys, values, [owners], len(c), to)

    def _messages(
        self, c: Cursors, name: str, data: np.ndarray, starts: np.ndarray, ends: np.ndarray, owners: np.ndarray
    ) -> pa.Array:
        """The messages in spans."""
        inner = Cursors(data, starts, ends)
        values = self._message(name, inner)
        _pass_on(c, inner, owners)
        return values

    def _message(self, name: str, c: Cursors) -> pa.Array:
        columns = MessageReader(self.schema, name)(c)
        if name in WRAPPERS:
            return columns[0]
        if name in (TIMESTAMP, DURATION):
            return _micros(c, name == TIMESTAMP, *columns)
        if not columns:
            return pa.array([{}] * len(c), pa.struct([]))
        return pa.StructArray.from_arrays(columns, fields=self.schema.columns(name))


def _distinct(tags: np.ndarray) -> np.ndarray:
    return tags[:1] if len(tags) == 0 or (tags == tags[0]).all() else np.unique(tags)


def _spans(c: Cursors) -> tuple[np.ndarray, np.ndarray]:
    return c.spans(c.varints().view(np.int64))


def _pass_on(c: Cursors, inner: Cursors, owners: np.ndarray) -> None:
    """Give messages the faults of the messages in them."""
    for code in np.unique(inner.fault[inner.fault != 0]):
        mask = np.zeros(len(c), np.bool_)
        mask[owners[inner.fault == code]] = True
        c.fail(mask, Fault(code))


def _noted(c: Cursors, made: Scalars, owners: np.ndarray) -> pa.Array:
    """The values, whose faults are those of their messages."""
    if made.bad is not None and made.bad.any():
        mask = np.zeros(len(c), np.bool_)
        mask[owners[made.bad]] = True
        c.fail(mask, made.fault)
    return made.values


def _text(
    c: Cursors, kind: str, data: np.ndarray, starts: np.ndarray, ends: np.ndarray, owners: np.ndarray
) -> pa.Array:
    """Texts or bytes in spans."""
    raw = binary_of(data, starts, ends)
    if kind == "bytes":
        return raw
    bad = not_utf8(raw)
    if bad.any():
        _noted(c, Scalars(raw, bad, Fault.TEXT), owners)
        raw = binary_of(data, starts, np.where(bad, starts, ends))
    return raw.cast(pa.string())


def _merged(c: Cursors, met: _Values, some: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The spans of a message that is there once; one that is there in parts is put together after the others."""
    starts, ends = np.zeros(len(c), np.int64), np.zeros(len(c), np.int64)
    counts = np.zeros(len(c), np.int64)
    for owners, low, high in zip(met.owners, met.first, met.second, strict=True):
        starts[owners], ends[owners] = low, high
        counts[owners] += 1
    data = c.data
    if (counts > 1).any():
        every, first, second = met.ordered()
        assert second is not None
        extra, size = list[bytes](), len(data) - PAD
        for owner in np.flatnonzero(counts > 1):  # few: nobody writes a message in parts
            own = every == owner
            whole = b"".join(data[a:b].tobytes() for a, b in zip(first[own], second[own], strict=True))
            starts[owner], ends[owner] = size, size + len(whole)
            size += len(whole)
            extra.append(whole)
        data = np.frombuffer(data[:-PAD].tobytes() + b"".join(extra) + bytes(PAD), np.uint8)
    return data, starts[some], ends[some]


def _entry(schema: ProtoSchema, one: ProtoField) -> ProtoSchema:
    """The schema with the message of the entries of a map."""
    fields = [ProtoField("key", 1, one.key), ProtoField("value", 2, one.kind)]
    return ProtoSchema({**schema.messages, _ENTRY: ProtoMessage(_ENTRY, fields)}, schema.enums, schema.file)


def _micros(c: Cursors, is_time: bool, seconds: pa.Array, nanos: pa.Array) -> pa.Array:
    """A Timestamp or a Duration in whole microseconds, toward zero."""
    whole, part = (np.asarray(column).astype(np.int64) for column in (seconds, nanos))
    if is_time:
        bad = (whole < _EARLIEST) | (whole > _LATEST) | (part < 0) | (part > 999_999_999)
    else:
        bad = (np.abs(whole) > _LONGEST) | (np.abs(part) > 999_999_999) | ((whole > 0) & (part < 0))
        bad |= (whole < 0) & (part > 0)
    c.fail(bad, Fault.TIME)
    micros = np.where(bad, 0, whole) * 1_000_000 + (np.sign(part) * (np.abs(part) // 1000))
    return pa.array(micros).view(pa.timestamp("us", "UTC") if is_time else pa.duration("us"))


def default_of(one: ProtoField, kind: str) -> object:
    """The default that proto2 gives a field; None without one."""
    text = one.default
    if not text or kind == "message":
        return None
    if kind in ("string", "bytes"):
        inside = text[1:-1].encode().decode("unicode_escape")
        return inside if kind == "string" else inside.encode("latin-1")
    if kind == "bool":
        return text == "true"
    if kind == "enum":
        return text
    return float(text) if kind in ("double", "float") else int(text, 0)


__all__ = ["MessageReader", "default_of"]
