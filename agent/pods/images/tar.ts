/** Writes a tar archive in memory (POSIX ustar), with only what a generated image needs. */

export type TarEntry =
  | { readonly path: string; readonly content: Uint8Array; readonly mode: number }
  | { readonly path: string; readonly linkTo: string }
  | { readonly path: string; readonly folder: true; readonly mode: number }

const block = 512

/** Owned by root, dated 1970: the same entries give the same bytes. Paths up to 100 bytes. */
export function tarOf(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap((entry) => [header(entry), padded(entry)]), Buffer.alloc(2 * block)])
}

function padded(entry: TarEntry): Buffer {
  if (!('content' in entry)) return Buffer.alloc(0)
  const body = Buffer.alloc(Math.ceil(entry.content.length / block) * block)
  body.set(entry.content)
  return body
}

function header(entry: TarEntry): Buffer {
  const head = Buffer.alloc(block)
  head.write(entry.path, 0, 100)
  head.write(octal('mode' in entry ? entry.mode : 0o777, 8), 100)
  head.write(octal(0, 8), 108)
  head.write(octal(0, 8), 116)
  head.write(octal('content' in entry ? entry.content.length : 0, 12), 124)
  head.write(octal(0, 12), 136)
  head.write(' '.repeat(8), 148)
  head.write('content' in entry ? '0' : 'linkTo' in entry ? '2' : '5', 156)
  if ('linkTo' in entry) head.write(entry.linkTo, 157, 100)
  head.write('ustar\u000000', 257)
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${octal(sum, 7)} `, 148)
  return head
}

/** Zero-padded octal digits and a NUL, `width` bytes in all. */
function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, '0')}\0`
}
