#!/bin/sh
# Draws the figures of docs/images: scripts/figures.sh path/to/lilac [folder]
set -eu
lilac=$1
folder=${2:-$(dirname "$0")/../docs/images}

paper='tensor<16x16xf32, #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>>'
mma='tensor<16x8xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>>'
swizzled='!ttg.memdesc<16x64xf16, #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>, #ttg.shared_memory>'

"$lilac" view "$paper" --svg "$folder/blocked-cells.svg"
"$lilac" view "$paper" --as matrix --svg "$folder/blocked-matrix.svg"
"$lilac" view "$mma" --svg "$folder/mma-cells.svg"
"$lilac" view "$swizzled" --as hardware --svg "$folder/swizzled-banks.svg"
python3 "$(dirname "$0")/../bench/conversions.py" --draw "$(dirname "$0")/../bench/results/h200_conversions.json" --svg "$folder/conversions.svg"
