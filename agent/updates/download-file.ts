/** Downloads a file of a release in ranges, within the allowance. What is on disk is not downloaded again, also after a power cut. */
import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../../daemon/durable-file.ts'
import { isMissing } from '../../daemon/errors.ts'
import type { Allowance } from './download-allowance.ts'

export interface ReleaseSource {
  /** At most `most` bytes of a file of the release, and its size; undefined: there is no such file. Rejects if there is no answer. */
  read(
    file: string,
    from: number,
    most: number,
  ): Promise<{ readonly size: number; readonly bytes: Uint8Array } | undefined>
}

export type Download = {
  readonly source: ReleaseSource
  readonly allowance: () => Promise<Allowance>
  /** Counts bytes that were downloaded. */
  readonly spend: (bytes: number) => Promise<void>
}

/** Why a download does not end in this pass: it waits, or the file cannot be had or used. */
export class Unfinished extends Error {
  readonly outcome: 'waiting' | 'blocked'

  constructor(outcome: 'waiting' | 'blocked', reason: string) {
    super(reason)
    this.outcome = outcome
  }
}

/** The controller does not have the file, or not yet. */
export class NotServed extends Unfinished {
  constructor(name: string) {
    super('blocked', `The controller does not have ${name}`)
  }
}

/** Small enough for a slow link within the deadline of a request. */
const rangeBytes = 256 * 1024

/** The file `name`, of which `size` bytes are signed, is at `path` when it has resolved; its content is not checked. Rejects with Unfinished. */
export async function downloadFile(
  { source, allowance, spend }: Download,
  { path, name, size }: { readonly path: string; readonly name: string; readonly size: number },
): Promise<void> {
  for (let have = await sizeOnDisk(path); have < size; ) {
    const most = Math.min(rangeBytes, size - have, await allowedBytes(allowance))
    const found = await source.read(name, have, most)
    if (found === undefined) throw new NotServed(name)
    if (found.size !== size)
      throw new Unfinished('blocked', `${name} has ${found.size} bytes at the controller, and ${size} are signed`)
    if (found.bytes.length === 0 || found.bytes.length > most)
      throw new Error(`The controller sent ${found.bytes.length} bytes where ${most} were asked for`)
    await spend(found.bytes.length)
    await append(path, found.bytes, have)
    have += found.bytes.length
  }
}

/** At least one. Rejects with Unfinished while none is allowed. */
export async function allowedBytes(allowance: Download['allowance']): Promise<number> {
  const allowed = await allowance()
  if (allowed.may === 'wait') throw new Unfinished('waiting', allowed.reason)
  return allowed.bytes
}

/** On disk once it has resolved: what a power cut takes is downloaded again. */
async function append(path: string, bytes: Uint8Array, at: number): Promise<void> {
  const file = await open(path, at === 0 ? 'w' : 'r+', 0o600)
  try {
    await file.write(bytes, 0, bytes.length, at)
    await file.truncate(at + bytes.length)
    await file.sync()
  } finally {
    await file.close()
  }
  if (at === 0) await syncFolder(join(path, '..'))
}

/** Whether the file has this size and this SHA-256. */
export async function isWhole(path: string, size: number, digest: string): Promise<boolean> {
  if ((await sizeOnDisk(path)) !== size) return false
  const hash = createHash('sha256')
  const file = await open(path)
  for await (const piece of file.createReadStream()) hash.update(piece as Uint8Array)
  return hash.digest('hex') === digest
}

/** 0 if there is no such file. */
export async function sizeOnDisk(path: string): Promise<number> {
  const found = await stat(path).catch((error: unknown) => {
    if (!isMissing(error)) throw error
  })
  return found?.size ?? 0
}
