"""A dashboard: it reads a table of DuckDB again and again until it has seen the last batch, and says what it saw.

Each row of the table has the number of its batch in `n`, so a table that is not whole has several, or too few rows.
"""

from __future__ import annotations

import json
import sys

import duckdb


def main() -> None:
    path, rows, last, patient = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "patient"
    before = -1
    while before < last:
        try:
            with duckdb.connect(path, read_only=True) as db:
                count, least, most = db.sql("SELECT count(*), min(n), max(n) FROM t").fetchall()[0]
        except duckdb.IOException as error:
            if not patient or "lock" not in str(error):
                raise
            print(json.dumps("locked out"), flush=True)
            continue
        print(json.dumps([count, least, most]), flush=True)
        if count:
            assert count == rows, f"{count} rows"
            assert least == most >= before, f"batches {least} and {most} after {before}"
            before = most
        else:
            assert before == -1, f"no rows after batch {before}"


if __name__ == "__main__":
    main()
