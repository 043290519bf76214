/**
 * The text of a checkpoint: format and checksum in its first line, then an index. Where the data has a pod, a ConfigMap, a Secret or the
 * status of a pod, the index has the hash of its content.
 */
import { createHash } from 'node:crypto'
import { decode } from '../../../../api/decode.ts'
import { type Desired, decodeDesired } from '../../../../api/desired.ts'
import { PodStatusSchema } from '../../../../api/pod.ts'
import { bool, integer, list, mapOf, object, oneOf, optional, text } from '../../../../api/schema.ts'
import { isObject } from '../../../../api/text/json.ts'
import { DesiredMessageSchema } from '../../../../api/topics.ts'
import type { CheckpointData } from '../../../pods/wanted/pod-checkpoint.ts'

/** Upgrades of the content from one format to the next: the first of these makes format 2 of format 1. */
const steps: readonly Step[] = [(content) => content] // Format 1 has each part in place, which is read in format 2, too.
type Step = (content: unknown) => unknown
/** The format that is written. */
export const checkpointFormat = steps.length + 1
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

/** Another version may have left out fields of the contents that this one reads: the names of its contents are not used. */
const decoder = sha256(JSON.stringify(DesiredMessageSchema))

type Fields = { readonly [name: string]: unknown }

export type CheckpointIndex = {
  /** For the file. */
  readonly text: string
  /** The part that is compared before a write: the store of the message, but not its version. */
  readonly essence: string
  /** By hash. */
  readonly parts: ReadonlyMap<string, object>
}

/** `hashOf`: of the text of a part. */
export function checkpointIndex(data: CheckpointData, hashOf: (part: object) => string): CheckpointIndex {
  const parts = new Map<string, object>()
  const index = withParts(data, (part) => {
    if (typeof part !== 'object' || part === null) return part
    const hash = hashOf(part)
    parts.set(hash, part)
    return hash
  })
  const { epoch: _, version: __, reboot: ___, awaitsCheckpoint: ____, ...lasting } = fieldsOf(index['desired'])
  const content = JSON.stringify({ ...index, decoder })
  return {
    text: `${JSON.stringify({ format: checkpointFormat, sha256: sha256(content) })}\n${content}\n`,
    essence: sha256(JSON.stringify({ ...index, desired: lasting })),
    parts,
  }
}

/** The hashes of the contents that this text names. Throws if it is not valid. */
export function hashesIn(text: string): ReadonlySet<string> {
  const hashes = new Set<string>()
  withParts(fieldsOf(JSON.parse(checkpointContent(text))), (part) => {
    if (typeof part === 'string') hashes.add(part)
    return part
  })
  return hashes
}

/** Throws if it is not valid. `contents`: by hash. `upgrades`: those of this version; tests have others. */
export function readCheckpoint(
  text: string,
  contents: ReadonlyMap<string, string> = new Map(),
  upgrades: readonly Step[] = steps,
): CheckpointData {
  const version = formatOf(text)
  if (version === undefined || version > upgrades.length + 1) {
    throw new Error(`Format ${version} is not supported; this version reads up to ${upgrades.length + 1}`)
  }
  const content: unknown = JSON.parse(checkpointContent(text))
  const upgraded = upgrades.slice(version - 1).reduce((before, step) => step(before), content)
  const data = withParts(fieldsOf(upgraded), (part) => {
    if (typeof part !== 'string') return part
    const found = contents.get(part)
    if (found === undefined) throw new Error(`The content ${part} is missing or damaged`)
    return JSON.parse(found)
  })
  const desired = decodeDesired(data['desired'])
  const endings = decode(EndingsSchema, data['endings'])
  const addresses = decode(AddressesSchema, data['addresses'] ?? {})
  const ends = decode(EndsSchema, data['ends'] ?? {})
  if (desired.ok && endings.ok && addresses.ok && ends.ok) {
    return {
      desired: data['decoder'] === decoder ? desired.value : withoutNames(desired.value),
      endings: endings.value,
      ...(Object.keys(addresses.value).length > 0 && { addresses: addresses.value }),
      ...(Object.keys(ends.value).length > 0 && { ends: ends.value }),
    }
  }
  const [problem] = [desired, endings, addresses, ends].flatMap((one) => (one.ok ? [] : one.problems))
  throw new Error(`The content is not valid: ${JSON.stringify(problem)}`)
}

function withoutNames({ names: _, misread, ...desired }: Desired): Desired {
  const unnamed = misread?.map(({ content: __, ...one }) => one)
  return { ...desired, ...(unnamed && { misread: unnamed }) }
}

/** undefined: the text was not written by any version. */
export function formatOf(text: string): number | undefined {
  try {
    const head: unknown = JSON.parse(text.slice(0, text.indexOf('\n')))
    const { format } = fieldsOf(head)
    return Number.isInteger(format) && Number(format) > 0 ? Number(format) : undefined
  } catch {
    return undefined
  }
}

/** The content with another value for each part that has a file of its own. */
function withParts(content: Fields, change: (part: unknown) => unknown): Fields {
  const { pods, configMaps, secrets, services, ...rest } = fieldsOf(content['desired'])
  const each = (items: unknown) => (Array.isArray(items) ? items.map(change) : items)
  const values = (map: unknown) =>
    isObject(map) ? Object.fromEntries(Object.entries(map).map(([key, part]) => [key, change(part)])) : map
  return {
    ...content,
    desired: {
      ...rest,
      pods: each(pods),
      configMaps: each(configMaps),
      secrets: each(secrets),
      ...(services !== undefined && { services: change(services) }),
    },
    endings: values(content['endings']),
    ends: values(content['ends']),
  }
}

/** Throws when the checksum does not match. */
function checkpointContent(text: string): string {
  const end = text.indexOf('\n')
  const { sha256: sum } = fieldsOf(JSON.parse(text.slice(0, end)))
  const content = text.slice(end + 1, -1)
  if (sha256(content) !== sum) throw new Error('The checksum does not match the content')
  return content
}

function fieldsOf(value: unknown): Fields {
  return isObject(value) ? value : {}
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
