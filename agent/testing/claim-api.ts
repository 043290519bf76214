/** The API as the expansion of a volume meets it: one claim, whose status takes merge patches of its latest version only. */
import { isObject } from '../../api/text/json.ts'
import type { ApiAnswer } from '../../daemon/api-client.ts'
import type { GrowingClaim } from '../pods/volumes/csi/claim-growth.ts'

/** `claim` undefined: it cannot be reached. */
export function claimApi(held: { claim?: GrowingClaim | undefined }) {
  const answer = (status: number, body: unknown): ApiAnswer => ({ status, body, dateHeader: undefined })
  return {
    async get(): Promise<ApiAnswer> {
      if (held.claim === undefined) throw new Error('unreachable')
      return answer(200, held.claim)
    },
    async patch(path: string, body: unknown): Promise<ApiAnswer> {
      if (held.claim === undefined) throw new Error('unreachable')
      const { metadata, status } = body as { metadata: { resourceVersion: string }; status: object }
      const { resourceVersion } = held.claim.metadata
      if (!path.endsWith('/status') || metadata.resourceVersion !== resourceVersion) return answer(409, {})
      held.claim = {
        ...held.claim,
        metadata: { ...held.claim.metadata, resourceVersion: String(Number(resourceVersion) + 1) },
        status: merged(held.claim.status ?? {}, status) as GrowingClaim['status'],
      }
      return answer(200, held.claim)
    },
  }
}

/** RFC 7396. */
function merged(before: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const result: { [name: string]: unknown } = isObject(before) ? { ...before } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name]
    else result[name] = merged(result[name], value)
  }
  return result
}
