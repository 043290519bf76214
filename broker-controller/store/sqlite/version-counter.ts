/** The versions of the SQLite store. They are reserved on disk in blocks, because leases take versions and are never written. */
import { ApiError } from '../../../api/api-error.ts'
import type { SqliteFile } from './sqlite-file.ts'

const blockLength = 100_000

export interface VersionCounter {
  last(): number
  /** Throws ApiError InternalError if the next block cannot be reserved. */
  next(): number
}

/** Never returns a version twice, also after SIGKILL: it begins where the last reserved block ended. */
export function versionCounter(file: Pick<SqliteFile, 'reserved' | 'reserve'>): VersionCounter {
  let reserved = file.reserved()
  let last = reserved
  return {
    last: () => last,
    next() {
      if (last >= reserved) {
        try {
          file.reserve(reserved + blockLength)
        } catch (cause) {
          throw new ApiError('InternalError', 'Cannot reserve versions in the store', undefined, { cause })
        }
        reserved += blockLength
      }
      last += 1
      return last
    },
  }
}
