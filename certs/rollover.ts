/**
 * From one authority to the next while both are trusted, in three steps with as much time between them as the fleet takes:
 * begin (the next is trusted), change over (the next signs), finish (the previous is trusted no more).
 */
import { createPrivateKey } from 'node:crypto'
import { rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { authorityCertificate, newKey, privateKeyPem, refuseWrongDate } from './authority.ts'
import { caHash } from './ca-hash.ts'
import { createOnce, readIfThere, replaceWhole, syncFolder } from './files.ts'

export type RolloverStage = 'none' | 'begun' | 'changed-over'

export type Rollover = {
  readonly stage: RolloverStage
  /** Of the authority that signs, the one to come, and the one before. */
  readonly hash: string
  readonly next?: string
  readonly previous?: string
}

export async function rolloverIn(folder: string): Promise<Rollover> {
  const [own, next, previous] = await Promise.all(
    ['ca.crt', 'next.crt', 'previous.crt'].map((name) => readIfThere(join(folder, name))),
  )
  if (own === undefined) throw new Error(`There is no authority in ${folder}`)
  return {
    stage: next !== undefined ? 'begun' : previous !== undefined ? 'changed-over' : 'none',
    hash: caHash(own),
    ...(next !== undefined && { next: caHash(next) }),
    ...(previous !== undefined && { previous: caHash(previous) }),
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
  const key = newKey()
  // The key decides, as with the first one: a process that finds it without its certificate finishes the work.
  await createOnce(join(folder, 'next.key'), privateKeyPem(key), 0o600)
  const kept = createPrivateKey((await readIfThere(join(folder, 'next.key'))) ?? '')
  await createOnce(join(folder, 'next.crt'), authorityCertificate(kept, nowMs), 0o644)
  return rolloverIn(folder)
}

/** The next authority signs from here on; of the one before only its certificate is left. */
export async function changeOver(folder: string): Promise<Rollover> {
  const { stage } = await rolloverIn(folder)
  if (stage !== 'begun') throw new Error(`There is no next authority to change over to: begin first`)
  const own = (await readIfThere(join(folder, 'ca.crt'))) ?? ''
  await replaceWhole(join(folder, 'previous.crt'), own, 0o644)
  await rename(join(folder, 'next.key'), join(folder, 'ca.key'))
  await rename(join(folder, 'next.crt'), join(folder, 'ca.crt'))
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
