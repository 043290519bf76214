/** One of several controllers of a world: it answers reads, and leads when it has won the election. */
import { ensureFleetObjects } from '../../broker-controller/assembly/bootstrap-objects.ts'
import { lateCheckpointWindow } from '../../broker-controller/replicas/late-checkpoint-window.ts'
import { leadershipLoops } from '../../broker-controller/replicas/leadership-loops.ts'
import { standbyLoop } from '../../broker-controller/replicas/standby-loop.ts'
import { openCheckpointWindow } from '../../broker-controller/store/checkpoints/checkpoint-window.ts'
import { openRestoreHold } from '../../broker-controller/store/checkpoints/restore-hold.ts'
import { LeadershipLostError, type Term } from '../../broker-controller/store/election/election.ts'
import { untilAnswered } from '../../broker-controller/store/election/until-answered.ts'
import { EtcdError } from '../../broker-controller/store/etcd/etcd-error.ts'
import { openSharedEtcdStore } from '../../broker-controller/store/etcd/etcd-store.ts'
import { runLoops } from '../../daemon/run.ts'
import { type EtcdServers, simulatedEtcdClient } from '../etcd/simulated-etcd.ts'
import { serveApi } from './api-transport.ts'
import { type ControllerNeeds, leadingLoops, openControllerParts, servedKinds } from './controller-program.ts'

export type SharedControllerNeeds = ControllerNeeds & { readonly etcd: EtcdServers; readonly prefix: string }

/** Runs until the life of its place ends. Rejects where a part of it fails, and with LeadershipLostError below its cause. */
export async function runSharedController(needs: SharedControllerNeeds): Promise<void> {
  const { place, network, api, etcd, prefix, log } = needs
  const { clock } = place.life
  const kinds = servedKinds()
  const client = simulatedEtcdClient(place, etcd)
  const opening = { servers: [], tls: {}, prefix, resources: kinds, clock, log, connect: async () => client }
  const { store, origin, election, freshness } = await openSharedEtcdStore(opening)
  if (election === undefined || freshness === undefined) throw new Error('The store has no election')
  const server = `https://${place.machine}`
  let isServing = false
  const isLeading = () => isServing && election.isLeading()
  const leaderServer = () => {
    const leader = election.leader()?.server
    return leader === server ? undefined : leader
  }
  const parts = await openControllerParts(needs, store, kinds)
  const late = lateCheckpointWindow(origin)
  // The transport of the world forwards: the API answers as where no leader is known.
  const replica = { isLeading, freshness, leader: () => undefined, isController: async () => false, credentials: never }
  const forwarding = { isLeading, leader: () => leaderServer()?.replace('https://', '') }
  serveApi({ ...parts, origin, checkpoints: late, replica }, place, network, api, forwarding)

  const lead = async (term: Term, signal: AbortSignal) => {
    const written = <T>(what: string, act: () => Promise<T>) =>
      untilAnswered({ what, keep: election.keep, clock, log, signal }, act)
    await written('the objects of the fleet', () => ensureFleetObjects(store, clock))
    const window = await written('the checkpoint window', () => openCheckpointWindow(parts, origin))
    late.begin(window)
    const hold = await openRestoreHold(parts, late, origin)
    const { broker, loops } = leadingLoops(needs, parts, { window, hold, origin })
    isServing = true
    log.info('Controller ready')
    const leadership = leadershipLoops({ replica: { election, isLeading }, broker, term, store, clock, log })
    await runLoops([...loops, ...leadership], signal, log)
  }
  const standing = standbyLoop({ election, leader: leaderServer, server, facts: {}, clock, log })
  const electing = { name: 'leader-election', run: (signal: AbortSignal) => standing.run(lead, signal) }
  await runLoops([parts.access, electing], new AbortController().signal, log)
}

/** Its service manager starts a controller again that another one has replaced, or that could not open the store. */
export function isStartedAgain(error: unknown): boolean {
  if (error instanceof LeadershipLostError || error instanceof EtcdError) return true
  return error instanceof Error && error.cause !== undefined && isStartedAgain(error.cause)
}

/** No connection of this world has a certificate. */
function never(): never {
  throw new Error('Controllers of the world have no certificates')
}
