/**
 * The checkpoint of the pod manager in one file: `desired.json` in the agent's folder; and a copy of it that may be some minutes
 * older, in case the card corrupts the file. Both may contain secrets.
 */

import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../../api/decode.ts'
import { decodeDesired } from '../../../api/desired.ts'
import { PodStatusSchema } from '../../../api/pod.ts'
import { bool, integer, list, mapOf, object, oneOf, optional, text } from '../../../api/schema.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { codeOf } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import type { CheckpointData, PodCheckpoint } from '../../pods/wanted/pod-checkpoint.ts'

/** Upgrades of the content from one format to the next: the first of these makes format 2 of format 1. */
const steps: readonly Step[] = []
type Step = (content: unknown) => unknown
/** The format that is written. */
const format = steps.length + 1
const EndingsSchema = mapOf(PodStatusSchema)
/** Left out by versions before. */
const AddressesSchema = mapOf(text)
/** Left out by versions before. */
const EndsSchema = mapOf(
  list(
    object({
      name: text,
      id: text,
      sandboxID: optional(text),
      specHash: text,
      attempt: integer,
      image: text,
      imageID: text,
      state: oneOf('exited', 'created'),
      exitCode: integer,
      oomKilled: bool,
      error: text,
      message: text,
      createdAt: text,
      startedAt: optional(text),
      finishedAt: optional(text),
    }),
  ),
)

/**
 * Why this agent must not overwrite the file: a later version wrote it, and could not read it afterwards. Undefined without such
 * a reason, even if the file has other problems.
 */
export async function laterFormat(path: string): Promise<string | undefined> {
  const found = formatOf(await readFile(path, 'utf8').catch(() => ''))
  if (found === undefined || found <= format) return undefined
  return `${path} was written by a later bramble-agent (format ${found}; this one reads ${format}). Install that version again; or move the file away: pods go on running, and the controller sends the desired state again.`
}

export function checkpointPath(dataDir: string): string {
  return join(dataDir, 'desired.json')
}

/** A first line with format and checksum, then the content: an incomplete or corrupted file is never used. */
export function fileCheckpoint(path: string, log: Log): PodCheckpoint {
  const copy = `${path}.copy`
  let written: string | undefined

  /** Undefined if the file does not exist or is not valid; an invalid file is renamed. */
  const take = async (from: string): Promise<CheckpointData | undefined> => {
    let text: string
    try {
      text = await readFile(from, 'utf8')
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') log.error('The checkpoint cannot be read', { path: from, error })
      return undefined
    }
    try {
      return read(text)
    } catch (error) {
      const aside = `${from}.unreadable`
      log.error('The checkpoint cannot be used', { path: from, aside, error })
      await rename(from, aside).catch((reason) =>
        log.warn('Cannot rename a damaged file', { path: from, error: reason }),
      )
      return undefined
    }
  }

  return {
    async load() {
      const newest = await take(path)
      if (newest !== undefined) {
        written = essence(newest)
        return newest
      }
      const older = await take(copy)
      if (older === undefined) return undefined
      log.warn('Using the copy of the checkpoint; containers that it does not list keep running', { path: copy })
      return { ...older, mayBeOld: true }
    },
    async save(remembered) {
      const now = essence(remembered)
      if (now === written) return
      const content = JSON.stringify(remembered)
      await replaceFile(path, `${JSON.stringify({ format, sha256: sha256(content) })}\n${content}\n`, 0o600)
      written = now
    },
    async keepCopy() {
      try {
        const text = await readFile(path, 'utf8')
        if (text === (await readFile(copy, 'utf8').catch(() => ''))) return
        contentOf(text)
        await replaceFile(copy, text, 0o600)
      } catch (error) {
        if (codeOf(error) !== 'ENOENT') log.warn('Cannot copy the checkpoint', { path: copy, error })
      }
    },
  }
}

/** Exported for tests, with its `upgrades`; the default are those of this version. */
export function read(text: string, upgrades: readonly Step[] = steps): CheckpointData {
  const version = formatOf(text)
  if (version === undefined || version > upgrades.length + 1) {
    throw new Error(`Format ${version} is not supported; this version reads up to ${upgrades.length + 1}`)
  }
  const content = contentOf(text)
  const upgraded = upgrades.slice(version - 1).reduce<unknown>((before, step) => step(before), JSON.parse(content))
  const parts = (upgraded ?? {}) as { readonly [part: string]: unknown }
  const desired = decodeDesired(parts['desired'])
  const endings = decode(EndingsSchema, parts['endings'])
  const addresses = decode(AddressesSchema, parts['addresses'] ?? {})
  const ends = decode(EndsSchema, parts['ends'] ?? {})
  if (desired.ok && endings.ok && addresses.ok && ends.ok) {
    return {
      desired: desired.value,
      endings: endings.value,
      ...(Object.keys(addresses.value).length > 0 && { addresses: addresses.value }),
      ...(Object.keys(ends.value).length > 0 && { ends: ends.value }),
    }
  }
  const [problem] = [desired, endings, addresses, ends].flatMap((one) => (one.ok ? [] : one.problems))
  throw new Error(`The content is not valid: ${JSON.stringify(problem)}`)
}

/** Throws when the checksum does not match. */
function contentOf(text: string): string {
  const end = text.indexOf('\n')
  const { sha256: sum } = JSON.parse(text.slice(0, end)) as { readonly sha256?: unknown }
  const content = text.slice(end + 1, -1)
  if (sha256(content) !== sum) throw new Error('The checksum does not match the content')
  return content
}

function formatOf(text: string): number | undefined {
  try {
    const head: unknown = JSON.parse(text.slice(0, text.indexOf('\n')))
    const { format: found } = (head ?? {}) as { readonly format?: unknown }
    return Number.isInteger(found) && Number(found) > 0 ? Number(found) : undefined
  } catch {
    return undefined
  }
}

/** The part that is compared before a write: the store of the message, but not its version. */
function essence({ desired, endings, addresses = {}, ends = {} }: CheckpointData): string {
  const {
    pods,
    configMaps = [],
    secrets = [],
    podCIDR,
    clusterDomain,
    apiServer,
    runtimeClasses,
    services,
    misread = [],
    store,
  } = desired
  return sha256(
    JSON.stringify([
      pods,
      configMaps,
      secrets,
      endings,
      podCIDR,
      clusterDomain,
      apiServer,
      runtimeClasses,
      services,
      misread,
      store,
      addresses,
      ends,
    ]),
  )
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
