/** Which Secret holds which certificate. One that is placed stays where it is, so that a change is one Secret. Pure. */

/** Name of a file → its content, of each of a fixed number of Secrets. */
export type Packed = readonly ReadonlyMap<string, string>[]

export type CertificatePacking = {
  /** With the files that nothing names any more, as far as there is room. */
  readonly withOld: Packed
  readonly withoutOld: Packed
}

/** `mostLength`: of the contents of one Secret. All of `wanted` together must find room, whatever its order. */
export function packCertificates(
  wanted: ReadonlyMap<string, string>,
  present: Packed,
  mostLength: number,
): CertificatePacking {
  const kept = present.map((files) => new Map([...files].filter(([file]) => wanted.has(file))))
  const withOld = packed(wanted, present, mostLength)
  if (withOld === undefined) {
    const only = packed(wanted, kept, mostLength) ?? kept
    return { withOld: only, withoutOld: only }
  }
  return { withOld, withoutOld: withOld.map((files) => new Map([...files].filter(([file]) => wanted.has(file)))) }
}

/** undefined: some find no room. */
function packed(wanted: ReadonlyMap<string, string>, present: Packed, mostLength: number): Packed | undefined {
  const secrets = present.map((files) => ({
    files: new Map(files),
    length: [...files.values()].reduce((sum, { length }) => sum + length, 0),
  }))
  const placed = new Set(present.flatMap((files) => [...files.keys()]))
  for (const [file, content] of wanted) {
    if (placed.has(file)) continue
    const secret = secrets.find(({ length }) => length + content.length <= mostLength)
    if (secret === undefined) return undefined
    secret.files.set(file, content)
    secret.length += content.length
  }
  return secrets.map(({ files }) => files)
}
