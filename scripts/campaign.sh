#!/usr/bin/env bash
# Train many items' missing cells on one GPU, several at a time: small models fill it better together than one by one.
#
#   scripts/campaign.sh LIST RESULTS [SECONDS] [WORKERS]
#
# LIST has the arguments of one `auxmod reproduce` a line, the longest first: as a worker ends it takes the next. What
# lies in results/ is not run again; new rows go to RESULTS, a directory. After SECONDS all are asked to stop, which
# saves them, and the same command goes on from there. AUXMOD names the program where it is not installed.
set -euo pipefail
list=$1 results=$2 seconds=${3:-3600} workers=${4:-4}
export AUXMOD=${AUXMOD:-auxmod} RESULTS=$results ENDS=$(($(date +%s) + seconds))

mkdir -p "$results"
cp results/*.jsonl "$results/"
for file in results/*.jsonl; do mv "$results/$(basename "$file")" "$results/stored-$(basename "$file")"; done

# With the multi-process service the kernels of all workers run at once; without it they take turns.
if command -v nvidia-cuda-mps-control >/dev/null; then
  nvidia-cuda-mps-control -d 2>/dev/null && trap 'echo quit | nvidia-cuda-mps-control' EXIT || true
fi

one() {
  left=$((ENDS - $(date +%s)))
  [ "$left" -gt 5 ] || return 0
  log=$RESULTS/$(echo "$*" | tr -c 'a-zA-Z0-9\n' _).log
  timeout --foreground --signal INT --kill-after 40 "$left" $AUXMOD reproduce "$@" --results "$RESULTS" >"$log" 2>&1 && said=done || said=$?
  echo "$(date +%T) $* : $said"
}
export -f one
grep -v '^ *\(#\|$\)' "$list" | tr '\n' '\0' | xargs -0 -P "$workers" -I{} bash -c 'one {}'
