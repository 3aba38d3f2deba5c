#!/bin/sh
# Takes snapshots of all tables of a running daemon, and sends them to the S3 host of its settings; for cron.
#
#   CONVMEM_URL     where the daemon is (http://127.0.0.1:8484)
#   CONVMEM_TOKEN   its token, if it asks for one
#   --local         keep the snapshots there, send nothing
#
# Exit: 0 all is done, 1 nobody answered, 2 the daemon refused, 3 snapshots are made but not all of them were sent.
set -eu

upload=true
case "${1:-}" in
    --local) upload=false ;;
    "") ;;
    *) echo "usage: convmem-backup.sh [--local]" >&2; exit 2 ;;
esac

url="${CONVMEM_URL:-http://127.0.0.1:8484}"
url="${url%/}"
request='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"data_snapshot","arguments":{"upload":'$upload'}}}'

# The token goes to curl by its standard input: arguments can be read by every user of the machine.
settings() {
    printf 'header = "Content-Type: application/json"\n'
    printf 'header = "Accept: application/json"\n'
    if [ -n "${CONVMEM_TOKEN:-}" ]; then
        printf 'header = "Authorization: Bearer %s"\n' "$CONVMEM_TOKEN"
    fi
}

if ! answer=$(settings | curl --silent --show-error --fail-with-body --max-time 600 --config - \
    --data "$request" "${url%/mcp}/mcp/tables"); then
    echo "convmem-backup: no answer from $url" >&2
    exit 1
fi
case "$answer" in
    *'"isError":false'*) ;;
    *'"isError":true'*) echo "convmem-backup: refused: $answer" >&2; exit 2 ;;
    *) echo "convmem-backup: no answer of convmem: $answer" >&2; exit 1 ;;
esac
case "$answer" in
    *'"failed":['*) echo "convmem-backup: not every table could be copied: $answer" >&2; exit 2 ;;
    *'"upload_errors":[]'*) echo "convmem-backup: done" ;;
    *) echo "convmem-backup: not every snapshot was sent: $answer" >&2; exit 3 ;;
esac
