"""The recorded launches on the simulator: same inputs, and the outputs that a GPU gave.

The outputs must agree to the tolerance of their type, and the simulator must have nothing to report.
"""

import json
import os
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import command  # noqa: E402

TOLERANCE = {"float16": 5e-3, "bfloat16": 5e-3, "float32": 1e-5, "int8": 0, "int32": 0}
EXACT = {"vector_add_f32": 1e-6}


def launch_shape(case):
    return ["--grid", ",".join(str(size) for size in case["grid"]),
            "--num-warps", case["num_warps"], "--num-stages", case["num_stages"]]


def launch_words(case, folder):
    """The command line of `lilac run` for the buffers of a case, which lie in folder."""
    words = []
    for argument in case["arguments"]:
        name = argument["name"]
        if argument["kind"] == "scalar":
            words += ["--arg", "%s=%s" % (name, argument["value"])]
            continue
        words += ["--arg", "%s=@%s" % (name, os.path.join(folder, "in_%s.npy" % name))]
        if argument["written"]:
            tolerance = EXACT.get(case["name"], TOLERANCE[argument["dtype"]])
            words += ["--expect", "%s=%s,%g" % (name, os.path.join(folder, "out_%s.npy" % name),
                                                tolerance)]
    return words


def check(lilac, data, case, suffix=".ttir", words=None):
    """Why this launch fails, or None; and its report. `words`: other options than the case's."""
    base = os.path.join(data, "corpus", case["name"])
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(base + ".npz") as archive:
            archive.extractall(folder)
        done = command.run(lilac, "run", base + suffix, "--verify", "--json",
                           *(words or launch_shape(case)), *launch_words(case, folder))
    if done.returncode not in (0, 3):
        return "exit status %d\n%s" % (done.returncode, done.stderr), None
    report = json.loads(done.stdout)
    written = sum(argument.get("written", False) for argument in case["arguments"])
    if len(report["expect"]) != written:
        return "not every output was compared", report
    if done.returncode != 0:
        return "outputs differ: %s" % json.dumps(report["expect"]), report
    for finding in ("races", "uninitialised_reads"):
        if report["counters"][finding] != 0:
            return "%d %s\n%s" % (report["counters"][finding], finding, done.stderr), report
    if report["findings"] or done.stderr:
        return "it has something to say:\n%s" % done.stderr, report
    return None, report


def main():
    arguments = command.parse_arguments(__doc__)
    cases = command.read_cases(arguments.data)
    failures = []
    names = arguments.names or command.LAUNCHES
    for name in names:
        reason, report = check(arguments.lilac, arguments.data, cases[name])
        if reason:
            failures.append(name)
            print("%-24s FAILED: %s" % (name, reason))
        else:
            errors = ", ".join("%s %.2g" % (result["name"], result["relative_error"])
                               for result in report["expect"])
            print("%-24s %s" % (name, errors))
    command.finish(failures, len(names), "recorded launches")


if __name__ == "__main__":
    main()
