"""Products of the tutorial's kernel with tiles of several lengths along k: the sweep behind resize_tiles
(src/engine/launch_maps/resize_tiles.c). Cases for lilac.bench, on a machine with a GPU of sm_90:

    python -m lilac.bench bench/tile_lengths.py --prepare 16 --rounds 3 --budget 0.015 --first-calls 0 --libraries --json times.json

Under a compiler without the pass, each length is what its name says. Results of both: bench/results/h200_tile_lengths.md.
"""

from lilac.bench.operators.products.matmul import matmul_case

SIZES = [(4096, 4096, 4096), (1024, 3072, 1024), (512, 512, 4096), (8192, 512, 256)]
# (rows, columns), warps, stages
SHORT = [((64, 256), 4, 4), ((128, 128), 4, 4), ((128, 64), 4, 4), ((64, 128), 4, 4), ((128, 32), 4, 4), ((128, 256), 8, 3),
         ((128, 128), 8, 3)]
LONG = [((128, 256), 8, 3), ((256, 128), 8, 3), ((64, 256), 4, 4), ((128, 128), 4, 4), ((256, 64), 4, 4), ((128, 64), 4, 4)]
# Rows of 64 bytes, and of 128 to 512.
LENGTHS = [("f16", "NN", SHORT, [32, 64]), ("f16", "NT", SHORT, [32]), ("bf16", "TN", SHORT, [32]), ("f8e4m3", "NT", SHORT, [64, 128]),
           ("tf32", "NT", SHORT, [16]), ("f16", "NN", LONG, [64, 128]), ("tf32", "NT", LONG, [32, 64, 128]),
           ("tf32", "NN", LONG, [32, 64, 128])]


def cases():
    found = {}
    for kind, layout, tiles, lengths in LENGTHS:
        for size in SIZES if tiles is SHORT else SIZES[:2]:
            for tile, warps, stages in tiles:
                for length in lengths:
                    case = matmul_case(kind, layout, *size, tile=(*tile, length), num_warps=warps, num_stages=stages)
                    case.name = "_".join([kind, layout, "x".join(map(str, size)), "x".join(map(str, (*tile, length))), f"{warps}_warps"])
                    found[case.name] = case
    return list(found.values())
