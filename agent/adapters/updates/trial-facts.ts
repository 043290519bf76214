/** What Docker and the controller show of the agent, without the agent. */
import { decode } from '../../../api/decode.ts'
import { nodeLeaseNamespace, usualLeaseDurationSeconds } from '../../../api/lease.ts'
import { integer, object, optional, text } from '../../../api/schema.ts'
import { apiClient } from '../../../daemon/api-client.ts'
import { withDeadline } from '../../../daemon/deadline.ts'
import { releaseIn } from '../../../daemon/process/version.ts'
import type { KnownTime } from '../../../daemon/server-check.ts'
import type { TrialLook } from '../../../daemon/updates/trial-verdict.ts'
import { findIdentity } from '../../join/identity.ts'
import { keptServers } from '../../node/connection/controller-servers.ts'
import { knownTimePath, timeFile } from '../disk/time-file.ts'
import { engineReader } from '../docker/connection.ts'
import { nodeLabel } from '../docker/labels.ts'

const containersShape = { list: { fields: { Id: 'text' } } } as const
const answerMs = 10_000

/** Containers of pods that run; undefined if Docker does not answer. */
export async function runningContainers(socketPath: string): Promise<ReadonlySet<string> | undefined> {
  const filters = encodeURIComponent(JSON.stringify({ label: [nodeLabel], status: ['running'] }))
  const read = (signal: AbortSignal) =>
    engineReader(socketPath).read(`/containers/json?filters=${filters}`, containersShape, signal)
  const found = await withDeadline(answerMs, undefined, read).catch(() => undefined)
  return found && new Set(found.flatMap(({ Id }) => Id ?? []))
}

const SeenNodeSchema = object({ status: optional(object({ nodeInfo: optional(object({ kubeletVersion: text })) })) })
const SeenLeaseSchema = object({
  spec: optional(object({ renewTime: optional(text), leaseDurationSeconds: optional(integer) })),
})

/** Whether the controller has a current lease of this node, of this version of the agent if one is given. */
export async function viewOfController(dataDir: string, version?: string): Promise<TrialLook['controller']> {
  const identity = (await findIdentity(dataDir).catch(() => undefined))?.identity
  if (identity === undefined) return 'away'
  const earliestMs = await timeFile(knownTimePath(dataDir)).read()
  // The clock may be wrong. What it is at least is enough to refuse a certificate that has ended.
  const knownTime: KnownTime = { isClockRight: () => false, earliestMs: () => earliestMs, learn: () => undefined }
  const { ca, certificate, key, nodeName } = identity
  for (const url of keptServers(identity).apiServers) {
    const client = apiClient({ url, ca, certificate, key, knownTime, deadlineMs: answerMs })
    try {
      const node = await client.get(`/api/v1/nodes/${nodeName}`)
      const lease = await client.get(`/apis/coordination.k8s.io/v1/namespaces/${nodeLeaseNamespace}/leases/${nodeName}`)
      // Another answer, as of an authentication that failed, does not count.
      if (![node, lease].every(({ status }) => status === 200 || status === 404)) continue
      const nowMs = Date.parse(lease.dateHeader ?? '')
      return isSeen({ node: node.body, lease: lease.body, nowMs, version }) ? 'sees' : 'misses'
    } catch {
      // The next one may answer.
    }
  }
  return 'away'
}

export type NodeAtController = {
  /** Bodies of the answers. */
  readonly node: unknown
  readonly lease: unknown
  /** By the clock of the controller, which has written the lease. */
  readonly nowMs: number
  readonly version: string | undefined
}

/** Whether the node has a current lease, and this version of the agent. */
export function isSeen({ node, lease, nowMs, version }: NodeAtController): boolean {
  const [decodedNode, decodedLease] = [decode(SeenNodeSchema, node), decode(SeenLeaseSchema, lease)]
  if (!decodedNode.ok || !decodedLease.ok) return false
  const { renewTime = '', leaseDurationSeconds = usualLeaseDurationSeconds } = decodedLease.value.spec ?? {}
  // The date of an answer has whole seconds.
  const isCurrent = nowMs - Date.parse(renewTime) <= leaseDurationSeconds * 1000 + 1000
  const runs = releaseIn(decodedNode.value.status?.nodeInfo?.kubeletVersion ?? '')
  return isCurrent && (version === undefined || runs === version)
}
