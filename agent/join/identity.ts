/** What joining leaves behind: one file that says who this machine is in which fleet, and proves it. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decode } from '../../api/decode.ts'
import { problemText } from '../../api/problem.ts'
import { type Described, object, text } from '../../api/schema.ts'
import { replaceFile } from '../../daemon/durable-file.ts'

const IdentitySchema = object({
  nodeName: text,
  /** `https://host:6443` */
  apiUrl: text,
  /** `mqtts://host:8883` */
  mqttUrl: text,
  /** PEM, all three. */
  ca: text,
  certificate: text,
  key: text,
})
export type Identity = Described<typeof IdentitySchema>

export function identityPath(dataDir: string): string {
  return join(dataDir, 'identity.json')
}

/** Undefined when the machine has not joined. Throws when the file cannot be read or is none of ours. */
export async function readIdentity(dataDir: string): Promise<Identity | undefined> {
  const path = identityPath(dataDir)
  let content: unknown
  try {
    content = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return undefined
    throw new Error(`Cannot read ${path}${cause instanceof SyntaxError ? joinAgain : ''}`, { cause })
  }
  const decoded = decode(IdentitySchema, content)
  if (decoded.ok) return decoded.value
  throw new Error(`Cannot read ${path}${joinAgain}: ${decoded.problems.map(problemText).join(', ')}`)
}

const joinAgain = ' (it is spoiled: join again with a new token)'

/** Replaces any earlier identity in one step; for its owner alone. */
export async function writeIdentity(dataDir: string, identity: Identity): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await replaceFile(identityPath(dataDir), `${JSON.stringify(identity, null, 2)}\n`, 0o600)
}
