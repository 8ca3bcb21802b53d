// The command `lilac` as WebAssembly. Each question starts an instance of its own: its arguments are the
// words of a command line, and its answer is what the command prints.
//
//     const command = await load(bytes);
//     command.run(["layout", "--json", "tensor<…>"])  →  {status, out, err}

const ERRNO = { success: 0, badf: 8, noent: 44, spipe: 70 };
const REGULAR_FILE = 4; // no terminal: the command does not colour its messages

class Exit extends Error {
  constructor(status) {
    super(`exit ${status}`);
    this.status = status;
  }
}

/** The system interface of one instance: arguments, standard input, output and error; no files, no clock. */
class System {
  constructor(words, input) {
    const encoder = new TextEncoder();
    this.words = ["lilac", ...words].map((word) => encoder.encode(`${word}\0`));
    this.input = encoder.encode(input);
    this.at = 0;
    this.streams = { 1: [], 2: [] };
    this.memory = null;
  }

  get view() {
    return new DataView(this.memory.buffer);
  }

  bytes(address, size) {
    return new Uint8Array(this.memory.buffer, address, size);
  }

  text(stream) {
    const decoder = new TextDecoder();
    let text = "";
    for (const part of this.streams[stream]) text += decoder.decode(part, { stream: true });
    return text + decoder.decode();
  }

  args_sizes_get(count, size) {
    this.view.setUint32(count, this.words.length, true);
    this.view.setUint32(size, this.words.reduce((sum, word) => sum + word.length, 0), true);
    return ERRNO.success;
  }

  args_get(pointers, buffer) {
    for (const word of this.words) {
      this.view.setUint32(pointers, buffer, true);
      this.bytes(buffer, word.length).set(word);
      pointers += 4;
      buffer += word.length;
    }
    return ERRNO.success;
  }

  /** Calls `move` with the address and size of each buffer of a scatter list; the sum of what it moved. */
  each(list, count, moved, move) {
    let sum = 0;
    for (let i = 0; i < count; i++) {
      sum += move(this.view.getUint32(list + 8 * i, true), this.view.getUint32(list + 8 * i + 4, true));
    }
    this.view.setUint32(moved, sum, true);
    return ERRNO.success;
  }

  fd_read(file, list, count, moved) {
    if (file !== 0) return ERRNO.badf;
    return this.each(list, count, moved, (address, size) => {
      const part = this.input.subarray(this.at, this.at + size);
      this.bytes(address, part.length).set(part);
      this.at += part.length;
      return part.length;
    });
  }

  fd_write(file, list, count, moved) {
    const parts = this.streams[file];
    if (!parts) return ERRNO.badf;
    return this.each(list, count, moved, (address, size) => {
      parts.push(this.bytes(address, size).slice());
      return size;
    });
  }

  fd_fdstat_get(file, result) {
    if (file > 2) return ERRNO.badf;
    this.bytes(result, 24).fill(0);
    this.view.setUint8(result, REGULAR_FILE);
    return ERRNO.success;
  }

  /** Time stands still, so that equal questions have equal answers. */
  clock_time_get(_clock, _precision, result) {
    this.view.setBigUint64(result, 0n, true);
    return ERRNO.success;
  }

  proc_exit(status) {
    throw new Exit(status);
  }

  get imports() {
    const imports = {
      fd_close: () => ERRNO.success,
      fd_seek: () => ERRNO.spipe,
      fd_prestat_get: () => ERRNO.badf,
      fd_prestat_dir_name: () => ERRNO.badf,
      path_filestat_get: () => ERRNO.noent,
      poll_oneoff: () => ERRNO.badf,
    };
    for (const name of ["args_sizes_get", "args_get", "fd_read", "fd_write", "fd_fdstat_get", "clock_time_get",
      "proc_exit"]) {
      imports[name] = this[name].bind(this);
    }
    return imports;
  }
}

export class Command {
  constructor(module) {
    this.module = module;
  }

  run(words, input = "") {
    const system = new System(words, input);
    const instance = new WebAssembly.Instance(this.module, { wasi_snapshot_preview1: system.imports });
    system.memory = instance.exports.memory;
    let status = 0;
    try {
      instance.exports._start();
    } catch (error) {
      if (error instanceof Exit) {
        status = error.status;
      } else {
        status = 134;
        system.streams[2].push(new TextEncoder().encode(`lilac: stopped: ${error.message}\n`));
      }
    }
    return { status, out: system.text(1), err: system.text(2) };
  }
}

/** Compiles the module; `bytes` is a BufferSource. */
export async function load(bytes) {
  return new Command(await WebAssembly.compile(bytes));
}

/** The bytes of a text in base64 that is compressed with gzip. */
export async function unpack(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
