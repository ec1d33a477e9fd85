"""The names of PySpark that are not public, each behind a function that works with every supported version.

PySpark may change such a name in any version, so no other module imports one (`tests/house/test_imports.py`), and
each function has a test (`tests/sparkops/test_spark_private.py`). The docstring of a new function names the differences
between versions; `make matrix` tests them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo as ExpiredTimerInfo
    from pyspark.sql.streaming.stateful_processor import TimerValues as TimerValues

_UTC = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_type).parameters else {}


def arrow_of(kind: DataType) -> pa.DataType:
    """The Arrow type for a type of Spark; timestamps are in UTC. Raises TypeError if there is none.

    Since 4.2 `to_arrow_type` takes the time zone of timestamps and must be given one; before, it knows only UTC.

    >>> from pyspark.sql.types import LongType, TimestampType
    >>> arrow_of(LongType()), arrow_of(TimestampType())
    (DataType(int64), TimestampType(timestamp[us, tz=UTC]))
    """
    return to_arrow_type(kind, **_UTC)


def spark_of(kind: pa.DataType) -> DataType:
    """Spark's type for an Arrow type; a timestamp without a time zone keeps none. Raises TypeError if there is none.

    Before 4.2 `from_arrow_type` makes every timestamp one in the session's time zone by default; since then
    it takes a timestamp as it is.

    >>> import pyarrow as pa
    >>> spark_of(pa.timestamp("us")), spark_of(pa.timestamp("us", "UTC"))
    (TimestampNTZType(), TimestampType())
    """
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def execution(df: DataFrame) -> Any | None:
    """Catalyst's query execution of a DataFrame, as an object of the JVM; None for a DataFrame of Spark Connect.

    >>> import uncombine as uc
    >>> execution(uc.session().range(3)).analyzed().nodeName()
    'Range'
    """
    plan = getattr(df, "_jdf", None)
    return None if plan is None else plan.queryExecution()


def file_system(spark: SparkSession, folder: str) -> str | None:
    """The class of Hadoop for the files of a folder, in the JVM of a session; None if there is none, or no JVM.

    >>> import uncombine as uc
    >>> file_system(uc.session(), "/tmp")
    'org.apache.hadoop.fs.LocalFileSystem'
    """
    jvm, session = (getattr(spark, name, None) for name in ("_jvm", "_jsparkSession"))
    if jvm is None or session is None:
        return None
    settings = session.sessionState().newHadoopConf()
    try:
        name: str = jvm.org.apache.hadoop.fs.Path(folder).getFileSystem(settings).getClass().getName()
    except Exception:  # of py4j; Spark says what is wrong when the query starts
        return None
    return name


def lacks_file_system(spark: SparkSession, folder: str) -> bool:
    """True if Hadoop has no class for the scheme of a folder in the JVM of a session; False where there is no JVM.

    >>> import uncombine as uc
    >>> lacks_file_system(uc.session(), "/tmp"), lacks_file_system(uc.session(), "nowhere://tmp")
    (False, True)
    """
    jvm, session = (getattr(spark, name, None) for name in ("_jvm", "_jsparkSession"))
    if jvm is None or session is None:
        return False
    scheme, colon, _ = folder.partition("://")
    try:
        if colon:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, session.sessionState().newHadoopConf())
    except Exception:  # of py4j
        return True
    return False


def write_new_file(spark: SparkSession, path: str, text: str) -> bool:
    """Write a file where Spark keeps a checkpoint, whole or not at all; False if it is there, or where there is no JVM.

    >>> import pathlib, tempfile, uncombine as uc
    >>> path = f"{tempfile.mkdtemp()}/new"
    >>> write_new_file(uc.session(), path, "a"), write_new_file(uc.session(), path, "b")
    (True, False)
    >>> pathlib.Path(path).read_text()
    'a'
    """
    jvm, session = (getattr(spark, name, None) for name in ("_jvm", "_jsparkSession"))
    if jvm is None or session is None:
        return False
    place = jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(session.sessionState().newHadoopConf())
    if system.exists(place):
        return False
    part = jvm.org.apache.hadoop.fs.Path(place.getParent(), f".{place.getName()}.uncombine.tmp")
    file = system.create(part, True)
    try:
        file.write(bytearray(text.encode()))
    finally:
        file.close()
    return bool(system.rename(part, place))


def renaming_writer(spark: SparkSession) -> str | None:
    """The class of Spark that writes files of a checkpoint by renaming them; None if there is none, or no JVM.

    4.1 moved it into the package `checkpointing`.

    >>> import uncombine as uc
    >>> renaming_writer(uc.session()).rpartition(".")[2]
    'FileSystemBasedCheckpointFileManager'
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return None
    for package in ("checkpointing.", ""):
        name = f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"
        with suppress(Exception):  # of py4j
            return str(jvm.java.lang.Class.forName(name).getName())
    return None


