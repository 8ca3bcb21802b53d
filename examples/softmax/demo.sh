#!/bin/sh
# A softmax that Triton's front end wrote: compiled, and run on the simulator on inputs recorded
# together with what a GPU made of them. The argument is the lilac command to use.
set -eu
lilac=${1:-lilac}
case $lilac in
*/*) lilac=$(cd "$(dirname "$lilac")" && pwd)/$(basename "$lilac") ;;
esac
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== the kernel, as Triton's front end wrote it (softmax.ttir) =="
grep -E 'tt\.(func|load|reduce"|store)|math\.exp' softmax.ttir | sed -E 's/ loc\("[^"]*"\(#loc\)\)//g; s/ loc\(#loc[0-9]*\)//g; s/^ */  /'

echo
echo "== the layouts chosen =="
"$lilac" compile softmax.ttir --num-warps 8 --emit tile --no-line-info -o "$work/softmax.tile"
grep -E 'tt\.load|"tt\.reduce"|tt\.store|^ *}\) :' "$work/softmax.tile" | sed 's/^ */  /'
grep '^#' "$work/softmax.tile" || true

echo
echo "== its PTX: the passes, and the widths of its memory accesses =="
"$lilac" compile softmax.ttir --num-warps 8 -o "$work/softmax.ptx" --time 2>"$work/times" || {
  cat "$work/times" >&2
  exit 1
}
sed 's/^/  /' "$work/times"
grep -oE '\b(ld|st)\.(global|shared)[a-z0-9.]*' "$work/softmax.ptx" | sort | uniq -c |
  sed 's/^ */  /'

echo
echo "== run on the simulator, compared to what a GPU gave =="
"$lilac" run softmax.ttir --num-warps 8 --grid 4 --arg o=empty:f16:4x4096 --arg x=@x.npy \
  --arg xs=4096 --arg os=4096 --arg rows=4 --arg cols=4096 --expect o=expected.npy
