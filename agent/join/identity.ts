/**
 * The identity of a joined machine: a file with its node name, the addresses of its fleet, and its certificate and key; and a copy
 * of the file, in case the card damages it. Each is replaced atomically, one after the other, so that one of them is always valid.
 */

import { createHash } from 'node:crypto'
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { problemText } from '../../api/problem.ts'
import { type Described, list, object, optional, text } from '../../api/schema.ts'
import { parseJson } from '../../api/text/json.ts'
import { certificatesIn } from '../../api/text/pem.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import { codeOf } from '../../daemon/errors.ts'
import type { Log } from '../../daemon/log.ts'

const IdentitySchema = object({
  nodeName: text,
  /** `https://host:6443` */
  apiUrl: text,
  /** `mqtts://host:8883` */
  mqttUrl: text,
  /** Addresses of all controllers, as they were last published. */
  apiServers: optional(list(text)),
  mqttServers: optional(list(text)),
  /** PEM, the three below. */
  ca: text,
  certificate: text,
  key: text,
})
export type AgentIdentity = Described<typeof IdentitySchema>

/** Checksum of the whole file. Earlier agents wrote none. */
const SumSchema = object({ sha256: optional(text) })

/** `damaged`: what is wrong with the file itself; `identity` is then that of its copy. */
export type FoundIdentity = { readonly identity: AgentIdentity; readonly damaged?: unknown }

export function identityPath(dataDir: string): string {
  return join(dataDir, 'identity.json')
}

function copyPath(dataDir: string): string {
  return `${identityPath(dataDir)}.copy`
}

/** Undefined when the machine has not joined. Throws when the file cannot be read or is invalid. */
export async function readIdentity(dataDir: string): Promise<AgentIdentity | undefined> {
  const found = await findIdentity(dataDir)
  if (found?.damaged === undefined) return found?.identity
  throw new Error('Restart the agent: the copy of its identity is valid', { cause: found.damaged })
}

/** The same, or the content of the copy where the file cannot be used. Throws when neither is. */
export async function findIdentity(dataDir: string): Promise<FoundIdentity | undefined> {
  try {
    const identity = await readFrom(identityPath(dataDir))
    return identity && { identity }
  } catch (damaged) {
    const identity = await readFrom(copyPath(dataDir)).catch(() => undefined)
    if (identity !== undefined) return { identity, damaged }
    throw damaged instanceof Damaged ? new Error('Join again with a new token', { cause: damaged }) : damaged
  }
}

/** Writes the identity to both files and sets a damaged one aside. A disk that takes no writes is logged, and no error. */
export async function repairIdentity(dataDir: string, { identity, damaged }: FoundIdentity, log: Log): Promise<void> {
  const path = identityPath(dataDir)
  if (damaged !== undefined) {
    const aside = `${path}.unreadable`
    log.error('The identity of this node is damaged, its copy is used', { path, aside, error: damaged })
    // Not moved: where there is no such file a machine has not joined.
    await copyFile(path, aside).catch((error) => log.warn('Cannot rename a damaged file', { path, error }))
  }
  const wanted = fileText(identity)
  for (const file of [path, copyPath(dataDir)]) {
    if ((await readFile(file, 'utf8').catch(() => '')) === wanted) continue
    await replaceFile(file, wanted, 0o600).catch((error) => log.warn('Cannot save the identity', { error }))
  }
}

/** Replaces any earlier identity in one step; for its owner alone. A copy that cannot be written is made at the next start. */
export async function writeIdentity(dataDir: string, identity: AgentIdentity): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await replaceFile(identityPath(dataDir), fileText(identity), 0o600)
  await replaceFile(copyPath(dataDir), fileText(identity), 0o600).catch(() => undefined)
}

/**
 * The same by an agent that began as `before`: throws, and leaves what is there, where the machine has joined as another node,
 * or another fleet, since. Of a disk that took no writes for long all authorities there may have gone: those were `before`'s.
 */
export async function renewIdentity(dataDir: string, before: AgentIdentity, identity: AgentIdentity): Promise<void> {
  const there = await readIdentity(dataDir).catch(() => undefined)
  if (there !== undefined && !isSameNode(there, before) && !isSameNode(there, identity)) {
    const who = `node ${there.nodeName} of ${there.apiUrl}`
    throw new Error(`This machine has joined again since, as ${who}: restart the agent`)
  }
  await writeIdentity(dataDir, identity)
}

/** Fleets of one address have different authorities; that of one fleet may change, one after the other. */
function isSameNode(one: AgentIdentity, other: AgentIdentity): boolean {
  const known = certificatesIn(other.ca)
  const isSameFleet = one.ca === other.ca || certificatesIn(one.ca).some((authority) => known.includes(authority))
  return isSameFleet && one.nodeName === other.nodeName && one.apiUrl === other.apiUrl
}

function fileText(identity: AgentIdentity): string {
  return `${JSON.stringify({ ...identity, sha256: sumOf(identity) }, null, 2)}\n`
}

/** Without the lists of addresses: earlier agents compute it without them. */
function sumOf({ nodeName, apiUrl, mqttUrl, ca, certificate, key }: AgentIdentity): string {
  const content = JSON.stringify([nodeName, apiUrl, mqttUrl, ca, certificate, key])
  return createHash('sha256').update(content).digest('hex')
}

/** The file can be read, but its content is not what was written. */
class Damaged extends Error {
  constructor(path: string, why: string) {
    super(`${path} is damaged: ${why}`)
  }
}

async function readFrom(path: string): Promise<AgentIdentity | undefined> {
  let written: string
  try {
    written = await readFile(path, 'utf8')
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined
    throw new Error(`Cannot read ${path}`, { cause })
  }
  const content = parseJson(written)
  if (content === undefined) throw new Damaged(path, 'it is not JSON')
  const decoded = decode(IdentitySchema, content)
  if (!decoded.ok) throw new Damaged(path, decoded.problems.map(problemText).join(', '))
  const sum = decode(SumSchema, content)
  if (sum.ok && sum.value.sha256 !== undefined && sum.value.sha256 !== sumOf(decoded.value)) {
    throw new Damaged(path, 'the checksum does not match the content')
  }
  return decoded.value
}
