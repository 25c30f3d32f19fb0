#!/usr/bin/env bash
# Records the trials of this example: a real PostgreSQL under a closed load of pgbench clients with a random think time.
#
#   examples/pgbench/record.sh [OUT.csv]        (about 8 minutes; nothing else should run on the machine)
#
# Installs PostgreSQL from Debian's packages where it is missing (as root), starts one on a free loopback port in a
# temporary folder, and for every number of clients runs the script commit.sql three times. On a machine with two
# or more processors the server is confined to processor 0 and the load generator to processor 1, so that the
# generator does not take part in the contention that is measured.
#
# Columns: `$clients`; `$think`, the mean think time that pgbench really slept, seconds; throughput(Clients), 1/s;
# response_time(Clients), s, think time excluded; utilization(Cpu), processors busy with the server's own processes;
# utilization(Log), fraction of time in writing and syncing the write-ahead log (pg_stat_wal). Standard errors are
# from the means of the batches of a trial.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/trials.csv}
clients=${CLIENTS:-1 2 4 6 8 12 16 20 26 32}
repetitions=${REPETITIONS:-3}
warm_up_s=${WARM_UP_S:-2}
batches=${BATCHES:-5}
batch_s=${BATCH_S:-2}

find_bin() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1; }
if [ -z "$(find_bin)" ] || ! command -v pgbench >/dev/null; then
  echo "installing PostgreSQL from Debian's packages" >&2
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql postgresql-contrib >&2
fi
bin=$(find_bin)

if [ "$(nproc)" -ge 2 ]; then
  on_server="taskset -c 0"; on_generator="taskset -c 1"
else
  on_server=""; on_generator=""
fi
# PostgreSQL refuses to run as root: hand it to the package's own user there.
if [ "$(id -u)" = 0 ]; then as="runuser -u postgres --"; else as=""; fi

work=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
stop() { $as "$bin/pg_ctl" -D "$work/data" -m fast stop >/dev/null 2>&1 || true; rm -rf "$work"; }
trap stop EXIT
chmod 755 "$work"; mkdir "$work/data"; [ -z "$as" ] || chown postgres "$work/data"

cd "$work"
$as "$bin/initdb" -D "$work/data" -A trust -U postgres >/dev/null
$as $on_server "$bin/pg_ctl" -w -D "$work/data" -l "$work/data/log" -o "-p $port -c listen_addresses=127.0.0.1 \
  -c unix_socket_directories='' -c max_connections=200 -c shared_buffers=512MB -c track_wal_io_timing=on \
  -c max_wal_size=8GB -c checkpoint_timeout=1h -c autovacuum=off -c max_parallel_workers_per_gather=0" start >/dev/null
export PGHOST=127.0.0.1 PGPORT=$port PGUSER=postgres PGDATABASE=postgres
pgbench -i -q -s 1 -F 70 >/dev/null 2>&1
psql -q -c 'CREATE TABLE journal (aid int, note text)' -c 'ALTER TABLE journal ALTER note SET STORAGE EXTERNAL' -c 'VACUUM ANALYZE pgbench_accounts' -c CHECKPOINT
postmaster=$(head -n 1 "$work/data/postmaster.pid")

# Nanoseconds on a processor of all the server's living processes.
server_ns() { cat "/proc/$postmaster/schedstat" $(pgrep -P "$postmaster" | sed 's|.*|/proc/&/schedstat|') 2>/dev/null | awk '{s += $1} END {printf "%.0f", s}'; }
wal_ms() { psql -Atc 'SELECT wal_write_time + wal_sync_time FROM pg_stat_wal'; }
now_s() { date +%s.%N; }

# One batch of a trial: "transactions/s, mean statement s, mean think s, processors busy, log busy" on a line.
one_batch() { # clients, seed, seconds
  local t0 t1 c0 c1 wal0 wal1
  wal0=$(wal_ms)
  $on_generator pgbench -n -M prepared -c "$1" -j 1 -T "$3" -f "$here/commit.sql" -r --random-seed="$2" >"$work/summary" 2>"$work/errors" &
  local pid=$!
  sleep 0.3; t0=$(now_s); c0=$(server_ns)
  sleep "$(awk -v s="$3" 'BEGIN {print s - 0.6}')"; t1=$(now_s); c1=$(server_ns)
  wait "$pid" || { cat "$work/errors" >&2; exit 1; }
  sleep 0.2; wal1=$(wal_ms) # backends report what they wrote when they end
  awk -v log_busy="$(awk -v a="$wal0" -v b="$wal1" -v s="$3" 'BEGIN {print (b - a) / 1000 / s}')" -v t="$(awk -v a="$t0" -v b="$t1" 'BEGIN {print b - a}')" -v ns="$(awk -v a="$c0" -v b="$c1" 'BEGIN {print b - a}')" '
    /^tps = / {x = $3} /\\sleep/ {z = $1 / 1000} /WITH scanned/ {r = $1 / 1000}
    END {printf "%.4f %.7f %.7f %.6f %.6f\n", x, r, z, ns / t / 1e9, log_busy}' "$work/summary"
}

one_trial() { # clients, repetition
  local n=$1 rep=$2 b
  psql -q -c 'TRUNCATE journal' -c 'VACUUM pgbench_accounts' -c CHECKPOINT
  one_batch "$n" "$((rep * 100000 + n * 100))" "$warm_up_s" >/dev/null
  for b in $(seq 1 "$batches"); do one_batch "$n" "$((rep * 100000 + n * 100 + b))" "$batch_s"; done >"$work/batches"
  awk -v n="$n" -v rep="$rep" -v s="$batch_s" '
    { k++; for (j = 1; j <= 5; j++) { v[k, j] = $j; m[j] += $j } }
    END {
      for (j = 1; j <= 5; j++) { m[j] /= k; for (i = 1; i <= k; i++) q[j] += (v[i, j] - m[j])^2; e[j] = sqrt(q[j] / (k * (k - 1))) }
      printf "%d.%d,%d,%d,%.6f,%.3f,%.3f,%.7f,%.7f,%.5f,%.5f,%.5f,%.5f\n", n, rep, k * s, n, m[3], m[1], e[1], m[2], e[2], m[4], e[4], m[5], e[5]
    }' "$work/batches" >>"$out.part"
  tail -n 1 "$out.part" >&2
}

echo 'trial,duration,$clients,$think,throughput(Clients),stderr(throughput(Clients)),response_time(Clients),stderr(response_time(Clients)),utilization(Cpu),stderr(utilization(Cpu)),utilization(Log),stderr(utilization(Log))' >"$out.part"
# The loads of a repetition in an order of their own, so that a machine that drifts adds noise and not a trend over the load.
for rep in $(seq 1 "$repetitions"); do
  for n in $(tr ' ' '\n' <<<"$clients" | awk -v seed="$rep" 'BEGIN {srand(seed)} {print rand(), $1}' | sort | awk '{print $2}'); do one_trial "$n" "$rep"; done
done
{ head -n 1 "$out.part"; tail -n +2 "$out.part" | sort -t, -k3,3n -k1,1; } >"$out"
rm "$out.part"
