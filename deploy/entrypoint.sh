#!/bin/sh
# What the container runs. `serve` gets a schedule of backups from the environment: BACKUP_TO (a directory, best on
# another volume) and BACKUP_EVERY (6h, if it is not set). Any other verb runs as it is given, so `docker run -i … stdio`
# speaks MCP on stdin.
set -eu

if [ "$#" -eq 0 ]; then
    set -- serve --bind 0.0.0.0:8484
fi
if [ "$1" = serve ] && [ -n "${BACKUP_TO:-}" ]; then
    set -- "$@" --backup-to "$BACKUP_TO" --backup-every "${BACKUP_EVERY:-6h}"
fi
# In the place of the shell: signals reach the daemon itself.
exec convmem "$@"
