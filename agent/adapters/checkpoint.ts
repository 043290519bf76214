/** What the pod manager must remember, in one file: `desired.json` in the agent's folder. It may hold secrets. */
import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { decodeDesired } from '../../api/desired.ts'
import { PodStatusSchema } from '../../api/pod.ts'
import { mapOf } from '../../api/schema.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import type { Log } from '../../daemon/log.ts'
import type { PodCheckpoint, Remembered } from '../pods/remembered.ts'

/** What makes a format's content that of the next one: the first of these makes 2 of 1. */
const steps: readonly Step[] = []
type Step = (content: unknown) => unknown
/** Of the file that is written. */
const format = steps.length + 1
const EndingsSchema = mapOf(PodStatusSchema)

/**
 * Why this agent must not touch the file: a later one wrote it, and could read it no more. Undefined when there is no such
 * reason, whatever else may be wrong with it.
 */
export async function laterFormat(path: string): Promise<string | undefined> {
  const found = formatOf(await readFile(path, 'utf8').catch(() => ''))
  if (found === undefined || found <= format) return undefined
  return `${path} was written by a later bramble-agent (format ${found}; this one knows ${format}). Install that version again; or move the file away: pods go on running, and the controller says again what is wanted.`
}

export function checkpointPath(dataDir: string): string {
  return join(dataDir, 'desired.json')
}

/** A first line that says format and checksum, then the content: half a file, or a worn card's, is never believed. */
export function fileCheckpoint(path: string, log: Log): PodCheckpoint {
  let written: string | undefined

  return {
    async load() {
      let text: string
      try {
        text = await readFile(path, 'utf8')
      } catch (error) {
        if (!isAbsent(error)) log.error('Checkpoint of wanted pods cannot be read', { path, error })
        return undefined
      }
      try {
        const remembered = read(text)
        written = essence(remembered)
        return remembered
      } catch (error) {
        const aside = `${path}.unreadable`
        log.error('Checkpoint of wanted pods cannot be used', { path, aside, error })
        await rename(path, aside).catch((reason) => log.warn('Cannot set a file aside', { path, error: reason }))
        return undefined
      }
    },
    async save(remembered) {
      const now = essence(remembered)
      if (now === written) return
      const content = JSON.stringify(remembered)
      await replaceFile(path, `${JSON.stringify({ format, sha256: sha256(content) })}\n${content}\n`, 0o600)
      written = now
    },
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** Exported with its `upgrades` for tests: those of this agent's own past otherwise. */
export function read(text: string, upgrades: readonly Step[] = steps): Remembered {
  const end = text.indexOf('\n')
  const version = formatOf(text)
  const { sha256: sum } = JSON.parse(text.slice(0, end)) as { readonly sha256?: unknown }
  if (version === undefined || version > upgrades.length + 1) {
    throw new Error(`Format ${version} is not known, up to ${upgrades.length + 1} is`)
  }
  const content = text.slice(end + 1, -1)
  if (sha256(content) !== sum) throw new Error('The checksum does not fit the content')
  const upgraded = upgrades.slice(version - 1).reduce<unknown>((before, step) => step(before), JSON.parse(content))
  const parts = (upgraded ?? {}) as { readonly [part: string]: unknown }
  const desired = decodeDesired(parts['desired'])
  const endings = decode(EndingsSchema, parts['endings'])
  if (desired.ok && endings.ok) return { desired: desired.value, endings: endings.value }
  const [problem] = [desired, endings].flatMap((one) => (one.ok ? [] : one.problems))
  throw new Error(`The content is not what it should be: ${JSON.stringify(problem)}`)
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

/** What is worth a write: not the number of the message that said it. */
function essence({ desired, endings }: Remembered): string {
  const { pods, configMaps = [], secrets = [], podCIDR, misread = [] } = desired
  return sha256(JSON.stringify([pods, configMaps, secrets, endings, podCIDR, misread]))
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
