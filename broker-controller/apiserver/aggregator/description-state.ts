/** When the description of an extension server is asked for, and what is kept of the answers (kube-aggregator, pkg/controllers/openapi). */
import type { GroupVersion } from '../../../api/registration/group-order.ts'
import { messageOf } from '../../../daemon/errors.ts'
import { type ExtensionDescription, extensionDescription } from './extension-description.ts'
import { boundedReason, type ExtensionAnswer } from './extension-servers.ts'
import { hashOf } from './packed-document.ts'

export type DescriptionState = {
  /** The last one that could be read, also while its server does not answer. */
  readonly kept: ExtensionDescription | undefined
  /** The tag of its body, where the server names one. */
  readonly etag: string | undefined
  readonly hashOfBody: string | undefined
  readonly failures: number
  /** By the monotonic clock: not asked for before. */
  readonly nextMs: number
  /** Why it cannot be read; undefined: it was read, or its server has none. */
  readonly problem: string | undefined
}

export type DescriptionNeeds = {
  readonly version: GroupVersion
  /** What is left of the room for all servers. */
  readonly mostLength: () => number
  readonly nowMs: number
  readonly ask: (ifNoneMatch: string | undefined) => Promise<ExtensionAnswer>
}

const none: DescriptionState = {
  ...{ kept: undefined, etag: undefined, hashOfBody: undefined, failures: 0, nextMs: 0, problem: undefined },
}
/** As the queue of the controller there. */
const [firstWaitMs, longestWaitMs] = [60_000, 3_600_000]

/** Never rejects. */
export async function refreshedDescription(
  before: DescriptionState = none,
  { version, mostLength, nowMs, ask }: DescriptionNeeds,
): Promise<DescriptionState> {
  if (nowMs < before.nextMs) return before
  const failed = (problem?: string): DescriptionState => {
    const waitMs = Math.min(longestWaitMs, firstWaitMs * 2 ** before.failures)
    return { ...before, failures: before.failures + 1, nextMs: nowMs + waitMs, problem }
  }
  const unchanged = { ...before, failures: 0, nextMs: 0, problem: undefined }
  try {
    const { code, body, etag } = await ask(before.etag)
    if (code === 304 && before.etag !== undefined) return unchanged
    if (code === 404) return failed()
    if (code !== 200) throw new Error(`its server answers with status ${code}`)
    const hashOfBody = hashOf(body)
    if (hashOfBody === before.hashOfBody) return { ...unchanged, etag }
    const kept = await extensionDescription(body, version)
    if (kept.length > mostLength()) throw new Error('the descriptions of all extension servers are too long together')
    return { ...unchanged, kept, etag, hashOfBody }
  } catch (error) {
    return failed(boundedReason(messageOf(error)))
  }
}
