/** A control plane that holds the newest report of a node, and all its reports in order. */
import type { Event } from '../../api/event.ts'
import type { NodeStatus } from '../../api/node.ts'
import type { StorageMessage } from '../../api/storage/volume-messages.ts'
import type { PodMessage, StatsMessage } from '../../api/topics.ts'
import type { ControlPlane, Leave } from '../node/connection/control-plane.ts'

export interface FakeControlPlane extends ControlPlane {
  connected: boolean
  leaseDurationSeconds: number
  settled: boolean
  /** Every leave that was published, and every cancellation. */
  readonly leaves: (Leave | undefined)[]
  readonly statuses: NodeStatus[]
  /** The result of `confirmNodeStatus`, and the number of its calls. */
  canConfirm: boolean
  readonly confirmed: { count: number }
  readonly pods: Map<string, PodMessage>
  readonly events: Event[]
  readonly stats: StatsMessage[]
  readonly heartbeats: { count: number }
  /** How often all reports were repeated. */
  readonly repeats: { count: number }
  /** How often the contents were reported. */
  readonly contentReports: { count: number }
  readonly storage: StorageMessage[]
}

export function fakeControlPlane(): FakeControlPlane {
  const fake: FakeControlPlane = {
    connected: true,
    leaseDurationSeconds: 40,
    settled: true,
    leaves: [],
    statuses: [],
    canConfirm: false,
    confirmed: { count: 0 },
    pods: new Map(),
    events: [],
    stats: [],
    heartbeats: { count: 0 },
    repeats: { count: 0 },
    contentReports: { count: 0 },
    storage: [],
    reportNodeStatus: (status) => void fake.statuses.push(status),
    confirmNodeStatus() {
      fake.confirmed.count++
      return fake.canConfirm
    },
    reportPod: (pod) => void fake.pods.set(pod.uid, pod),
    reportPodGone: (uid) => void fake.pods.delete(uid),
    reportEvent: (event) => void fake.events.push(event),
    sendStats: (message) => void fake.stats.push(message),
    reportEverything: () => void fake.repeats.count++,
    reportStorage: (message) => void fake.storage.push(message),
    reportContents: () => void fake.contentReports.count++,
    publishLeave: async (leave) => void fake.leaves.push(leave),
    renewLease() {
      if (fake.connected) fake.heartbeats.count++
      return fake.connected
    },
  }
  return fake
}
