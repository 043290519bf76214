/** Loop: bootstrap tokens that have expired are removed. They are refused from the moment they expire; this only tidies up. */
import { decodeToken, tokenNamespace, tokenSecretType } from '../../../api/node/bootstrap-token.ts'
import type { Secret } from '../../../api/secret.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { Loop } from '../../../daemon/run.ts'
import { removeObject } from '../../store/object-removal.ts'
import type { Store } from '../../store/store.ts'

export type TokenCleanerNeeds = { readonly store: Store; readonly clock: Clock; readonly log: Log }

const periodMs = 60_000

export function tokenCleaner(needs: TokenCleanerNeeds): Loop {
  return { name: 'token-cleaner', run: (signal) => runTokenCleaner(needs, signal) }
}

/** Whether this token has expired. A Secret that is not a token, or never expires, has not. */
export function isExpiredToken(secret: Secret, nowMs: number): boolean {
  const expiration = secret.type === tokenSecretType ? decodeToken(secret)?.expiration : undefined
  return expiration !== undefined && nowMs >= Date.parse(expiration)
}

async function runTokenCleaner({ store, clock, log }: TokenCleanerNeeds, signal: AbortSignal): Promise<void> {
  const clean = async () => {
    const { items } = await store.list('secrets', tokenNamespace)
    const isStillWanted = (secret: Secret) => isExpiredToken(secret, clock.wallMs())
    for (const secret of items.filter(isStillWanted)) {
      if (await removeObject({ store, clock }, 'secrets', secret, { isStillWanted })) {
        log.info('Expired bootstrap token removed', { secret: secret.metadata.name })
      }
    }
  }
  while (!signal.aborted) {
    await clean().catch((error: unknown) =>
      log.warn('Expired bootstrap tokens not removed', { retryInMs: periodMs, error }),
    )
    await clock.sleep(periodMs, signal)
  }
}
