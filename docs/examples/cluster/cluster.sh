#!/usr/bin/env bash
# A Temporal cluster on this machine, without containers: Temporal on PostgreSQL, and an S3 store (versitygw).
# Everything listens on 127.0.0.1 and keeps its data in one directory.
#
#   cluster.sh up [--tls | --mtls] [--api-key]   start, after building what is missing; repeat to start again
#   eval "$(cluster.sh env)"                     address, namespace, store and credentials for acescope
#   cluster.sh restart postgres|temporal|s3      kill a service and start it again
#   cluster.sh kill|start postgres|temporal|s3   the same in two steps, for an outage
#   cluster.sh status
#   cluster.sh down                              stop; the data stays
#   cluster.sh clean                             stop and delete the data
#   cluster.sh certificate NAME DAYS [CA]        sign a certificate for tests, -1 days for one that has expired
#   cluster.sh token SECONDS [PERMISSIONS]       print an API key, such as: token 3600 '["ace-dev:read"]'
#
# CLUSTER_DIR    directory of the data (default .cache/cluster in this repository)
# CLUSTER_PORT   first of the 16 ports (default 7300)
# CLUSTER_BIN    directory with temporal-server, temporal-sql-tool, versitygw, acescope (default: built in CLUSTER_DIR)
#
# Needs Go, openssl and PostgreSQL's server programs (Debian: apt-get install postgresql).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../../.." && pwd)
dir=${CLUSTER_DIR:-$repository/.cache/cluster}
port=${CLUSTER_PORT:-7300}
bin=${CLUSTER_BIN:-$dir/bin}
namespace=ace-dev
bucket=acescope
s3_version=v1.8.0
postgres_port=$((port + 10)) s3_port=$((port + 11)) metrics_port=$((port + 12))

fail() { echo "cluster.sh: $*" >&2; exit 1; }
say() { echo "cluster.sh: $*" >&2; }
secret() { cat "$dir/secret"; } # password of PostgreSQL and secret key of the store
saved() { grep -qs "^$1\$" "$dir/options"; }

# quiet runs a command and shows its output only if it fails.
quiet() {
  local log
  log=$("$@" 2>&1) || fail "$1 failed: $(tail -n 5 <<<"$log")"
}

# await waits up to 60 s for a command to succeed.
await() {
  local what=$1 end=$((SECONDS + 60))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "$what does not answer; see $dir/logs"
    sleep 0.1
  done
}

listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# build builds the programs that are missing. The server has the version of acescope's go.mod.
build() {
  mkdir -p "$bin"
  cd "$repository"
  if [[ ! -x $bin/temporal-server || ! -x $bin/temporal-sql-tool ]]; then
    say "building the Temporal server"
    cp go.mod "$dir/build.mod" && cp go.sum "$dir/build.sum"
    local version packages=(go.temporal.io/server/cmd/server go.temporal.io/server/cmd/tools/sql)
    version=$(go list -m -f '{{.Version}}' go.temporal.io/server)
    quiet go get -modfile="$dir/build.mod" "${packages[@]/%/@$version}"
    quiet go build -modfile="$dir/build.mod" -o "$bin/temporal-server" "${packages[0]}"
    quiet go build -modfile="$dir/build.mod" -o "$bin/temporal-sql-tool" "${packages[1]}"
  fi
  if [[ ! -x $bin/versitygw ]]; then
    say "building versitygw"
    quiet env GOBIN="$bin" go install "github.com/versity/versitygw/cmd/versitygw@$s3_version"
  fi
  if [[ ! -x $bin/acescope ]]; then
    say "building acescope"
    quiet go build -o "$bin/acescope" ./cmd/acescope
  fi
}

# PostgreSQL refuses to run as root.
as_postgres() {
  if ((EUID == 0)); then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi
}

pg() {
  local programs
  programs=$(pg_config --bindir 2>/dev/null || ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1 || true)
  [[ -x $programs/initdb ]] || programs=$(dirname "$(readlink -f "$(command -v initdb || echo /)")")
  [[ -x $programs/initdb ]] || fail "PostgreSQL's initdb is missing: apt-get install postgresql"
  as_postgres "$programs/$1" "${@:2}"
}

start_postgres() {
  local data=$dir/postgres
  if [[ ! -e $data/PG_VERSION ]]; then
    mkdir -p "$data"
    secret >"$data.password"
    if ((EUID == 0)); then chown postgres "$data" "$data.password"; fi
    (cd / && quiet pg initdb -D "$data" -U temporal --pwfile="$data.password" --auth=scram-sha-256)
    rm "$data.password"
  fi
  (cd / && pg pg_ctl -D "$data" status >/dev/null 2>&1) && return
  (cd / && quiet pg pg_ctl -D "$data" -w -l "$data/server.log" \
    -o "-c listen_addresses=127.0.0.1 -p $postgres_port -k '' -c max_connections=200" start)
}

stop_postgres() { (cd / && pg pg_ctl -D "$dir/postgres" -m "${1:-fast}" stop >/dev/null 2>&1) || true; }

