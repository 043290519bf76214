/** The file with the last known time: an instant and its checksum on one line. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rfc3339 } from '../../../daemon/clock.ts'
import { replaceFile } from '../../../daemon/durable-file.ts'
import type { TimeFile } from '../../node/certificate/known-time.ts'

export function knownTimePath(dataDir: string): string {
  return join(dataDir, 'last-known-time')
}

export function timeFile(path: string): TimeFile {
  return {
    async read() {
      const [time = '', sum] = (await readFile(path, 'utf8').catch(() => '')).trim().split(' ')
      // One flipped bit can change the year by a century. Earlier agents wrote no checksum.
      return sum === undefined || sum === checksum(time) ? Date.parse(time) || 0 : 0
    },
    async save(ms) {
      const time = rfc3339(ms)
      await replaceFile(path, `${time} ${checksum(time)}\n`)
    },
  }
}

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}
