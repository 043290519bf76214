/** Names of files in a FAT: the short one of eleven letters, and the long one in entries of thirteen letters before it. Pure. */

const charactersPerEntry = 13
/** Where the letters of a long name are in its entry. */
const places = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30] as const

/** Names that this program writes. Those of others are read whatever they are. */
export function isWritableName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._+~%-]{0,199}$/.test(name) && !name.endsWith('.')
}

/** FAT does not distinguish upper and lower case. */
export function foldedName(name: string): string {
  return name.toUpperCase()
}

/**
 * The eleven bytes of a name that no other entry of the directory has, and whether entries of a long name are needed with them.
 * `cmdline.txt` is `CMDLINE TXT`, as Linux writes it: firmware may read nothing but these.
 */
export function shortNameOf(
  name: string,
  taken: ReadonlySet<string>,
): { readonly short: string; readonly isLong: boolean } {
  const [, base = '', extension = ''] = /^([A-Z0-9_~%-]{1,8})(?:\.([A-Z0-9_~%-]{1,3}))?$/.exec(foldedName(name)) ?? []
  const plain = base.padEnd(8) + extension.padEnd(3)
  if (base !== '' && !taken.has(plain)) return { short: plain, isLong: name !== foldedName(name) }
  const dot = name.lastIndexOf('.')
  const usable = (text: string) => text.toUpperCase().replace(/[^A-Z0-9_~%-]/g, '_')
  const stem = usable(name.slice(0, dot <= 0 ? undefined : dot).replaceAll('.', ''))
  const end = usable(dot <= 0 ? '' : name.slice(dot + 1))
    .slice(0, 3)
    .padEnd(3)
  for (let number = 1; number < 1_000_000; number++) {
    const tail = `~${number}`
    const short = (stem.slice(0, 8 - tail.length) + tail).padEnd(8) + end
    if (!taken.has(short)) return { short, isLong: true }
  }
  throw new Error(`No short name is free for ${name}`)
}

/** The entries before the one of `short`, in the order in which they are on the disk. */
export function longNameEntries(name: string, short: string): readonly Buffer[] {
  const sum = shortNameSum(Buffer.from(short, 'latin1'))
  const count = Math.ceil(name.length / charactersPerEntry)
  return Array.from({ length: count }, (_, index) => {
    const order = count - index
    const entry = Buffer.alloc(32)
    entry[0] = order | (index === 0 ? 0x40 : 0)
    entry[11] = 0x0f
    entry[13] = sum
    for (const [i, place] of places.entries()) {
      const at = (order - 1) * charactersPerEntry + i
      const unit = at < name.length ? name.charCodeAt(at) : at === name.length ? 0 : 0xffff
      entry.writeUInt16LE(unit, place)
    }
    return entry
  })
}

/** The thirteen letters of one entry of a long name, fewer in its last one. */
export function lettersOf(entry: Buffer): string {
  const units = places.map((place) => entry.readUInt16LE(place))
  const end = units.indexOf(0)
  return String.fromCharCode(...(end < 0 ? units : units.slice(0, end)))
}

/** Stored in each entry of a long name: they belong to the short name after them. */
export function shortNameSum(short: Uint8Array): number {
  let sum = 0
  for (const byte of short.subarray(0, 11)) sum = (((sum & 1) << 7) + (sum >> 1) + byte) & 0xff
  return sum
}

/** `KERNEL8 IMG` → `KERNEL8.IMG`, in lower case where the entry has it so (Windows NT's bits, which Linux obeys, too). */
export function displayedShortName(short: Buffer, caseBits: number): string {
  const part = (from: number, to: number, isLower: boolean) => {
    const text = short.toString('latin1', from, to).trimEnd()
    return isLower ? text.toLowerCase() : text
  }
  const base = part(0, 8, (caseBits & 0x08) !== 0)
  const extension = part(8, 11, (caseBits & 0x10) !== 0)
  return extension === '' ? base : `${base}.${extension}`
}
