"""Programs of bench/: that each says what it takes, and what load_waits.py finds in machine code. They need no GPU for that."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
PROGRAMS = sorted(file for file in BENCH.glob("*.py") if "__main__" in file.read_text())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda file: file.stem)
def test_help(program):
    done = subprocess.run([sys.executable, program, "--help"], capture_output=True, text=True)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {program.name}")


def module(name):
    spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


# ---- load_waits.py -------------------------------------------------------------------------------

NONE = 7  # no scoreboard


def load(register, scoreboard, awaited=0, width=""):
    return f"LDG.E{width}", f"R{register}, desc[UR4][R{register + 60}.64]", scoreboard, awaited


def add(result, *operands, awaited=0):
    return "FADD", f"R{result}, " + ", ".join(f"R{number}" for number in operands), NONE, awaited


def test_a_load_that_waits_for_another():
    waits = module("load_waits").waits
    store = ("STG.E", "desc[UR4][R100.64], R0", NONE, 0)
    # the address of the second load has the scoreboard of the first load
    assert waits([load(0, 0), load(2, 1, awaited=1), load(4, 2), store]) == [2]
    # an instruction that needs the first load's result, or half of a pair or of a vector
    assert waits([load(0, 0), add(8, 0, 9, awaited=1), load(4, 2)]) == []
    assert waits([load(0, 0, width=".64"), add(8, 1, 9, awaited=1), load(4, 2)]) == []
    assert waits([load(0, 0, width=".128"), add(8, 3, 9, awaited=1), load(4, 2)]) == []
    assert waits([load(0, 0, width=".128"), add(8, 4, 9, awaited=1), load(4, 2)]) == [1]
    # no load behind it; one in another basic block
    assert waits([load(0, 0), add(8, 9, 10, awaited=1)]) == []
    assert waits([load(0, 0), add(8, 9, 10, awaited=1), ("BRA", "`(.L_x_1)", NONE, 0), load(4, 2)]) == []
    assert waits([load(0, 0), None, add(8, 9, 10, awaited=1), load(4, 2)]) == []
    # two loads of one scoreboard, of which one is needed; a second wait for the same
    assert waits([load(0, 0), load(2, 0), add(8, 2, 9, awaited=1), load(4, 2)]) == []
    assert waits([load(0, 0), add(8, 9, 10, awaited=1), add(11, 9, 10, awaited=1), load(4, 2)]) == [1]
    # other scoreboards
    assert waits([load(0, 0), add(8, 9, 10, awaited=2), load(4, 2)]) == []
    assert waits([load(0, 3), add(8, 9, 10, awaited=8), load(4, 2)]) == [1]


def test_fields_of_instructions(tmp_path):
    """What nvdisasm prints: the upper word has the scoreboard in bits 46 to 48, the awaited ones from bit 52 on."""
    upper = 5 << 46 | 0b000011 << 52
    text = ("\t.section\t.text.k\n.L_x_0:\n"
            "        /*0010*/                   LDG.E.64 R4, desc[UR4][R2.64] ;   /* 0x0000000402047981 */\n"
            f"                                                                     /* 0x{upper:016x} */\n"
            "        /*0020*/              @!P0 EXIT ;                            /* 0x000000000000894d */\n"
            f"                                                                     /* 0x{7 << 46:016x} */\n")
    fake = tmp_path / "nvdisasm"
    fake.write_text(f"#!{sys.executable}\nprint({text!r}, end='')\n")
    fake.chmod(0o755)
    assert module("load_waits").instructions(str(fake), tmp_path / "k.cubin") == [
        None, ("LDG.E.64", "R4, desc[UR4][R2.64]", 5, 3), ("EXIT", "", 7, 0)]
