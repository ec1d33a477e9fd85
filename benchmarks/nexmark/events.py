"""Events of online auctions: people, auctions and bids, as the benchmark NEXMark describes them.

An event follows from the seed and its number alone, so any part of the events can be made anywhere, in any order.
What is late, what comes twice and what is corrected follows from them too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

STAMP = pa.timestamp("us", "UTC")
FIRST_PERSON, FIRST_AUCTION, FIRST_CATEGORY = 1000, 1000, 10
OF_FIFTY = {"persons": 1, "auctions": 3, "bids": 46}
"""The number of events of each kind, of 50."""
HOT_AUCTIONS = HOT_SELLERS = HOT_BIDDERS = 100
ACTIVE_PERSONS, AUCTIONS_IN_FLIGHT, LEAD = 1000, 100, 10
OPEN_EVENTS = 100 * 50 // 3
"""Half of the longest life of an auction, in events."""
DELAYED, LONGEST_DELAY = 0.1, 3_000_000
ARRIVES = 1_000_000
"""Changes arrive once a second."""
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CHANNELS = ("Apple", "Google", "Facebook", "Baidu")

SCHEMAS = {
    "persons": pa.schema(
        [("id", pa.int64()), ("name", pa.string()), ("email", pa.string()), ("card", pa.string()),
         ("city", pa.string()), ("state", pa.string()), ("extra", pa.string())]
    ),
    "auctions": pa.schema(
        [("id", pa.int64()), ("item", pa.string()), ("description", pa.string()), ("initial", pa.int64()),
         ("reserve", pa.int64()), ("expires", STAMP), ("seller", pa.int64()), ("category", pa.int64()),
         ("extra", pa.string())]
    ),
    "bids": pa.schema(
        [("bid", pa.int64()), ("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64()),
         ("channel", pa.string()), ("url", pa.string()), ("extra", pa.string())]
    ),
}  # fmt: skip
SCHEMAS = {
    name: pa.schema([*own, ("ts", STAMP), ("seen", STAMP), ("diff", pa.int64())]) for name, own in SCHEMAS.items()
}
"""The columns of each kind. `ts` is the event time, `seen` the time of arrival, `diff` the weight of a change."""


@dataclass(frozen=True)
class Events:
    """The events of one seed.

    Parameters
    ----------
    rate
        Events a second.
    disorder
        So many events in a row come in another order.
    twice
        The share of bids that come once more, up to 3 seconds later.
    corrected
        The share of bids that turn out wrong: up to a minute later they are retracted, and come with another price.
    start
        The time of the first event, in microseconds.
    """

    seed: int = 0
    rate: int = 10_000
    disorder: int = 50
    twice: float = 0.0
    corrected: float = 0.0
    start: int = 1_714_564_800_000_000

    @property
    def changes(self) -> bool:
        """True if bids come twice or are corrected."""
        return bool(self.twice or self.corrected)

    def tables(self, first: int, count: int) -> dict[str, pa.Table]:
        """The changes that come of these events by kind, in the order in which they arrive."""
        number = np.arange(first, first + count)
        event = number // self.disorder * self.disorder + 953 * number % self.disorder
        kind = event % 50
        return {
            "persons": self._arrived("persons", self._persons(event[kind == 0]), event[kind == 0]),
            "auctions": self._arrived(
                "auctions", self._auctions(event[(kind > 0) & (kind < 4)]), event[(kind > 0) & (kind < 4)]
            ),
            "bids": self._arrived("bids", self._bids(event[kind > 3]), event[kind > 3]),
        }

    def times(self, event: np.ndarray) -> np.ndarray:
        """The event times of events, in microseconds."""
        return self.start + event * (1_000_000 // self.rate) // 1000 * 1000

    @property
    def longest(self) -> int:
        """The longest time that an auction is open, in microseconds."""
        return 1000 + 2 * self._half

    @property
    def _half(self) -> int:
        return OPEN_EVENTS * 1_000_000 // self.rate

    def _persons(self, event: np.ndarray) -> dict[str, pa.Array]:
        draw = Draw(self.seed, event, "person")
        first, last = draw.below(len(FIRST_NAMES)), draw.below(len(LAST_NAMES))
        names = pa.array([f"{FIRST_NAMES[i]} {LAST_NAMES[j]}" for i, j in zip(first, last, strict=True)], pa.string())
        cards = [
            " ".join(f"{part:04d}" for part in parts)
            for parts in zip(*(draw.below(10_000) for _ in range(4)), strict=True)
        ]
        return {
            "id": pa.array(FIRST_PERSON + event // 50),
            "name": names,
            "email": draw.text(7, "@", 5, ".com"),
            "card": pa.array(cards, pa.string()),
            "city": draw.of(CITIES),
            "state": draw.of(STATES),
            "extra": draw.text(100),
        }

    def _auctions(self, event: np.ndarray) -> dict[str, pa.Array]:
        draw, person = Draw(self.seed, event, "auction"), event // 50
        initial = draw.price()
        expires = self.times(event) + 1000 + draw.below(2 * self._half)
        return {
            "id": pa.array(FIRST_AUCTION + _auction(event)),
            "item": draw.text(20),
            "description": draw.text(100),
            "initial": pa.array(initial),
            "reserve": pa.array(initial + draw.price()),
            "expires": pa.array(expires).cast(STAMP),
            "seller": pa.array(np.where(draw.chance(0.75), _hot(person, HOT_SELLERS), draw.person(person))),
            "category": pa.array(FIRST_CATEGORY + draw.below(5)),
            "extra": draw.text(300),
        }

    def _bids(self, event: np.ndarray) -> dict[str, pa.Array]:
        draw, person = Draw(self.seed, event, "bid"), event // 50
        last = 3 * person + 2
        oldest = np.maximum(last - AUCTIONS_IN_FLIGHT, 0)
        cold = FIRST_AUCTION + oldest + draw.below(last - oldest + LEAD + 1)
        big = draw.chance(0.5)
        channel = np.where(
            big, np.array(CHANNELS)[draw.below(4)], np.char.add("channel-", draw.below(10_000).astype(str))
        )
        return {
            "bid": pa.array(event),
            "auction": pa.array(np.where(draw.chance(0.5), FIRST_AUCTION + last // HOT_AUCTIONS * HOT_AUCTIONS, cold)),
            "bidder": pa.array(np.where(draw.chance(0.75), _hot(person, HOT_BIDDERS) + 1, draw.person(person))),
            "price": pa.array(draw.price()),
            "channel": pa.array(channel, pa.string()),
            "url": draw.text("https://www.nexmark.com/", 12, "/item.htm"),
            "extra": draw.text(40),
        }

    def _arrived(self, name: str, columns: dict[str, pa.Array], event: np.ndarray) -> pa.Table:
        """The rows with their times, and those that come twice or are corrected."""
        draw, times = Draw(self.seed, event, f"arrival of {name}"), self.times(event)
        seen = times + np.where(draw.chance(DELAYED), draw.below(LONGEST_DELAY), 0)
        rows = pa.table({**columns, "ts": pa.array(times).cast(STAMP)})
        plain = np.ones(len(event), np.int64)
        changes = [(rows, seen, plain)]
        if name == "bids":
            again, wrong = (np.flatnonzero(draw.chance(share)) for share in (self.twice, self.corrected))
            later = seen + 1 + draw.below(LONGEST_DELAY)
            changes.append((rows.take(again), later[again], plain[again]))
            # What is corrected comes once: two changes of one number would leave open which copy is retracted.
            wrong = np.setdiff1d(wrong, again)
            old, noticed = rows.take(wrong), (seen + 1 + draw.below(60_000_000))[wrong]
            price = pa.array(draw.price()[wrong])
            changes.append((old, noticed, -plain[wrong]))
            new = old.set_column(old.column_names.index("price"), "price", price)
            changes.append((new, noticed, plain[wrong]))
        table = pa.concat_tables([some for some, _, _ in changes])
        seen, diff = (np.concatenate([change[i] for change in changes]) for i in (1, 2))
        seen = -(-seen // ARRIVES) * ARRIVES
        table = table.append_column("seen", pa.array(seen).cast(STAMP)).append_column("diff", pa.array(diff))
        return table.take(pa.array(np.argsort(seen, kind="stable"))).cast(SCHEMAS[name])


class Draw:
    """Numbers that follow from a seed, the numbers of events and how often was drawn before."""

    def __init__(self, seed: int, event: np.ndarray, what: str) -> None:
        salt = np.frombuffer(what.encode().ljust(24, b"\0")[:24], np.uint64).copy()
        self._key = _mixed(event.astype(np.uint64) ^ _mixed(salt ^ np.uint64(seed)).sum(dtype=np.uint64))
        self._count = 0

    def bits(self) -> np.ndarray:
        self._count += 0x9E3779B97F4A7C15
        return _mixed(self._key + np.uint64(self._count % 2**64))

    def share(self) -> np.ndarray:
        """Numbers from 0 to below 1."""
        return (self.bits() >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, bound: int | np.ndarray) -> np.ndarray:
        """Whole numbers from 0 to below a bound."""
        return (self.share() * bound).astype(np.int64)

    def chance(self, share: float) -> np.ndarray:
        return self.share() < share

    def price(self) -> np.ndarray:
        """A price in cents."""
        return np.round(100 * 10 ** (6 * self.share())).astype(np.int64)

    def person(self, person: np.ndarray) -> np.ndarray:
        """One of the active people, or one who will come soon."""
        active = np.minimum(person + 1, ACTIVE_PERSONS)
        return FIRST_PERSON + person + 1 - active + self.below(active + LEAD)

    def of(self, words: tuple[str, ...]) -> pa.Array:
        return pa.array(words).take(pa.array(self.below(len(words))))

    def text(self, *parts: int | str) -> pa.Array:
        """Texts of random letters, so many each, and of given words."""
        blocks = []
        for part in parts:
            if isinstance(part, str):
                given = np.frombuffer(part.encode(), np.uint8)
                blocks.append(np.broadcast_to(given, (len(self._key), len(given))))
            else:
                words = np.stack([self.bits() for _ in range(-(-part // 8))], axis=1).view(np.uint8)[:, :part]
                blocks.append(words % 26 + ord("a"))
        letters = np.ascontiguousarray(np.concatenate(blocks, axis=1).astype(np.uint8))
        ends = np.arange(len(letters) + 1, dtype=np.int32) * letters.shape[1]
        return pa.StringArray.from_buffers(len(letters), pa.py_buffer(ends), pa.py_buffer(letters))


def _mixed(bits: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64, a one-to-one function whose results look random."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _auction(event: np.ndarray) -> np.ndarray:
    """The number of the auction that an event opens."""
    return 3 * (event // 50) + event % 50 - 1


def _hot(person: np.ndarray, every: int) -> np.ndarray:
    """The person of whom most of the events are for a while."""
    return FIRST_PERSON + person // every * every
