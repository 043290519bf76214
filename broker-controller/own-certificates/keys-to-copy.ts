/** The keys in the folder of the authority that nothing has needed yet. Made before the controller is ready: from then on people copy the folder. */
import { messageOf } from '../../daemon/errors.ts'
import type { Log } from '../../daemon/log.ts'

export type KeysToCopy = {
  /** That of the front proxy. */
  readonly proxyAuthority: () => Promise<unknown>
  /** Those of backups of volumes. */
  readonly backupKeys: () => Promise<unknown>
  readonly log: Pick<Log, 'warn'>
}

/**
 * Never rejects: without them the fleet works, and each is made with its first use. One that another controller has made since would be
 * another key, with which it could not read the backups of this one.
 */
export async function makeKeysToCopy({ proxyAuthority, backupKeys, log }: KeysToCopy): Promise<void> {
  for (const [what, make] of [
    ['the authority of the front proxy', proxyAuthority],
    ['the key of backups', backupKeys],
  ] as const) {
    await make().catch((error: unknown) =>
      log.warn('A key is not there: copies of the authority folder that are made now lack it', {
        what,
        error: messageOf(error),
      }),
    )
  }
}
