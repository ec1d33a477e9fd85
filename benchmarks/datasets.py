"""Parquet files for measures: a key, a time and values, in order of arrival; of integers, or as people have them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_700_000_040_000_000  # a whole minute

COUNTRIES = ("US", "IN", "BR", "DE", "ID", "GB", "FR", "MX", "JP", "TR", "IT", "ES", "PL", "CA", "NL", "CL", "SE", "FI")


def files(rows: int, keys: int, count: int = 6, seconds: int = 720, seed: int = 1) -> str:
    """A folder of `count` files with `rows` rows of small integers in all, over the given event time."""

    def made(rng: np.random.Generator, times: np.ndarray) -> pa.Table:
        return pa.table(
            {
                "k": rng.integers(0, keys, len(times)),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "v": rng.integers(0, 1000, len(times)),
                "x": rng.normal(0, 1e3, len(times)),
            }
        )

    return _written(rows, count, seconds, seed, made)


def purchases(rows: int, keys: int, count: int = 6, seconds: int = 720, seed: int = 1) -> str:
    """The same of rows as people have them: users, countries, amounts with cents, late by some seconds.

    The ids of users are 32 characters of a UUID, and some users have many more rows than others, by a power law.
    Amounts are lognormal and rounded to cents. A row comes 5 seconds after its event time in the mean, by an
    exponential law.
    """
    ids = user_ids(keys, seed)
    often = _power_law(keys, 0.9)
    of_country = _power_law(len(COUNTRIES), 1.0)

    def made(rng: np.random.Generator, times: np.ndarray) -> pa.Table:
        drawn = np.searchsorted(often, rng.random(len(times)))
        # Users live in one country, and few of their rows come from another.
        away = rng.random(len(times)) < 0.05
        home = np.searchsorted(of_country, (drawn * 0.6180339887) % 1.0)
        country = np.where(away, np.searchsorted(of_country, rng.random(len(times))), home)
        late = rng.exponential(5e6, len(times)).astype(np.int64)
        return pa.table(
            {
                "k": ids.take(pa.array(drawn)),
                "country": pa.array(COUNTRIES).take(pa.array(country)),
                "ts": pa.array(times - late, pa.timestamp("us", "UTC")),
                "v": np.round(rng.lognormal(3.0, 1.2, len(times)), 2),
            }
        )

    return _written(rows, count, seconds, seed, made)


def orders(rows: int, count: int = 6, seconds: int = 720, seed: int = 1) -> str:
    """Events of orders, of which most have one: ids of 32 characters, and amounts with cents."""

    def made(rng: np.random.Generator, times: np.ndarray) -> pa.Table:
        ids = _hexadecimal(rng.integers(0, 256, (len(times), 16), dtype=np.uint8))
        places = np.arange(len(ids))
        again = rng.random(len(ids)) < 0.1
        places[again] = rng.integers(0, len(ids), int(again.sum()))
        return pa.table(
            {
                "k": ids.take(pa.array(places)),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "v": np.round(rng.lognormal(3.0, 1.2, len(times)), 2),
            }
        )

    return _written(rows, count, seconds, seed, made)


def user_ids(count: int, seed: int = 1) -> pa.Array:
    """Texts of 32 hexadecimal digits, as those of a UUID without its hyphens."""
    return _hexadecimal(np.random.default_rng(seed).integers(0, 256, (count, 16), dtype=np.uint8))


def _hexadecimal(words: np.ndarray) -> pa.Array:
    digits = words.tobytes().hex().encode()
    ends = np.arange(len(words) + 1, dtype=np.int32) * 2 * words.shape[1]
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(ends), pa.py_buffer(digits))


def drawn_ids(rows: int, keys: int, seed: int = 1) -> pa.Array:
    """The user of each row, as in purchases."""
    places = np.searchsorted(_power_law(keys, 0.9), np.random.default_rng(seed).random(rows))
    return user_ids(keys, seed).take(pa.array(places))


def _power_law(count: int, exponent: float) -> np.ndarray:
    """The distribution function of 0 to count - 1, each as likely as a power of its place."""
    summed = np.cumsum(np.arange(1, count + 1) ** -exponent)
    shares: np.ndarray = summed / summed[-1]
    return shares


def _written(
    rows: int, count: int, seconds: int, seed: int, made: Callable[[np.random.Generator, np.ndarray], pa.Table]
) -> str:
    """Files of rows that arrive one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="uncombine-bench-"))
    rng = np.random.default_rng(seed)
    each, micros = rows // count, seconds * 1_000_000 // count
    for i in range(count):
        times = np.sort(rng.integers(START + i * micros, START + (i + 1) * micros, each))
        pq.write_table(made(rng, times), folder / f"part-{i}.parquet")
    return str(folder)
