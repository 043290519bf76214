/** The checkpoint of the policies of this node: a file with a checksum, beside those of the fleet's network. */
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../daemon/durable-file.ts'
import { isMissing } from '../../../daemon/errors.ts'
import type { Log } from '../../../daemon/log.ts'
import { checkedContent, withChecksum } from '../../../daemon/updates/checked-text.ts'
import { decodePolicies } from '../../network/messages/received-policies.ts'
import type { PolicyCheckpoint } from '../../network/policies/policy-reception.ts'

/** `folder`: see `networkCheckpointPath`. */
export function policyCheckpoint(folder: string, log: Log): PolicyCheckpoint {
  const path = join(folder, 'policies.json')
  return {
    async load() {
      try {
        const decoded = decodePolicies(JSON.parse(checkedContent(await readFile(path, 'utf8'))))
        return decoded.ok ? decoded.value.message : 'damaged'
      } catch (error) {
        if (isMissing(error)) return undefined
        log.warn('The checkpoint of the policies cannot be used', { path, error })
        return 'damaged'
      }
    },
    async save(message) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await replaceFile(path, withChecksum(message), 0o600)
    },
    clear: () => rm(path, { force: true }),
  }
}
