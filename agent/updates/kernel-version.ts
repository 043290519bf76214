/** Which of the kernels on a machine is newer than the one that runs. Decides only. */

/**
 * The newest installed kernel of the same flavour as the one that runs, if it is newer. `running`: as `uname -r` has it; `installed`: the
 * same of each kernel. Kernels of another flavour are for another board (Raspberry Pi OS installs `rpi-v8` and `rpi-2712` together).
 * Undefined: there is none, or the versions are not built as those of Debian, Raspberry Pi OS and Ubuntu are.
 */
export function newerKernel(running: string, installed: readonly string[]): string | undefined {
  const own = readVersion(running)
  if (own === undefined) return undefined
  let newest = own
  let name: string | undefined
  for (const one of installed) {
    const found = readVersion(one)
    if (found === undefined || found.flavour !== own.flavour || !isNewer(found, newest)) continue
    newest = found
    name = one
  }
  return name
}

type KernelVersion = { readonly numbers: readonly number[]; readonly flavour: string }

/** `6.1.0-28-amd64`, `6.12.48+deb13-arm64`, `6.12.47+rpt-rpi-v8`, `5.15.0-130-generic`: numbers, and what is after them. */
function readVersion(written: string): KernelVersion | undefined {
  const [, upstream, abi = '0', flavour] =
    /^(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)(?:-(\d{1,6}))?([+-][A-Za-z][A-Za-z0-9+.~_-]{0,62})$/.exec(written) ?? []
  if (upstream === undefined || flavour === undefined) return undefined
  const [major = 0, minor = 0, patch = 0] = upstream.split('.').map(Number)
  return { numbers: [major, minor, patch, Number(abi)], flavour }
}

function isNewer({ numbers }: KernelVersion, than: KernelVersion): boolean {
  const at = numbers.findIndex((number, index) => number !== than.numbers[index])
  return at !== -1 && (numbers[at] ?? 0) > (than.numbers[at] ?? 0)
}
