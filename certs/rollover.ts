/**
 * From one authority to the next while both are trusted, in three steps with as much time between them as the fleet takes:
 * begin (the next is trusted), change over (the next signs), finish (the previous is no longer trusted).
 */
import { createPrivateKey } from 'node:crypto'
import { rename, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../daemon/durable-file.ts'
import { authorityCertificate, newKey, privateKeyPem, readCertificate, refuseWrongDate } from './authority.ts'
import { caHash } from './ca-hash.ts'
import { createOnce, readIfThere, replaceWhole } from './files.ts'

/** The certificate of the next authority is there, and its key is not. */
export class NextKeyError extends Error {
  override readonly name = 'NextKeyError'
}

export type RolloverStage = 'none' | 'begun' | 'changed-over'

export type Rollover = {
  readonly stage: RolloverStage
  /** Hashes of the authority that signs, of the next one and of the previous one. */
  readonly hash: string
  readonly next?: string
  readonly previous?: string
}

/** Reads the files. A file with the authority that signs is ignored: it is left from a copy of another folder. */
export async function rolloverIn(folder: string): Promise<Rollover> {
  const rollover = await rolloverIfThere(folder)
  if (rollover === undefined) throw new Error(`There is no authority in ${folder}`)
  return rollover
}

/** undefined: there is no authority. */
export async function rolloverIfThere(folder: string): Promise<Rollover | undefined> {
  const [own, ...others] = await Promise.all(
    ['ca.crt', 'next.crt', 'previous.crt'].map((name) => readIfThere(join(folder, name))),
  )
  if (own === undefined) return undefined
  const hash = caHash(own)
  const [next, previous] = others.map((pem) => (pem === undefined || caHash(pem) === hash ? undefined : caHash(pem)))
  return {
    stage: next !== undefined ? 'begun' : previous !== undefined ? 'changed-over' : 'none',
    hash,
    ...(next !== undefined && { next }),
    ...(previous !== undefined && { previous }),
  }
}

/** Makes the next authority. Safe to run again: it stays the same. */
export async function beginRollover(folder: string, nowMs: number): Promise<Rollover> {
  const { stage } = await rolloverIn(folder)
  if (stage === 'changed-over') {
    throw new Error(
      'The rollover before is not finished: finish it first, so that no more than two authorities are trusted',
    )
  }
  refuseWrongDate(nowMs)
  await removeLeftNext(folder)
  const key = newKey()
  // The key decides, as with the first one: a process that finds it without its certificate finishes the work.
  await createOnce(join(folder, 'next.key'), privateKeyPem(key), 0o600)
  const kept = createPrivateKey((await readIfThere(join(folder, 'next.key'))) ?? '')
  await createOnce(join(folder, 'next.crt'), authorityCertificate(kept, nowMs), 0o644)
  return rolloverIn(folder)
}

/** The next authority of an earlier rollover, over which the files of a controller that had changed over were copied. */
async function removeLeftNext(folder: string): Promise<void> {
  const own = readCertificate((await readIfThere(join(folder, 'ca.crt'))) ?? '', join(folder, 'ca.crt'))
  // The key first: without it the certificate is found, and removed, by the next run.
  if (await isKeyOf(join(folder, 'next.key'), own)) await rm(join(folder, 'next.key'), { force: true })
  const next = await readIfThere(join(folder, 'next.crt'))
  if (next !== undefined && caHash(next) === caHash(own)) await rm(join(folder, 'next.crt'), { force: true })
}

async function isKeyOf(path: string, certificate: ReturnType<typeof readCertificate>): Promise<boolean> {
  const pem = await readIfThere(path)
  return pem !== undefined && certificate.checkPrivateKey(createPrivateKey(pem))
}

/**
 * The next authority signs from here on; of the one before only its certificate is left. Safe to run again after a crash. Rejects with
 * NextKeyError, and changes nothing, where the key of the next one is not there.
 */
export async function changeOver(folder: string): Promise<Rollover> {
  const { stage } = await rolloverIn(folder)
  if (stage !== 'begun') throw new Error(`There is no next authority to change over to: begin first`)
  const paths = { key: join(folder, 'ca.key'), nextKey: join(folder, 'next.key'), next: join(folder, 'next.crt') }
  const next = readCertificate((await readIfThere(paths.next)) ?? '', paths.next)
  const hasNextKey = await isKeyOf(paths.nextKey, next)
  if (!hasNextKey && !(await isKeyOf(paths.key, next))) {
    throw new NextKeyError(`${paths.nextKey} is not there, or is not the key of ${paths.next}`)
  }
  const own = (await readIfThere(join(folder, 'ca.crt'))) ?? ''
  await replaceWhole(join(folder, 'previous.crt'), own, 0o644)
  if (hasNextKey) await rename(paths.nextKey, paths.key)
  // Not every file system keeps the order of two renames: a key without its certificate is finished, the reverse is not.
  await syncFolder(folder)
  await rename(paths.next, join(folder, 'ca.crt'))
  await syncFolder(folder)
  return rolloverIn(folder)
}

export async function finishRollover(folder: string): Promise<Rollover> {
  const { stage } = await rolloverIn(folder)
  if (stage !== 'changed-over') throw new Error('There is no previous authority to let go of')
  await unlink(join(folder, 'previous.crt'))
  await syncFolder(folder)
  return rolloverIn(folder)
}
