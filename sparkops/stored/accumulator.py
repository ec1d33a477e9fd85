"""`Accumulator`: a combiner whose accumulators are columns of Spark, which are stored, merged and retracted later.

An accumulator is what a combiner knows of some rows before a result is made of it. A result cannot be added to another,
since two medians are no median; two accumulators can.

    add      rows -> accumulator                       merge      accumulators -> accumulator
    extract  accumulator -> result                     uncombine  accumulator, accumulator -> accumulator

Each verb has two doors. A DataFrame gives a DataFrame (`dataframes`): its tasks combine the rows that they read, so
only accumulators are shuffled. A column gives a column (`column_expressions`), for `agg()`, `.over(window)` and
`select()`.

Guarded by tests/sparkops/stored/test_accumulators.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from pyspark.sql import Column, DataFrame

from ...combiners import Combiner
from ...errors import InvalidArgument, NamedOptions, TypeMismatch, require_column
from ..sql_types import AnySchema, bind, ddl, input_fields, require_combiner, spark_schema
from . import column_expressions, dataframes
from .codec import Maker, combiner_of, maker_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, repr=False)
class Accumulator(NamedOptions):
    """Accumulators of a combiner as a column of Spark, in a DataFrame or as an expression.

    `extract(add(rows))` is the result of the rows, `merge` of the accumulators of parts is the accumulator of all rows,
    and `uncombine(whole, part)` that of the rows without the part. Several combiners are one:
    `Accumulator(Struct(total=Sum("x"), middle=Median("x")))`.

    Given a DataFrame, a verb gives a DataFrame: the keys and one accumulator for each, in a struct column whose
    metadata names the combiner. Null is a key of its own, NaN equals NaN, and a key has no row if all of its rows are
    retracted. Given a column, or the name of one, it gives an expression, which needs Spark 4.1 and can see no
    metadata; each row says by a hash which combiner made it. Accumulators of two combiners are never mixed, and null is
    the accumulator of no rows.

    Parameters
    ----------
    combiner
        What to compute. Its inputs are the columns that it names.
    name
        The name of the column of accumulators, and of their results; the repr of the combiner if not given.
    schema
        The types of the input columns: the DataFrame of the rows, its schema, or text such as "score bigint".
        Expressions need it, since Spark asks for their types before it has data. DataFrames tell their own types, and
        need it only where the metadata of a column was lost.

    Examples
    --------
    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> rows = [(1, "a", 3), (1, "a", 9), (2, "a", 5), (1, "b", 5)]
    >>> df = spark.createDataFrame(rows, "day int, user string, score long")
    >>> best = uc.Accumulator(uc.Max("score"), "best", schema=df)
    >>> daily = best.add(df, by=["user", "day"])
    >>> best.extract(best.merge(daily, by="user")).orderBy("user").show()
    +----+----+
    |user|best|
    +----+----+
    |   a|   9|
    |   b|   5|
    +----+----+
    <BLANKLINE>
    >>> days = df.groupBy("day").agg(best.add("score"))
    >>> days.select("day", best.extract("best")).orderBy("day").show()
    +---+----+
    |day|best|
    +---+----+
    |  1|   9|
    |  2|   5|
    +---+----+
    <BLANKLINE>
    """

    combiner: Combiner
    name: str = ""
    schema: AnySchema | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidArgument(f"Accumulator(name=) takes the name of a column, but was given {self.name!r}")
        bound = None if self.schema is None else bind("Accumulator", self.combiner, self.schema)
        if bound is None:
            require_combiner("Accumulator", self.combiner)
        # Only the types that the combiner reads: two values that do the same are equal.
        object.__setattr__(self, "schema", bound and input_fields(bound))
        object.__setattr__(self, "name", self.name or repr(self.combiner))

    @classmethod
    def read(cls, stored: DataFrame, name: str) -> Accumulator:
        """The accumulator that made a column, from its metadata; not for combiners with functions of your own.

        Examples
        --------
        >>> import uncombine as uc
        >>> spark = uc.session()
        >>> df = spark.createDataFrame([(3,), (9,)], "score long")
        >>> stored = uc.Accumulator(uc.Max("score"), "best").add(df)
        >>> uc.Accumulator.read(stored, "best")
        Accumulator(Max('score'), 'best', schema='score bigint')
        """
        require_column(name, stored.columns, "Accumulator.read")
        combiner = combiner_of(name, stored.schema[name])
        return cls(combiner, name, schema=maker_of(name, stored.schema[name], combiner).inputs)

    def __repr__(self) -> str:
        name = "" if self.name == repr(self.combiner) else f", {self.name!r}"
        types = "" if self.schema is None else f", schema={ddl(spark_schema(self.schema))!r}"
        return f"Accumulator({self.combiner!r}{name}{types})"

    @overload
    def add(self, rows: DataFrame, /, *, by: str | Sequence[str] = (), diff: str | None = None) -> DataFrame: ...
    @overload
    def add(self, *inputs: Column | str, diff: Column | str | None = None) -> Column: ...
    def add(self, *inputs: Any, by: str | Sequence[str] = (), diff: Any = None) -> DataFrame | Column:
        """Combine rows to accumulators.

        Parameters
        ----------
        inputs
            A bounded DataFrame; or the input columns, in the order of `combiner.bind(schema).columns`, for `agg()` and
            `.over(window)`. A combiner that reads no column, such as `Count()`, takes any one and counts its rows.
        by
            The key columns of a DataFrame.
        diff
            A column of integer weights: -1 retracts a row.

        Examples
        --------
        >>> import uncombine as uc
        >>> spark = uc.session()
        >>> rows = [("a", 3, 1), ("a", 9, 1), ("a", 9, -1)]
        >>> df = spark.createDataFrame(rows, "user string, score long, w long")
        >>> best = uc.Accumulator(uc.Max("score"), "best", schema=df)
        >>> best.extract(best.add(df, by="user", diff="w")).show()
        +----+----+
        |user|best|
        +----+----+
        |   a|   3|
        +----+----+
        <BLANKLINE>
        >>> df.agg(best.add("score", diff="w")).select(best.extract("best")).show()
        +----+
        |best|
        +----+
        |   3|
        +----+
        <BLANKLINE>
        """
        if _rows("add", 1, inputs, by):
            return dataframes.add(self._maker(inputs[0]), self.name, inputs[0], by, diff)
        return column_expressions.add(self._maker(), self.name, inputs, diff)

    @overload
    def merge(self, stored: DataFrame, /, *, by: str | Sequence[str] = ()) -> DataFrame: ...
    @overload
    def merge(self, stored: Column | str, /) -> Column: ...  # type: ignore[overload-cannot-match]
    def merge(self, stored: Any, /, *, by: str | Sequence[str] = ()) -> DataFrame | Column:
        """Merge accumulators: a roll-up to fewer keys, of several stored parts, or over the frames of a window.

        Parameters
        ----------
        stored
            A DataFrame of keys and accumulators, such as the union of several results of `add`, whose other columns are
            left out; or a column of accumulators, for `agg()` and `.over(window)`.
        by
            The key columns of a DataFrame.

        Examples
        --------
        >>> import uncombine as uc
        >>> from pyspark.sql import Window
        >>> spark = uc.session()
        >>> df = spark.createDataFrame([(1, 3), (2, 9), (3, 5)], "day int, score long")
        >>> middle = uc.Accumulator(uc.Median("score"), "middle", schema=df)
        >>> daily = middle.add(df, by="day")
        >>> middle.extract(middle.merge(daily)).show()
        +------+
        |middle|
        +------+
        |   5.0|
        +------+
        <BLANKLINE>
        >>> two_days = Window.orderBy("day").rangeBetween(-1, 0)
        >>> rolling = daily.select("day", middle.merge("middle").over(two_days))
        >>> middle.extract(rolling).orderBy("day").show()
        +---+------+
        |day|middle|
        +---+------+
        |  1|   3.0|
        |  2|   6.0|
        |  3|   7.0|
        +---+------+
        <BLANKLINE>
        """
        if _rows("merge", 1, (stored,), by):
            return dataframes.merge(self._stored("merge", stored), self.name, stored, by)
        return column_expressions.merge(self._maker(), self.name, stored)

    @overload
    def uncombine(self, stored: DataFrame, others: DataFrame, /, *, by: str | Sequence[str] = ()) -> DataFrame: ...
    @overload
    def uncombine(self, stored: Column | str, others: Column | str, /) -> Column: ...  # type: ignore[overload-cannot-match]
    def uncombine(self, stored: Any, others: Any, /, *, by: str | Sequence[str] = ()) -> DataFrame | Column:
        """Retract the rows of the accumulators in `others` from those in `stored`.

        Parameters
        ----------
        stored, others
            Two DataFrames of keys and accumulators, which are retracted key by key; or two columns, row by row.
        by
            The key columns of both DataFrames.

        Examples
        --------
        >>> import uncombine as uc
        >>> spark = uc.session()
        >>> rows = [(1, "a", 3), (2, "a", 9), (2, "b", 5)]
        >>> df = spark.createDataFrame(rows, "day int, user string, score long")
        >>> best = uc.Accumulator(uc.Max("score"), "best")
        >>> whole, second = best.add(df, by="user"), best.add(df.where("day = 2"), by="user")
        >>> best.extract(best.uncombine(whole, second, by="user")).show()
        +----+----+
        |user|best|
        +----+----+
        |   a|   3|
        +----+----+
        <BLANKLINE>
        """
        if _rows("uncombine", 2, (stored, others), by):
            maker = self._stored("uncombine", stored)
            maker.require_same(self._stored("uncombine", others), self.name)
            return dataframes.uncombine(maker, self.name, stored, others, by)
        return column_expressions.uncombine(self._maker(), self.name, stored, others)

    @overload
    def extract(self, stored: DataFrame, /) -> DataFrame: ...
    @overload
    def extract(self, stored: Column | str, /) -> Column: ...  # type: ignore[overload-cannot-match]
    def extract(self, stored: Any, /) -> DataFrame | Column:
        """Replace accumulators by their results.

        Parameters
        ----------
        stored
            A DataFrame, of which all other columns are unchanged, and a row is left out if its accumulator is of no
            rows; or a column of accumulators, in which the result of null is null.

        Examples
        --------
        >>> import uncombine as uc
        >>> spark = uc.session()
        >>> df = spark.createDataFrame([(3,), (9,)], "score long")
        >>> both = uc.Accumulator(uc.Struct(total=uc.Sum("score"), mean=uc.Mean("score")), "both")
        >>> both.extract(both.add(df)).select("both.*").show()
        +-----+----+
        |total|mean|
        +-----+----+
        |   12| 6.0|
        +-----+----+
        <BLANKLINE>
        """
        if _rows("extract", 1, (stored,), ()):
            return dataframes.extract(self._stored("extract", stored), self.name, stored)
        return column_expressions.extract(self._maker(), self.name, stored)

    @property
    def udf(self) -> Callable[..., Column]:
        """The plain aggregate, from input columns to the result in one step, for `agg()` and `.over(window)`.

        It takes the input columns by name (`f(x="height", y="weight")`), or in the order of
        `combiner.bind(schema).columns`; for a combiner that reads no column, any one column, whose rows it counts. The
        result is that of `add` and `extract`, to the last bit. A group must fit into the memory of a worker; of
        `extract(add(df, by=...))` it need not. Spark has such functions since 4.1.

        Examples
        --------
        >>> import uncombine as uc
        >>> spark = uc.session()
        >>> df = spark.createDataFrame([("a", 3), ("a", 9), ("b", 5)], "user string, score long")
        >>> best = uc.Accumulator(uc.TopK("score", 2), schema=df).udf
        >>> df.groupBy("user").agg(best("score").alias("best")).orderBy("user").show()
        +----+------+
        |user|  best|
        +----+------+
        |   a|[9, 3]|
        |   b|   [5]|
        +----+------+
        <BLANKLINE>
        """
        bound = bind("Accumulator", self.combiner, self.schema)
        # An aggregate never retracts rows, so the cheapest form gives its results.
        return column_expressions.aggregate(self.combiner.append_only().bind(bound.schema))

    def register(self, spark: SparkSession, name: str) -> None:
        """Make `udf` a function of SQL, `SELECT name(x) FROM t GROUP BY k`.

        Examples
        --------
        >>> import uncombine as uc
        >>> spark = uc.session()
        >>> uc.Accumulator(uc.Median("score"), schema="score long").register(spark, "middle")
        >>> spark.sql("SELECT middle(score) AS middle FROM VALUES (1), (2), (9) AS t(score)").show()
        +------+
        |middle|
        +------+
        |   2.0|
        +------+
        <BLANKLINE>
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidArgument(
                f"Accumulator.register takes a name for SQL such as 'total_score', but was given {name!r}"
            )
        spark.udf.register(name, self.udf)

    def _maker(self, rows: DataFrame | None = None) -> Maker:
        """The maker of new accumulators: over the types of the rows, or else over those of `schema`."""
        if rows is None or self.schema is None:
            return Maker(bind("Accumulator", self.combiner, self.schema if rows is None else rows))
        maker, expected = (Maker(bind("Accumulator", self.combiner, of)) for of in (rows, self.schema))
        if maker.mark != expected.mark:
            raise TypeMismatch(
                f"the rows give {maker!r}, but schema= says {expected!r}: cast the columns, or leave schema= out"
            )
        return maker

    def _stored(self, verb: str, stored: DataFrame) -> Maker:
        """The maker of the accumulators of a DataFrame, which its metadata names."""
        require_column(self.name, stored.columns, f"Accumulator.{verb}")
        return maker_of(self.name, stored.schema[self.name], self.combiner, self.schema)


def _rows(verb: str, count: int, inputs: Sequence[Any], by: str | Sequence[str]) -> bool:
    """True if the inputs are DataFrames, false if they are columns."""
    frames = [isinstance(one, DataFrame) for one in inputs]
    if frames and all(frames) and len(inputs) == count:
        return True
    for one in inputs:
        if not isinstance(one, Column | str):
            kind = "two DataFrames" if count == 2 else "a DataFrame"
            raise InvalidArgument(
                f"Accumulator.{verb} takes {kind}, or columns, but was given "
                f"{', '.join(type(other).__name__ for other in inputs)}"
            )
    if by:
        raise InvalidArgument(
            f"Accumulator.{verb}(by=) is for a DataFrame: write df.groupBy(...).agg(...) over columns"
        )
    return False
