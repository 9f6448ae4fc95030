#!/bin/sh
# Creates the databases of the Temporal server, or upgrades them. Address, user and password of PostgreSQL are in
# SQL_HOST, SQL_PORT, SQL_USER and SQL_PASSWORD, which temporal-sql-tool reads.
set -eu
for db in temporal temporal_visibility; do
  schema=postgresql/v12/${db#temporal_}
  sql="temporal-sql-tool --plugin postgres12 --database $db"
  if ! $sql update-schema --schema-name "$schema"; then
    $sql create || true # an attempt that was interrupted may have created it
    $sql setup-schema -v 0.0
    $sql update-schema --schema-name "$schema"
  fi
done
