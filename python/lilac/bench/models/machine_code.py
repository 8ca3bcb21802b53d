"""Machine instructions of a kernel by class, from nvdisasm."""

import re
import subprocess
import tempfile

WIDTHS = ("U8", "S8", "U16", "S16", "64", "128")


def classes(cubin):
    """{class: number} of the instructions of a cubin, loads and stores with their width; None without nvdisasm.
    nvdisasm needs about 0.3 s for the smallest kernel."""
    import triton

    try:
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            text = subprocess.run([triton.knobs.nvidia.nvdisasm.path, "-c", "-ndf", file.name], capture_output=True,
                                  text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = {}
    for match in re.finditer(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", text):
        parts = match.group(1).split(".")
        key = parts[0]
        if key in ("LDG", "STG"):
            key += "." + next((p for p in parts if p in WIDTHS), "32")
        if key not in ("NOP", "BRA"):
            found[key] = found.get(key, 0) + 1
    return found
