/**
 * The data of backups between nodes: both dial the controller, which encrypts what the one sends and the other keeps. Nodes have no key: what they
 * keep, they cannot read.
 */
import { createHash } from 'node:crypto'
import { StringDecoder } from 'node:string_decoder'
import { setImmediate } from 'node:timers/promises'
import {
  type BackupManifest,
  type BackupManifestFacts,
  longestManifest,
  readManifest,
} from '../../api/backups/backup-manifest.ts'
import type { BackupRead, BackupRestore, BackupStore } from '../../api/backups/backup-sessions.ts'
import { parseJson } from '../../api/text/json.ts'
import { AgeError, ageDecrypted, ageEncrypted } from '../../daemon/age/age-file.ts'
import type { AgeIdentity } from '../../daemon/age/age-keys.ts'
import { type BackupPlace, placeText } from './backup-place.ts'
import { type SessionNeeds, sendingNode, takingNode } from './node-answers.ts'
import { transferRate } from './transfer-rate.ts'

/** What is only known at the end is added. */
export type NewBackup = Omit<BackupManifestFacts, 'bytes' | 'contentBytes' | 'sha256'>

export type BackupCopy = {
  readonly from: { readonly node: string; readonly read: BackupRead }
  readonly to: { readonly node: string; readonly store: BackupStore }
  readonly backup: NewBackup
  readonly manifest: (facts: BackupManifestFacts) => BackupManifest
  readonly bytesPerSecond: number
  /** Bytes of the volume that have come until now, compressed. */
  readonly progress: (bytes: number) => void
}

export type MadeBackup = { readonly manifest: BackupManifest; readonly mark: string; readonly removed: number }

/** Resolves when the backup is whole in its folder. Rejects with the reason of the node that failed. */
export async function copyBackup(
  { from, to, backup, manifest, bytesPerSecond, progress }: BackupCopy,
  needs: SessionNeeds,
  signal: AbortSignal,
): Promise<MadeBackup> {
  // The target first: it may not be there.
  const target = await takingNode(to.node, { store: to.store }, needs, signal)
  let source: Awaited<ReturnType<typeof sendingNode>> | undefined
  try {
    const { mark = '', made: earlier } = await target.reported('mark')
    if (earlier !== undefined) return { manifest: ownManifest(backup.name, earlier, to.store.path), mark, removed: 0 }
    source = await sendingNode(from.node, { read: from.read }, needs, signal)
    const wait = transferRate(bytesPerSecond, needs.clock, signal)
    const hash = createHash('sha256')
    let [bytes, passed] = [0, 0]
    const counted = async function* (pieces: AsyncIterable<Buffer>) {
      for await (const piece of pieces) {
        passed += piece.length
        progress(passed)
        yield piece
        await wait(piece.length)
      }
    }
    for await (const piece of ageEncrypted(counted(source.pieces()), backup.recipient)) {
      hash.update(piece)
      bytes += piece.length
      await target.send(piece)
    }
    const { contentBytes = 0 } = source.facts()
    await target.sendEnd()
    const made = manifest({ ...backup, bytes, contentBytes, sha256: hash.digest('hex') })
    await target.sendText(`${JSON.stringify(made)}\n`)
    const { removed = 0 } = await target.reported('removed')
    await target.ended
    return { manifest: made, mark, removed }
  } finally {
    source?.close()
    target.close()
  }
}

function ownManifest(name: string, text: string, path: string): BackupManifest {
  const manifest = readManifest(name, text)
  if (manifest === undefined) throw new Error(`${path} has a backup ${name} already, whose manifest cannot be read`)
  return manifest
}

const mostListed = 2_000
/** Each of up to 8 KiB. */
const linesInTurn = 16

/** The manifests in a folder, the latest first. Others are left out. */
export async function listBackups(
  place: BackupPlace,
  needs: SessionNeeds,
  signal: AbortSignal,
): Promise<readonly BackupManifest[]> {
  const { node, ...folder } = place
  const source = await sendingNode(node, { list: folder }, needs, signal)
  try {
    const found: BackupManifest[] = []
    const decoder = new StringDecoder('utf8')
    let [bytes, rest] = [0, '']
    for await (const piece of source.pieces()) {
      bytes += piece.length
      if (bytes > mostListed * longestManifest) throw new Error(`${placeText(place)} has too many backups`)
      const lines = (rest + decoder.write(piece)).split('\n')
      rest = lines.pop() ?? ''
      // A line without an end is not a manifest.
      if (rest.length > longestManifest) rest = 'x'
      for (const [at, line] of lines.entries()) {
        const manifest = readManifest(nameIn(line), line)
        if (manifest !== undefined) found.push(manifest)
        if ((at + 1) % linesInTurn === 0) await setImmediate()
      }
      await setImmediate()
    }
    return found.sort((a, b) => Date.parse(b.time) - Date.parse(a.time))
  } finally {
    source.close()
  }
}

function nameIn(line: string): string {
  const { name } = (parseJson(line) ?? {}) as { readonly name?: unknown }
  return typeof name === 'string' ? name : ''
}

export type Restoration = {
  /** In the order in which they follow one another. */
  readonly archives: readonly BackupManifest[]
  readonly from: BackupPlace
  readonly to: { readonly node: string; readonly restore: BackupRestore }
  readonly identities: readonly AgeIdentity[]
  readonly bytesPerSecond: number
  readonly progress: (bytes: number) => void
}

/** Resolves when the data is the folder of the volume. Nothing of an archive that is damaged becomes one. */
export async function restoreBackup(
  { archives, from, to, identities, bytesPerSecond, progress }: Restoration,
  needs: SessionNeeds,
  signal: AbortSignal,
): Promise<void> {
  const target = await takingNode(to.node, { restore: to.restore }, needs, signal)
  const wait = transferRate(bytesPerSecond, needs.clock, signal)
  const { node: _, ...folder } = from
  let passed = 0
  const send = async (piece: Buffer) => {
    passed += piece.length
    progress(passed)
    await target.send(piece)
    await wait(piece.length)
  }
  try {
    for (const archive of archives) {
      const { name } = archive
      const source = await sendingNode(from.node, { fetch: { ...folder, name } }, needs, signal)
      try {
        const encrypted = checked(source.pieces(), archive)
        for await (const piece of ageDecrypted(encrypted.pieces(), identities)) await send(piece)
        if (!encrypted.isWhole()) throw new AgeError('its checksum is not the one in its manifest')
        await target.sendEnd()
      } catch (error) {
        if (!(error instanceof AgeError)) throw error
        throw new AgeError(`${name} in ${placeText(from)} cannot be restored: ${error.message}. Take another one`)
      } finally {
        source.close()
      }
    }
    await target.ended
  } catch (error) {
    // It was made before: the node has nothing to take.
    if (target.isDone) return
    throw error
  } finally {
    target.close()
  }
}

/** `isWhole`: when all pieces were read. */
function checked(pieces: AsyncIterable<Buffer>, { bytes, sha256 }: Pick<BackupManifest, 'bytes' | 'sha256'>) {
  const hash = createHash('sha256')
  let read = 0
  return {
    async *pieces() {
      for await (const piece of pieces) {
        hash.update(piece)
        read += piece.length
        yield piece
      }
    },
    isWhole: () => read === bytes && hash.digest('hex') === sha256,
  }
}
