#!/bin/sh
# usage: keep_ptxas_report.sh COMPILER ARGUMENTS...
# Runs nvcc so that ptxas tells the registers and spills of each kernel, keeps that beside the object
# as OBJECT.ptxas for tools/check_spills.py, and shows only what else was said.
object=""
previous=""
for argument in "$@"; do
  if [ "$previous" = -o ]; then object=$argument; fi
  previous=$argument
done
if [ -z "$object" ]; then exec "$@"; fi

rm -f "$object.ptxas"
said=$("$@" -Xptxas=-v 2>&1)
status=$?
# Two lines of a kernel's report bear no mark of ptxas.
report='^ptxas info|bytes stack frame|bytes spill'
if [ "$status" -eq 0 ]; then printf '%s\n' "$said" | grep -E "$report" >"$object.ptxas"; fi
printf '%s\n' "$said" | grep -vE "$report|^$" >&2
exit "$status"