def pickled(value: Any) -> bytes:
    """A value as PySpark pickles functions: what is of the user's program travels whole.

    >>> import pickle
    >>> pickle.loads(pickled(lambda x: x + 1))(2)
    3
    """
    made: bytes = cloudpickle.dumps(value)
    return made


def travels_by_value(module: ModuleType) -> None:
    """Make the classes and functions of a module travel whole, so that a worker does not import the module.

    >>> import uncombine.sparkops.routes.thin_processor as thin
    >>> travels_by_value(thin)
    >>> len(pickled(thin.ThinProcessor)) > 1_000  # by its name alone it would be 90 bytes
    True
    """
    cloudpickle.register_pickle_by_value(module)


def messages(df: DataFrame) -> Iterator[tuple[Any, DataFrame]]:
    """The messages of the operations of a DataFrame of Spark Connect, the last first, and a DataFrame of each."""
    made: Any = df
    plan = made._plan
    while plan is not None:
        yield plan.plan(made.sparkSession.client), type(made)(plan, made.sparkSession)
        plan = plan._child


class _ProgressListener:
    """A listener of the JVM that takes a progress as JSON: PySpark's own reads each of its fields over the wire."""

    def __init__(self, take: Callable[[Mapping[str, Any]], None], end: Callable[[Mapping[str, Any]], None]) -> None:
        self.take, self.end = take, end

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self.take(json.loads(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.end(json.loads(event.json()))

    class Java:
        """The interface of the JVM."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


def on_progress(
    spark: SparkSession, take: Callable[[Mapping[str, Any]], None], end: Callable[[Mapping[str, Any]], None]
) -> bool:
    """Call `take` with the progress of each batch of the queries of a session, and `end` with the end of a run.

    The end has the ids of the query and of the run, and the text of the exception if there is one. The calls come in a
    thread of their own. False for a session of Spark Connect, where nothing is called.
    """
    jvm, context = (getattr(spark, name, None) for name in ("_jvm", "sparkContext"))
    if jvm is None or context is None:
        return False
    from pyspark.java_gateway import ensure_callback_server_started  # a client of Spark Connect may lack it

    ensure_callback_server_started(context._gateway)
    listener = jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(_ProgressListener(take, end))
    spark.streams._jsqm.addListener(listener)
    return True


def checkpoint_of(query: StreamingQuery) -> str | None:
    """The folder of the checkpoint of a query; None for a query of Spark Connect."""
    jvm = getattr(query, "_jsq", None)
    if jvm is None:
        return None
    inner = jvm.streamingQuery() if hasattr(jvm, "streamingQuery") else jvm
    return str(inner.resolvedCheckpointRoot())


def session_id(spark: SparkSession) -> str | None:
    """The id of a session, for which several objects of Python may stand; None for a session of Spark Connect.

    >>> import uncombine as uc
    >>> spark = uc.session()
    >>> session_id(spark) == session_id(spark.getActiveSession()) != session_id(spark.newSession())
    True
    """
    session = getattr(spark, "_jsparkSession", None)
    return None if session is None else str(session.sessionUUID())


def cores(spark: SparkSession) -> int:
    """The tasks that a session runs at once; 8 for a session of Spark Connect, which does not say it.

    >>> import uncombine as uc
    >>> cores(uc.session()) > 0
    True
    """
    context = getattr(spark, "sparkContext", None)
    return 8 if context is None else int(context.defaultParallelism)


def has_jobs(spark: SparkSession, group: str) -> bool:
    """True if a group, such as that of a query's run, has had a job; False for a session of Spark Connect."""
    context = getattr(spark, "sparkContext", None)
    return context is not None and bool(context.statusTracker().getJobIdsForGroup(group))


def await_events(spark: SparkSession) -> None:
    """Wait until the listeners of a session have had all events, at most some seconds."""
    context = getattr(getattr(spark, "sparkContext", None), "_jsc", None)
    if context is not None:
        with suppress(Exception):  # the JVM may have ended before
            context.sc().listenerBus().waitUntilEmpty(5_000)
