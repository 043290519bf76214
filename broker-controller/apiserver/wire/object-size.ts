/** How large may an object become? Larger ones are refused before they reach the store. */
import { ApiError } from '../../../api/api-error.ts'
import type { ResourceName, ResourceTypes } from '../../../api/resources.ts'
import { isIntricate, mostValues } from './body-limits.ts'

/** As etcd's --max-request-bytes: 1.5 MiB. */
export const mostObjectBytes = 1536 * 1024
/** Events are many, and their messages are short. */
export const mostEventBytes = 16 * 1024

/** A node writes most of its Node itself: fifty images with their names are about 20 KB, annotations at most 256 KiB. */
export const mostNodeBytes = 512 * 1024

type AnyObject = ResourceTypes[ResourceName]

/** Throws RequestEntityTooLarge. The size is that of its JSON. */
export function refuseLarge(object: AnyObject): void {
  const most = mostBytes(object)
  const json = Buffer.from(JSON.stringify(object))
  const bytes = json.length
  const name = object.metadata.name ?? ''
  if (bytes <= most) {
    if (!isIntricate(json)) return
    // Every later write reads, checks and copies all of them, whatever little it changes.
    const because = `${object.kind} "${name}" would have more than ${mostValues} fields and items`
    throw new ApiError('RequestEntityTooLarge', `Request entity too large: ${because}`)
  }
  throw new ApiError(
    'RequestEntityTooLarge',
    `Request entity too large: ${object.kind} "${name}" would have ${bytes} bytes, the limit is ${most}`,
  )
}

function mostBytes({ kind }: AnyObject): number {
  if (kind === 'Event') return mostEventBytes
  return kind === 'Node' ? mostNodeBytes : mostObjectBytes
}

/** Bytes of its JSON in UTF-8. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
