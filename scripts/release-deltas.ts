/** Deltas of a release: from earlier ones to its archives, and from nothing, which is the compressed archive. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { applyDelta } from '../daemon/updates/deltas/apply-delta.ts'
import { deltaFileName } from '../daemon/updates/deltas/choose-delta.ts'
import { makeDelta } from '../daemon/updates/deltas/make-delta.ts'
import { fileDisk } from '../daemon/updates/file-disk.ts'
import type { ReleaseDelta, ReleaseManifest } from '../daemon/updates/release-manifest.ts'

/** An archive for one architecture. */
export type PackedProgram = {
  readonly program: string
  readonly version: string
  readonly arch: string
  readonly archive: Buffer
}

/** The archives of a release in `folder`, as release.js has made it. Throws if it has none. */
export function archivesOfRelease(folder: string): readonly PackedProgram[] {
  const { program, version, archives } = JSON.parse(
    readFileSync(join(folder, 'release.json'), 'utf8'),
  ) as ReleaseManifest
  return Object.entries(archives).map(([arch, { sha256 }]) => {
    const path = join(folder, `${program}_${version}_${arch}.tar`)
    const archive = readFileSync(path)
    if (digestOf(archive) !== sha256) throw new Error(`${path} is not the archive that its release.json names`)
    return { program, version, arch, archive }
  })
}

/** Writes deltas to `to` into the folder `out`, and prints their sizes. Each was applied, and gave the archive. */
export async function writeDeltas(
  to: PackedProgram,
  earlier: readonly PackedProgram[],
  out: string,
): Promise<readonly ReleaseDelta[]> {
  const deltas: ReleaseDelta[] = []
  const bases = new Map<string, { readonly archive: Buffer; readonly version?: string }>([
    [digestOf(Buffer.alloc(0)), { archive: Buffer.alloc(0) }],
    ...earlier
      .filter(({ program, arch, archive }) => program === to.program && arch === to.arch && !archive.equals(to.archive))
      .map(({ archive, version }) => [digestOf(archive), { archive, version }] as const),
  ])
  for (const [base, { archive, version }] of bases) {
    const delta = makeDelta(archive, to.archive)
    const what = version === undefined ? 'compressed' : `from ${version}`
    if (delta.length >= to.archive.length) {
      console.log(`${to.arch}, ${what}: left out, it is not smaller than the archive`)
      continue
    }
    const name = deltaFileName(to, to.arch, { base })
    await checkDelta(delta, archive, to.archive)
    writeFileSync(join(out, name), delta, { mode: 0o644 })
    console.log(`${join(out, name)}: ${to.arch}, ${what}: ${delta.length} bytes in place of ${to.archive.length}`)
    deltas.push({
      base,
      ...(version !== undefined && { baseVersion: version }),
      size: delta.length,
      sha256: digestOf(delta),
    })
  }
  return deltas
}

/** As a machine does it. Throws if it does not give the archive: it must not be signed. */
async function checkDelta(delta: Buffer, base: Buffer, archive: Buffer): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bramble-delta-'))
  try {
    const path = join(folder, 'delta')
    writeFileSync(path, delta)
    const read = async (from: number, most: number) => base.subarray(from, from + most)
    const { length: size } = archive
    await applyDelta({
      ...{ disk: fileDisk, base: { size: base.length, read }, delta: path },
      ...{ to: join(folder, 'archive'), size, digest: digestOf(archive) },
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function digestOf(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
