#!/usr/bin/env python3
"""The package as users meet it: installed into a fresh prefix, found by CMake and by pkg-config,
static and shared; the program of docs/c.md, built as that page says; the shared library exports
lilac_ names only; the headers compile alone as C17 (and as C++17 where there is a C++ compiler); a
component cannot include one above it.

usage: package.py BUILD_FOLDER [SANITIZERS]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXPECTED = '{"lane": [[1],[2],[4],[8],[16]]}'


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def fails(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0


def check(what, condition, detail=""):
    if not condition:
        sys.exit(f"{what}: failed\n{detail}")
    print(f"{what}: ok")


def build_readme_program(folder, flags, libraries, sanitize, cc):
    """The program that the README shows a part of: PTX for a kernel, diagnostics for a bad one."""
    example = os.path.join(ROOT, "examples", "compile", "compile.c")
    program = os.path.join(folder, "compile")
    run(cc, "-std=c17", "-Wall", "-Wextra", "-Werror", example, "-o", program, *flags, *sanitize)
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
    out = run(program, os.path.join(ROOT, "examples", "launch", "axpy.ttir"), env=environment)
    check("the README's program", ".entry axpy" in out and ".reqntid 256" in out, out)
    bad = os.path.join(folder, "bad.ttir")
    with open(bad, "w", encoding="utf-8") as file:
        file.write("module {\n  tt.func @k() {\n    tt.lod\n  }\n}\n")
    done = subprocess.run([program, bad], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    check("the README's program on a bad kernel", done.returncode == 1 and done.stdout == "" and
          "bad.ttir:3:5: error: unknown operation 'tt.lod'" in done.stderr, done.stderr)


def build_page_program(folder, build, flags, libraries, sanitize, cc):
    """The program of docs/c.md, built as that page says and run on a CUDA driver without a GPU."""
    with open(os.path.join(ROOT, "docs", "c.md"), encoding="utf-8") as file:
        line = re.search(r"^cc (.*) \$\(pkg-config --cflags --libs lilac\)$", file.read(), re.M)
    check("docs/c.md says how to build its program", line)
    example = os.path.join(ROOT, "examples", "launch")
    words = [os.path.join(example, word) if word == "launch.c" else
             os.path.join(folder, word) if word == "launch" else word for word in line.group(1).split()]
    run(cc, *words, *flags, *sanitize)
    environment = dict(os.environ, LD_LIBRARY_PATH=libraries)
    program, kernel = os.path.join(folder, "launch"), os.path.join(example, "axpy.ttir")
    fake = os.path.join(build, "tests", "libfake_cuda.so")
    out = run(program, kernel, "10000", env=dict(environment, LILAC_LIBCUDA=fake))
    check("docs/c.md's program", "0 of 10000 elements are wrong" in out, out)
    done = subprocess.run([program, kernel, "16"], stderr=subprocess.PIPE, text=True,
                          env=dict(environment, LILAC_LIBCUDA=os.path.join(folder, "none.so")))
    check("docs/c.md's program without a driver",
          done.returncode == 1 and "[no-cuda-library]" in done.stderr, done.stderr)


def main():
    build = sys.argv[1]
    sanitize = [f"-fsanitize={sys.argv[2]}"] if len(sys.argv) > 2 and sys.argv[2] else []
    cc = os.environ.get("CC", "cc")
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, "prefix")
        run("cmake", "--install", build, "--prefix", prefix)

        consumer = os.path.join(folder, "consumer")
        run("cmake", "-S", os.path.join(HERE, "consumer"), "-B", consumer, f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", consumer)
        for kind in ("static", "shared"):
            out = run(os.path.join(consumer, f"consumer_{kind}")).replace(", ", ",").replace(": ", ":")
            check(f"find_package, {kind}", out.strip() == EXPECTED.replace(", ", ",").replace(": ", ":"), out)

        libraries = subprocess.run(["find", prefix, "-name", "liblilac.so"], stdout=subprocess.PIPE, text=True)
        library = libraries.stdout.split()[0]
        names = re.findall(r" [TDBR] (\S+)", run("nm", "-D", "--defined-only", library))
        foreign = [name for name in names if not name.startswith("lilac_")]
        check("exported names", len(names) > 50 and not foreign, " ".join(foreign))

        if shutil.which("pkg-config"):
            configs = os.path.join(os.path.dirname(library), "pkgconfig")
            environment = dict(os.environ, PKG_CONFIG_PATH=configs)
            flags = run("pkg-config", "--cflags", "--libs", "lilac", env=environment)
            flags = flags.split()
            check("lilac.pc names the folders of --prefix",
                  {os.path.realpath(flag[2:]) for flag in flags if flag[:2] in ("-I", "-L")} ==
                  {os.path.realpath(path) for path in (f"{prefix}/include", os.path.dirname(library))}, flags)
            program = os.path.join(folder, "by_pkg_config")
            run(cc, "-std=c17", os.path.join(HERE, "consumer", "consumer.c"), "-o", program, *flags, *sanitize)
            run(program, env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(library)))
            check("pkg-config", True)
            build_page_program(folder, build, flags, os.path.dirname(library), sanitize, cc)
            build_readme_program(folder, flags, os.path.dirname(library), sanitize, cc)
        else:
            print("pkg-config: skipped, there is none")

        run(cc, "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c",
            f"-I{prefix}/include", os.path.join(prefix, "include", "lilac.h"))
        check("lilac.h alone as C17", True)
        cxx = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        if cxx:
            alone = os.path.join(folder, "alone.cpp")
            with open(alone, "w") as file:
                file.write("#include <lilac.h>\n")
            run(cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{prefix}/include", alone)
            check("lilac.h alone as C++17", True)
        else:
            print("lilac.h alone as C++17: skipped, there is no C++ compiler")

        for component, above in (("f2", "layout"), ("layout", "tile"), ("simt", "tile"), ("target_sim", "layout"),
                            ("tile", "engine"), ("engine", "lower"), ("lower", "driver"), ("driver", "runtime")):
            probe = os.path.join(folder, "probe.c")
            with open(probe, "w") as file:
                file.write(f"#include <lilac/{above}.h>\nint probe;\n")
            check(f"component {component} cannot include {above}",
                  fails(cc, "-std=c17", "-fsyntax-only", f"-I{build}/components/{component}", probe))


main()
