/** Heartbeats of nodes: they renew the lease, and show whether the controller has the state that the node published. */
import type { NodeStatus } from '../../../api/node.ts'
import { LeaseMessageSchema, standingStatusBody } from '../../../api/topics.ts'
import type { Clock } from '../../../daemon/clock.ts'
import { rewrite } from '../../store/rewrite.ts'
import type { Store, StoredObject } from '../../store/store.ts'
import type { NodeMessage, Peer } from '../broker.ts'
import type { MessageBodies } from './message-bodies.ts'
import type { NodeDigests } from './node-digests.ts'
import type { NodeLeases } from './node-leases.ts'
import { lastReport, nodeStatusAfter } from './node-status-report.ts'
import type { ReportRequests } from './report-requests.ts'

export type HeartbeatsNeeds = {
  readonly store: Store
  readonly clock: Clock
  readonly bodies: Pick<MessageBodies, 'decoded'>
  readonly leases: Pick<NodeLeases, 'record' | 'renew'>
  readonly digests: Pick<NodeDigests, 'differs'>
  readonly requests: Pick<ReportRequests, 'send' | 'sendOnceRegistered'>
  readonly nodeOf: (name: string) => StoredObject<'nodes'> | undefined
  readonly peerOf: (node: string) => Peer
  /** Has the node published a goodbye? */
  readonly isLeaving: (node: string) => boolean
  /** Called with the error of a renewal that was not waited for. */
  readonly failed: (message: NodeMessage, error: unknown) => void
}

export interface Heartbeats {
  /** undefined: everything is done, which is the case of most messages of a fleet. Rejects if the store or the broker does. */
  receive(message: NodeMessage): Promise<void> | undefined
  /** The node has disconnected. */
  forget(node: string): void
}

export function heartbeats(needs: HeartbeatsNeeds): Heartbeats {
  const { store, clock, bodies, leases, digests, requests } = needs
  /** Nodes whose Ready condition was Unknown at their last heartbeat. */
  const unknownBefore = new Set<string>()

  /**
   * After a late heartbeat Ready is Unknown, and the node would report its status again minutes later only. True at the second
   * heartbeat: before that a status may be on its way.
   */
  const staysUnknown = (node: string): boolean => {
    const isUnknown = isReadyUnknown(needs.nodeOf(node)?.status) && !needs.isLeaving(node)
    const wasUnknown = unknownBefore.has(node)
    if (isUnknown && !wasUnknown) unknownBefore.add(node)
    else unknownBefore.delete(node)
    return isUnknown && wasUnknown
  }

  const afterRenewal = ({ node, body }: NodeMessage, digest: string | undefined): Promise<void> | undefined => {
    if (digests.differs(node, digest)) return requests.send(node, 'digest differs')
    if (staysUnknown(node)) return requests.send(node, 'Ready is Unknown')
    return body === standingStatusBody ? confirmStatus(node) : undefined
  }

  /** Stores the last report of the node once more. If others changed it since, the node is asked to publish it. */
  const confirmStatus = async (node: string) => {
    let isReported = true
    const written = await rewrite({ store, clock }, 'nodes', {
      key: { namespace: '', name: node },
      part: 'status',
      change(present) {
        const report = lastReport(present.status)
        isReported = report !== undefined
        return report && { ...present, status: nodeStatusAfter(present.status, report, clock.wallMs()) }
      },
    })
    if (!isReported) await requests.send(node, 'its status is not the one it published')
    else if (written === undefined) requests.sendOnceRegistered(node)
  }

  return {
    receive(message) {
      const { node, body } = message
      const isShort = body === '' || body === standingStatusBody
      const lease = isShort ? undefined : bodies.decoded(LeaseMessageSchema, message)
      if (lease === undefined && !isShort) return undefined
      const peer = needs.peerOf(node)
      const renewing = leases.renew(node, peer)
      if (renewing === undefined) {
        return leases.record(node, { kind: 'heartbeat' }, peer).then(() => afterRenewal(message, lease?.digest))
      }
      renewing.catch((error: unknown) => needs.failed(message, error))
      return afterRenewal(message, lease?.digest)
    },
    forget: (node) => void unknownBefore.delete(node),
  }
}

function isReadyUnknown(status: NodeStatus | undefined): boolean {
  return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'Unknown') ?? false
}
