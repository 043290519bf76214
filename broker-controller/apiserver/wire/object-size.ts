/** The largest size of an object. Larger ones are rejected before they reach the store. */
import { ApiError } from '../../../api/api-error.ts'
import type { AnyObject } from '../../../api/meta.ts'
import { hasMoreValues, isIntricate, mostValues } from './body-limits.ts'

/** As etcd's --max-request-bytes: 1.5 MiB. */
export const mostObjectBytes = 1536 * 1024

/** The limits of the objects of a kind; undefined: those of any object. */
type ObjectLimits = { readonly largestBytes?: number; readonly mostValues?: number }

/** Throws RequestEntityTooLarge where the JSON of the object has more bytes, or more fields and items, than its kind may have. */
export function refuseLarge(object: AnyObject, limits: ObjectLimits = {}): void {
  const { largestBytes: most = mostObjectBytes, mostValues: values = mostValues } = limits
  const json = JSON.stringify(object)
  const bytes = Buffer.byteLength(json)
  const name = object.metadata.name ?? ''
  if (bytes <= most) {
    // Each field and item has at least a byte, and decoding bounds the levels.
    if (bytes <= values || !isIntricate(Buffer.from(json), values)) return
    // Every later write reads, checks and copies all of them, whatever little it changes.
    throw tooManyValues(object, values)
  }
  throw new ApiError(
    'RequestEntityTooLarge',
    `Request entity too large: ${object.kind} "${name}" would have ${bytes} bytes, the limit is ${most}`,
  )
}

/** Throws as `refuseLarge` for too many fields and items. It only counts, so it comes before what costs more for each of them. */
export function refuseManyValues(object: AnyObject, most = mostValues): void {
  if (hasMoreValues(object, most)) throw tooManyValues(object, most)
}

function tooManyValues({ kind, metadata }: AnyObject, most: number): ApiError {
  const because = `${kind} "${metadata.name ?? ''}" would have more than ${most} fields and items`
  return new ApiError('RequestEntityTooLarge', `Request entity too large: ${because}`)
}

/** Bytes of its JSON in UTF-8. */
export function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
