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
    ...env.map(({ name, value }) => wordOf(`env ${name}`, `${name}=${value}`)),
    ...command.map((word, index) => wordOf(`command[${index}]`, word)),
    ...args.map((word, index) => wordOf(`args[${index}]`, word)),
  ]
  const ended = words.find(({ hasNul }) => hasNul)
  if (ended !== undefined)
    return `${ended.field} has a NUL character, with which the kernel ends a variable or argument`
  const long = words.find(({ bytes }) => bytes > mostBytesOfOne)
  if (long !== undefined) {
    return `${long.field} has ${long.bytes} bytes, the kernel takes at most ${mostBytesOfOne} in one variable or argument; ${remedy}`
  }
  const all = words.map(({ bytes }) => bytes + pointerBytes).reduce((a, b) => a + b, 0)
  if (all <= mostBytesOfAll) return undefined
  return `env, command and args have ${all} bytes together, the kernel takes at most ${mostBytesOfAll}; ${remedy}`
}

/** Its bytes have the zero at its end. */
function wordOf(field: string, text: string) {
  return { field, bytes: Buffer.byteLength(text) + 1, hasNul: text.includes('\0') }
}
