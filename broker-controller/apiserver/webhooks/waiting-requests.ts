/** The requests that wait for webhooks: each holds a seat of the API, and its object. */
import { ownerOf } from '../../../api/access/service-account-names.ts'
import { ApiError } from '../../../api/api-error.ts'
import { type Identity, mastersGroup } from '../../../api/identity.ts'

/**
 * Those of one user for the same webhooks get as many of `most` places as they leave free: a webhook that hangs, or a user with many
 * requests, holds half of them, and two hold two thirds. `what`: the webhooks, as errors name them.
 */
export function waitingRequests(what: string, most: number) {
  const counts = new Map<string, number>()
  let total = 0
  return {
    /**
     * `webhooks`: names of those that are waited for. Throws TooManyRequests. Administrators are exempt, as from all limits: they must be
     * able to repair a webhook that hangs.
     */
    async whileCounted<T>(
      { user, groups }: Pick<Identity, 'user' | 'groups'>,
      webhooks: readonly string[],
      work: () => Promise<T>,
    ): Promise<T> {
      if (groups.includes(mastersGroup)) return work()
      const key = JSON.stringify([ownerOf(user), ...webhooks])
      const own = counts.get(key) ?? 0
      if (own >= most - total) {
        const message = `Too many requests: ${own} of this user wait for the same ${what}, and ${total} of all users for any`
        throw new ApiError('TooManyRequests', message, { retryAfterSeconds: 1 })
      }
      counts.set(key, own + 1)
      total += 1
      try {
        return await work()
      } finally {
        total -= 1
        const left = (counts.get(key) ?? 1) - 1
        if (left > 0) counts.set(key, left)
        else counts.delete(key)
      }
    },
  }
}