create_schema() {
  quiet env SQL_HOST=127.0.0.1 SQL_PORT="$postgres_port" SQL_USER=temporal SQL_PASSWORD="$(secret)" PATH="$bin:$PATH" \
    sh "$here/create-schema.sh"
}

# certificates creates a CA, and certificates of the server and of a client, valid for a year.
certificates() {
  local ca=$dir/tls/ca
  [[ -e $dir/tls/client.pem ]] && return
  mkdir -p "$dir/tls"
  quiet openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=cluster CA" -keyout "$ca.key" -out "$ca.pem"
  certificate server 365
  certificate client 365
}

# certificate NAME DAYS [CA] creates a certificate that the CA signs.
certificate() {
  local name=$dir/tls/$1 ca=$dir/tls/${3:-ca}
  quiet openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$name.key" -out "$name.csr"
  quiet openssl x509 -req -in "$name.csr" -CA "$ca.pem" -CAkey "$ca.key" -CAcreateserial -days "$2" -out "$name.pem" \
    -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1")
  rm "$name.csr"
}

base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

# api_key creates a key pair, and an API key: a token that the server accepts because it knows the public key.
api_key() {
  local key=$dir/api.key modulus
  [[ -e $dir/api-key ]] && return
  quiet openssl genrsa -out "$key" 2048
  modulus=$(openssl rsa -in "$key" -noout -modulus | sed 's/Modulus=//' | xxd -r -p | base64url)
  echo "{\"keys\":[{\"kty\":\"RSA\",\"use\":\"sig\",\"alg\":\"RS256\",\"kid\":\"cluster\",\"n\":\"$modulus\",\"e\":\"AQAB\"}]}" \
    >"$dir/jwks.json"
  token "$((365 * 24 * 3600))" >"$dir/api-key"
}

# token SECONDS [PERMISSIONS] prints an API key; PERMISSIONS is a JSON list.
token() {
  local header claims
  header=$(echo -n '{"alg":"RS256","typ":"JWT","kid":"cluster"}' | base64url)
  claims=$(echo -n "{\"sub\":\"acescope\",\"permissions\":${2:-[\"temporal-system:admin\"]},\"exp\":$(($(date +%s) + $1))}" |
    base64url)
  echo "$header.$claims.$(echo -n "$header.$claims" | openssl dgst -sha256 -sign "$dir/api.key" -binary | base64url)"
}

# server_config writes the server's configuration.
server_config() {
  cat <<YAML
log: {stdout: true, level: warn}
persistence:
  numHistoryShards: 4
  defaultStore: default
  visibilityStore: visibility
  datastores:
    default: {sql: {pluginName: postgres12, databaseName: temporal, connectAddr: "127.0.0.1:$postgres_port",
      connectProtocol: tcp, user: temporal, password: "$(secret)", maxConns: 40, maxIdleConns: 40, maxConnLifetime: 1h}}
    visibility: {sql: {pluginName: postgres12, databaseName: temporal_visibility, connectAddr: "127.0.0.1:$postgres_port",
      connectProtocol: tcp, user: temporal, password: "$(secret)", maxConns: 20, maxIdleConns: 20, maxConnLifetime: 1h}}
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}
  metrics: {prometheus: {framework: tally, timerType: histogram, listenAddress: "127.0.0.1:$metrics_port"}}
$(tls_config)
$(authorization_config)
services:
  frontend: {rpc: {grpcPort: $port, membershipPort: $((port + 1)), bindOnLocalHost: true}}
  internal-frontend: {rpc: {grpcPort: $((port + 2)), membershipPort: $((port + 3)), bindOnLocalHost: true}}
  history: {rpc: {grpcPort: $((port + 4)), membershipPort: $((port + 5)), bindOnLocalHost: true}}
  matching: {rpc: {grpcPort: $((port + 6)), membershipPort: $((port + 7)), bindOnLocalHost: true}}
  worker: {rpc: {grpcPort: $((port + 8)), membershipPort: $((port + 9)), bindOnLocalHost: true}}
clusterMetadata:
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "127.0.0.1:$port"}
dcRedirectionPolicy: {policy: noop}
archival: {history: {state: disabled}, visibility: {state: disabled}}
dynamicConfigClient: {filepath: "$here/dynamicconfig.yaml", pollInterval: 10s}
YAML
}

tls_config() {
  saved tls || saved mtls || return 0
  local client=false
  if saved mtls; then client=true; fi
  cat <<YAML
  tls:
    frontend:
      server: {certFile: "$dir/tls/server.pem", keyFile: "$dir/tls/server.key", requireClientAuth: $client,
        clientCaFiles: ["$dir/tls/ca.pem"]}
      client: {serverName: localhost, rootCaFiles: ["$dir/tls/ca.pem"]}
    systemWorker: {certFile: "$dir/tls/client.pem", keyFile: "$dir/tls/client.key",
      client: {serverName: localhost, rootCaFiles: ["$dir/tls/ca.pem"]}}
YAML
}

