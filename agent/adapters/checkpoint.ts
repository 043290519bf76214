/** What the pod manager must remember, in one file: `desired.json` in the agent's folder. It may hold secrets. */
import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { decode } from '../../api/decode.ts'
import { PodStatusSchema } from '../../api/pod.ts'
import { mapOf, object } from '../../api/schema.ts'
import { DesiredMessageSchema } from '../../api/topics.ts'
import { replaceFile } from '../../daemon/durable-file.ts'
import type { Log } from '../../daemon/log.ts'
import type { PodCheckpoint, Remembered } from '../pods/remembered.ts'

/** Of the file: a later agent may write another, and an earlier one then leaves it alone. */
const format = 1
const RememberedSchema = object({ desired: DesiredMessageSchema, endings: mapOf(PodStatusSchema) })

/** A first line that says format and checksum, then the content: half a file, or a worn card's, is never believed. */
export function fileCheckpoint(path: string, log: Log): PodCheckpoint {
  let written: string | undefined

  return {
    async load() {
      const text = await readText(path)
      if (text === undefined) return undefined
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

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    return undefined // None yet; or a disk that will say so when it is written.
  }
}

function read(text: string): Remembered {
  const end = text.indexOf('\n')
  const head: unknown = JSON.parse(text.slice(0, end))
  const { format: version, sha256: sum } = (head ?? {}) as { readonly format?: unknown; readonly sha256?: unknown }
  if (version !== format) throw new Error(`Format ${version} is not format ${format}`)
  const content = text.slice(end + 1, -1)
  if (sha256(content) !== sum) throw new Error('The checksum does not fit the content')
  const decoded = decode(RememberedSchema, JSON.parse(content))
  if (!decoded.ok) throw new Error(`The content is not what it should be: ${JSON.stringify(decoded.problems[0])}`)
  return decoded.value
}

/** What is worth a write: not the number of the message that said it. */
function essence({ desired: { pods, configMaps = [], secrets = [], podCIDR }, endings }: Remembered): string {
  return sha256(JSON.stringify([pods, configMaps, secrets, endings, podCIDR]))
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
