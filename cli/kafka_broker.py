"""A broker of Kafka on this machine, from jars that Maven fetches: one process on loopback, for the demo and the tests.

It is for messages that nobody needs later: one partition of each internal topic, and no copies.

Guarded by tests/cli/test_demo_kafka.py.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

from .failures import Failed

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>uncombine</groupId>
  <artifactId>kafka-broker</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>4.1.1</version>
    </dependency>
  </dependencies>
</project>
"""

SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={protocol}://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={protocol}://127.0.0.1:{port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocol}:{protocol}
controller.listener.names=CONTROLLER
inter.broker.listener.name={protocol}
log.dirs={folder}/log
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=4194304
log.initial.task.delay.ms=500
log.retention.check.interval.ms=300
log.cleaner.backoff.ms=300
log.segment.delete.delay.ms=100
message.max.bytes=60000000
"""

HEAP = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def why_no_broker(jars: Path) -> str | None:
    """The reason why there can be no broker here, in a sentence; None if there can."""
    if shutil.which("java") is None:
        return "a broker of Kafka needs Java, and there is none: install Java 17 or newer"
    if not jars.is_dir() and shutil.which("mvn") is None:
        return "the jars of Kafka come by Maven, and there is no mvn: install it, or name a broker with --servers"
    return None


def copy_jars(jars: Path) -> None:
    """Have Maven copy the jars of Kafka to a folder, if it is not there."""
    if jars.is_dir():
        return
    jars.parent.mkdir(parents=True, exist_ok=True)
    part = jars.with_name(f"{jars.name}-{uuid.uuid4().hex}")
    with tempfile.TemporaryDirectory(prefix="uncombine-") as folder:
        (Path(folder) / "pom.xml").write_text(POM)
        command = ["mvn", "-q", "-B", "-f", f"{folder}/pom.xml", "dependency:copy-dependencies"]
        done = subprocess.run([*command, "-DincludeScope=runtime", f"-DoutputDirectory={part}"], capture_output=True)
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        raise Failed(f"Maven did not fetch the jars of Kafka: {done.stdout.decode(errors='replace')[:300]}")
    part.rename(jars)


class LocalBroker:
    """A broker, which is also the controller of its cluster, with its data in a folder."""

    protocol = "PLAINTEXT"
    settings = ""
    """More settings of the broker, a line each."""

    def __init__(self, folder: Path, jars: Path) -> None:
        copy_jars(jars)
        self.folder, self.jars = folder, jars
        self.process: subprocess.Popen[bytes] | None = None
        self.port, self.controller = _free_ports()
        folder.mkdir(parents=True, exist_ok=True)
        ports = {"port": self.port, "controller": self.controller}
        settings = SETTINGS.format(folder=folder, protocol=self.protocol, **ports) + self.settings
        self._settings.write_text(settings)
        # Kafka takes a name that begins with "-" for an option.
        name = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
        command = [*self._java, "kafka.tools.StorageTool", "format", "-t", name, "-c", str(self._settings)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"Kafka did not prepare its folder {folder}: {done.stderr[-300:]}")

    @property
    def servers(self) -> str:
        """The address of the broker."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker, and wait until it takes connections."""
        log = self.folder / "log.txt"
        with log.open("ab") as out:
            command = [*self._java, "kafka.Kafka", str(self._settings)]
            self.process = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder)
        until = time.monotonic() + 300
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise Failed(f"the broker of Kafka did not start: {log.read_text(errors='replace')[-300:]}")

    def stop(self) -> None:
        """End the broker at once, as a machine that is switched off."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    @property
    def _java(self) -> list[str]:
        return ["java", *HEAP, "-cp", f"{self.jars}/*"]


def _free_ports() -> list[int]:
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


__all__ = ["LocalBroker", "copy_jars", "why_no_broker"]
