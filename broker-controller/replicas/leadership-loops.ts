/** What a leader does because others stand by: it renews its lease, shows it to kubectl, and lets go of the nodes when it cannot renew it. */
import { hostname } from 'node:os'
import { type Lease, leaderLeaseKey } from '../../api/lease.ts'
import { type Clock, rfc3339Micro } from '../../daemon/clock.ts'
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { FleetBroker } from '../assembly/fleet-broker.ts'
import { leaseDurationMs, retryPeriodMs, type Term } from '../store/election/election.ts'
import type { Store } from '../store/store.ts'
import type { OpenReplica } from './open-replica.ts'

export type LeadershipNeeds = {
  readonly replica: Pick<OpenReplica, 'election' | 'isLeading'>
  readonly broker: Pick<FleetBroker, 'pause'>
  readonly term: Term
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
}

const lookMs = 250

export function leadershipLoops(needs: LeadershipNeeds): readonly Loop[] {
  const { election } = needs.replica
  return [
    { name: 'leader-election-renewal', run: election.keep },
    { name: 'leader-lease', run: (signal) => showLease(needs, signal) },
    { name: 'leader-nodes', run: (signal) => letGoOfNodes(needs, signal) },
  ]
}

/** For `kubectl -n kube-system get lease`: like the Leases of nodes it is in the memory of the leader. What decides is in the store. */
async function showLease({ replica, term, store, clock, log }: LeadershipNeeds, signal: AbortSignal): Promise<void> {
  const holderIdentity = `${hostname()}_${process.pid}`
  for (; !signal.aborted; await clock.sleep(retryPeriodMs, signal)) {
    if (!replica.isLeading()) continue
    const lease: Lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: leaderLeaseKey,
      spec: {
        holderIdentity,
        leaseDurationSeconds: leaseDurationMs / 1000,
        acquireTime: rfc3339Micro(term.sinceMs),
        renewTime: rfc3339Micro(clock.wallMs()),
        leaseTransitions: term.transitions,
      },
    }
    try {
      if ((await store.get('leases', leaderLeaseKey)) === undefined) await store.create('leases', lease)
      else await store.update('leases', lease)
    } catch (error) {
      log.debug('Lease of the leader not shown', { error })
    }
  }
}

/**
 * A leader that was cut off from the store must not hold its nodes: another one may lead, and count them as unreachable. Without a
 * connection they go to the one that answers.
 */
async function letGoOfNodes({ replica, broker, clock, log }: LeadershipNeeds, signal: AbortSignal): Promise<void> {
  let isPaused = false
  while (!signal.aborted) {
    const isLost = !replica.isLeading()
    if (isLost !== isPaused) {
      isPaused = isLost
      broker.pause(isPaused)
      if (isPaused) log.warn('Lease of the leader not renewed in time: MQTT connections are closed')
      else log.info('MQTT connections are accepted again')
    }
    await clock.sleep(lookMs, signal)
  }
}
