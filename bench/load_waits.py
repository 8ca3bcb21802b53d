"""Loads of kept kernels that wait for another load which they do not need.

    python bench/kept_kernels.py compile KEPT BUNDLE old=build/old/lilac new=build/new/lilac --ptxas PTXAS
    python bench/load_waits.py BUNDLE --nvdisasm NVDISASM --times times.json --json waits.json

Needs no GPU. A thread waits for what it reads from memory by one of six scoreboards. ptxas gives several instructions
one scoreboard when they do not suffice; then an instruction that needs one of the results waits for all. This program
disassembles the cubins of a bundle, and finds waits for loads from global memory by instructions that use no result of
those loads, with further loads behind them in the basic block.

With --times, what `kept_kernels.py measure` wrote, it prints the time of the first version over that of each other
one for the kernels with and without such waits in the first version's code.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess

WORDS = {".64": 2, ".128": 4}
ENDS = ("BRA", "EXIT", "BAR", "BRX", "CALL", "RET")

# ---- machine code --------------------------------------------------------------------------------


def instructions(nvdisasm, cubin):
    """(mnemonic, operands, its scoreboard or 7, a bit for each scoreboard that it waits for) of each instruction; None where a
    label is. The fields are bits 110 to 121 of an instruction."""
    done = subprocess.run([nvdisasm, "-hex", "-c", cubin], capture_output=True, text=True, check=True)
    found, text = [], None
    for line in done.stdout.splitlines():
        if re.match(r"\.L_x_\d+:", line):
            found.append(None)
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;?\s*/\* 0x[0-9a-f]{16} \*/", line):
            text = re.sub(r"^@!?U?P\d+\s+", "", match[1])
        elif text and (match := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/", line)):
            upper = int(match[1], 16)
            mnemonic, _, operands = text.partition(" ")
            found.append((mnemonic, operands, upper >> 46 & 7, upper >> 52 & 63))
            text = None
    return found


def registers(operands):
    """What an instruction may read: every register that it names, and the one behind it for pairs."""
    named = {int(number) for number in re.findall(r"\bR(\d+)\b", operands)}
    return named | {number + 1 for number in named}


def loaded(mnemonic, operands):
    match = re.match(r"\s*R(\d+)", operands)
    words = next((count for width, count in WORDS.items() if width in mnemonic), 1)
    return set(range(int(match[1]), int(match[1]) + words)) if match else set()


def loads_behind(code, start):
    count = 0
    for instruction in code[start:]:
        if instruction is None or instruction[0].split(".")[0] in ENDS:
            break
        count += instruction[0].startswith("LDG")
    return count


def waits(code):
    """The numbers of loads behind each wait for a load by what does not need it."""
    found, results = [], {}
    for at, instruction in enumerate(code):
        if instruction is None or instruction[0].split(".")[0] in ENDS:
            results = {}
            continue
        mnemonic, operands, scoreboard, awaited = instruction
        for number in [number for number in results if awaited >> number & 1]:
            if not results.pop(number) & registers(operands) and (behind := loads_behind(code, at)):
                found.append(behind)
        if mnemonic.startswith("LDG") and scoreboard != 7:
            results.setdefault(scoreboard, set()).update(loaded(mnemonic, operands))
    return found


# ---- the command ---------------------------------------------------------------------------------


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def print_times(rows, file):
    times = {row["key"]: row["results"] for row in json.loads(file.read_text())["rows"]}
    first, *others = rows[0]["waits"]
    for other in [name for name in others if name != "triton"]:
        for has in (False, True):
            ratios = [times[row["key"]][first]["us"] / times[row["key"]][other]["us"] for row in rows
                      if bool(row["waits"][first]) == has and "us" in times.get(row["key"], {}).get(first, {})
                      and "us" in times[row["key"]].get(other, {})]
            if ratios:
                print(f"{first} over {other}, {'with' if has else 'without'} such waits in {first}: {mean(ratios):.3f} "
                      f"of {len(ratios)} ({min(ratios):.3f} to {max(ratios):.3f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=pathlib.Path, help="what kept_kernels.py compile made")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--times", type=pathlib.Path, help="what kept_kernels.py measure wrote")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()

    def row(task):
        found = {name: waits(instructions(options.nvdisasm, options.bundle / f"{variant['cubin']}.cubin"))
                 for name, variant in task["variants"].items()}
        return {"key": task["key"], "name": task["name"], "chosen": task["chosen"], "waits": found}

    tasks = json.loads((options.bundle / "tasks.json").read_text())
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(row, tasks))
    for name in rows[0]["waits"] if rows else ():
        of = [row["waits"][name] for row in rows if name in row["waits"]]
        print(f"{name}: such waits in {sum(map(bool, of))} of {len(of)} kernels")
    if options.times and rows:
        print_times(rows, options.times)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
