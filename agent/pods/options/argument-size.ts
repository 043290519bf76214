/** Checks that the kernel can start a program with this environment and these arguments: its error does not name the argument. */

/** MAX_ARG_STRLEN with pages of 4 KiB; larger pages allow more, but a pod should run on any node. */
const mostBytesOfOne = 131_072
/** A quarter of the usual stack of 8 MiB, less room for what the kernel adds. */
const mostBytesOfAll = 2 * 1024 * 1024 - 64 * 1024
const pointerBytes = 8

const remedy = 'put large data in a ConfigMap or Secret and mount it as a volume'

export type Words = {
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly command: readonly string[] | undefined
  readonly args: readonly string[] | undefined
}

/** undefined: it would. */
export function argumentProblem({ env, command = [], args = [] }: Words): string | undefined {
  const words = [
    ...env.map(({ name, value }) => ({ field: `env ${name}`, bytes: Buffer.byteLength(name) + sizeOf(value) + 1 })),
    ...command.map((word, index) => ({ field: `command[${index}]`, bytes: sizeOf(word) })),
    ...args.map((word, index) => ({ field: `args[${index}]`, bytes: sizeOf(word) })),
  ]
  const long = words.find(({ bytes }) => bytes > mostBytesOfOne)
  if (long !== undefined) {
    return `${long.field} has ${long.bytes} bytes, the kernel takes at most ${mostBytesOfOne} in one variable or argument; ${remedy}`
  }
  const all = words.map(({ bytes }) => bytes + pointerBytes).reduce((a, b) => a + b, 0)
  if (all <= mostBytesOfAll) return undefined
  return `env, command and args have ${all} bytes together, the kernel takes at most ${mostBytesOfAll}; ${remedy}`
}

/** With the zero at its end. */
function sizeOf(text: string): number {
  return Buffer.byteLength(text) + 1
}