authorization_config() {
  saved api-key || return 0
  cat <<YAML
  authorization:
    authorizer: default
    claimMapper: default
    jwtKeyProvider: {keySourceURIs: ["file://$dir/jwks.json"]}
YAML
}

# start NAME COMMAND... starts a service in the background, with its log and process id in the directory.
start() {
  local name=$1
  shift
  running "$name" && return
  setsid nohup "$@" >>"$dir/logs/$name.log" 2>&1 </dev/null &
  echo $! >"$dir/$name.pid"
}

running() { [[ -s $dir/$1.pid ]] && kill -0 "$(<"$dir/$1.pid")" 2>/dev/null; }

# stop NAME [SIGNAL] ends a service and waits for its end.
stop() {
  running "$1" || return 0
  local pid
  pid=$(<"$dir/$1.pid")
  kill "-${2:-TERM}" "$pid"
  for _ in {1..100}; do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$pid" 2>/dev/null || true
}

start_temporal() {
  server_config >"$dir/server.yaml"
  start temporal "$bin/temporal-server" --config-file "$dir/server.yaml" --allow-no-auth start \
    --service frontend --service internal-frontend --service history --service matching --service worker
  await "the Temporal server" listening "$port"
}

start_s3() {
  mkdir -p "$dir/s3/$bucket" "$dir/s3-versions"
  ROOT_ACCESS_KEY=local-s3-access-key ROOT_SECRET_KEY=$(secret) \
    start s3 "$bin/versitygw" --port "127.0.0.1:$s3_port" --quiet posix "$dir/s3"
  await "the S3 store" listening "$s3_port"
}

up() {
  mkdir -p "$dir/logs"
  if [[ ! -e $dir/secret ]]; then (umask 077 && openssl rand -hex 16 >"$dir/secret"); fi
  if (($# > 0)) && running temporal; then fail "the cluster runs: cluster.sh down first"; fi
  if (($# > 0)) || [[ ! -e $dir/options ]]; then
    : >"$dir/options"
    for option; do
      case $option in --tls | --mtls | --api-key) echo "${option#--}" >>"$dir/options" ;; *) fail "unknown option $option" ;; esac
    done
  fi
  build
  if saved tls || saved mtls; then certificates; fi
  if saved api-key; then api_key; fi
  start_postgres
  create_schema
  start_s3
  start_temporal
  eval "$(environment)"
  await "the namespace" "$bin/acescope" setup --yes
  say "started; eval \"\$($0 env)\" sets the environment of acescope"
}

environment() {
  [[ -e $dir/secret ]] || fail "there is no cluster in $dir: cluster.sh up"
  echo "export TEMPORAL_ADDRESS=127.0.0.1:$port TEMPORAL_NAMESPACE=$namespace"
  echo "export AWS_ACCESS_KEY_ID=local-s3-access-key AWS_SECRET_ACCESS_KEY=$(secret) AWS_REGION=us-east-1"
  echo "export ACESCOPE_STORE='s3://$bucket?endpoint=http://127.0.0.1:$s3_port&use_path_style=true&disable_https=true'"
  if saved tls || saved mtls; then
    echo "export TEMPORAL_TLS=true TEMPORAL_TLS_SERVER_CA_CERT_PATH=$dir/tls/ca.pem"
  fi
  if saved mtls; then
    echo "export TEMPORAL_TLS_CLIENT_CERT_PATH=$dir/tls/client.pem TEMPORAL_TLS_CLIENT_KEY_PATH=$dir/tls/client.key"
  fi
  if saved api-key; then
    echo "export TEMPORAL_API_KEY=$(<"$dir/api-key")"
    saved tls || saved mtls || echo "export TEMPORAL_TLS=false"
  fi
}

down() {
  stop temporal
  stop s3
  stop_postgres
}

status() {
  local name
  for name in temporal s3; do
    if running "$name"; then echo "$name: process $(<"$dir/$name.pid")"; else echo "$name: not running"; fi
  done
  if (cd / && pg pg_ctl -D "$dir/postgres" status >/dev/null 2>&1); then
    echo "postgres: 127.0.0.1:$postgres_port"
  else
    echo "postgres: not running"
  fi
}

kill_service() {
  case $1 in
  postgres) stop_postgres immediate ;;
  temporal | s3) stop "$1" KILL ;;
  *) fail "usage: cluster.sh kill postgres|temporal|s3" ;;
  esac
}

start_service() {
  case $1 in
  postgres | temporal | s3) "start_$1" ;;
  *) fail "usage: cluster.sh start postgres|temporal|s3" ;;
  esac
}

case ${1:-} in
up) up "${@:2}" ;;
down) down ;;
clean) down && rm -rf "$dir" ;;
status) status ;;
env) environment ;;
certificate) certificate "${@:2}" ;;
token) token "${@:2}" ;;
kill) kill_service "${2:-}" ;;
start) start_service "${2:-}" ;;
restart) kill_service "${2:-}" && start_service "${2:-}" ;;
*) sed -n '5,13s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
