#!/usr/bin/env bash
# Train the missing cells of many items on one GPU, several at a time: small models fill it better together.
#
#   scripts/campaign.sh LIST RESULTS [SECONDS] [WORKERS]
#
# LIST has the arguments of one `auxmod reproduce` a line, the longest first; a worker that ends takes the next line.
# What lies in results/ is not run again, and new rows go to RESULTS, a directory. After SECONDS all save and stop: the
# same command goes on from there. AUXMOD is the program where it is not `auxmod`.
set -euo pipefail
list=$1 seconds=${3:-86400} workers=${4:-4}
export RESULTS=$2 AUXMOD=${AUXMOD:-auxmod} ENDS=$(($(date +%s) + seconds))

mkdir -p "$RESULTS"
for file in results/*.jsonl; do cp "$file" "$RESULTS/stored-${file##*/}"; done

# With the multi-process service the kernels of all workers run at once; without it they take turns.
if command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d 2>/dev/null; then
  trap 'echo quit | nvidia-cuda-mps-control' EXIT
fi

item() {
  left=$((ENDS - $(date +%s)))
  [ "$left" -gt 0 ] || return 0
  log=$RESULTS/$(echo "$*" | tr -cs 'a-zA-Z0-9\n' -).log
  timeout --foreground --kill-after 60 "$left" $AUXMOD reproduce "$@" --results "$RESULTS" >"$log" 2>&1 && end=done || end=$?
  echo "$* : $([ "$end" = 124 ] && echo stopped || echo "$end")"
}
export -f item
grep -v '^ *\(#\|$\)' "$list" | tr '\n' '\0' | xargs -0 -P "$workers" -I{} bash -c 'item {}'
