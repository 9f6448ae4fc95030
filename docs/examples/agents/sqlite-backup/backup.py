"""Copies a SQLite database by SQLite's own online backup, so that it may be in use.

The parameters are flags, the report is one JSON object on standard output. A copy gets its
name when it is complete and checked; one that fails leaves nothing behind.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import sqlite3
import sys
import urllib.parse


def arguments():
    p = argparse.ArgumentParser(prog="sqlite-backup", allow_abbrev=False)
    p.add_argument("--database", required=True)
    p.add_argument("--destination", required=True)
    p.add_argument("--keep", type=int, default=7)
    p.add_argument("--verify", action="store_true")
    p.add_argument("--busy-seconds", type=float, default=30)
    p.add_argument("--label", action="append", default=[])
    return p.parse_args()


def copy(source, target, wait):
    """Copies a database page by page; the number of its pages."""
    address = "file:" + urllib.parse.quote(os.path.abspath(source)) + "?mode=ro"
    there = sqlite3.connect(address, uri=True, timeout=wait)
    try:
        here = sqlite3.connect(target)
        try:
            there.backup(here, pages=1024)
            return here.execute("pragma page_count").fetchone()[0]
        finally:
            here.close()
    finally:
        there.close()


def check(path):
    """What SQLite finds wrong with a database; "ok" for nothing."""
    db = sqlite3.connect(path)
    try:
        return db.execute("pragma integrity_check(1)").fetchone()[0]
    finally:
        db.close()


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            h.update(block)
    return h.hexdigest()


def prune(directory, name, keep):
    """Removes all but the newest copies of one database."""
    ours = re.compile(re.escape(name) + r"\.\d{8}T\d{12}Z(\.\w+)*\.backup")
    copies = sorted(f for f in os.listdir(directory) if ours.fullmatch(f))
    gone = copies[:-keep]
    for f in gone:
        os.remove(os.path.join(directory, f))
    return gone


def backup(a):
    name = os.path.basename(a.database)
    os.makedirs(a.destination, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    final = os.path.join(a.destination, ".".join([name, now.strftime("%Y%m%dT%H%M%S%fZ"), *a.label, "backup"]))
    partial = final + ".partial"
    try:
        pages = copy(a.database, partial, a.busy_seconds)
        found = check(partial) if a.verify else "not checked"
        if found not in ("ok", "not checked"):
            raise sqlite3.DatabaseError("the copy is damaged: " + found)
        with open(partial, "rb+") as f:
            os.fsync(f.fileno())
        os.replace(partial, final)
    finally:
        for left in (partial, partial + "-journal"):
            if os.path.exists(left):
                os.remove(left)
    removed = prune(a.destination, name, a.keep)
    return {"backup": os.path.abspath(final), "bytes": os.path.getsize(final), "pages": pages, "sha256": digest(final), "integrity": found, "removed": removed}


def main():
    a = arguments()
    if not os.path.isfile(a.database):
        sys.exit(f"sqlite-backup: {a.database}: there is no such file")
    try:
        report = backup(a)
    except (OSError, sqlite3.Error) as e:
        sys.exit(f"sqlite-backup: {a.database}: {e}")
    json.dump(report, sys.stdout)
    print()


main()
