/** Loop, on the controller that leads: what is wrong in the fleet → messages to channels. Costs per change, not per object. */

import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import { type Loop, runLoops } from '../../../daemon/run.ts'
import { informer } from '../../store/informer.ts'
import type { Store } from '../../store/store.ts'
import { type BatchState, nextBatch, noProblems } from './batches.ts'
import { type ChannelQueueNeeds, channelQueue } from './channel-queue.ts'
import { messageFor } from './messages.ts'
import type { NotifySettings } from './notify-settings.ts'
import { type FleetProblem, mayHaveProblem, problemsOfMap, problemsOfNode, problemsOfPod } from './problems.ts'

export type NotificationNeeds = {
  readonly store: Store
  readonly send: ChannelQueueNeeds['send']
  readonly clock: Clock
  readonly log: Log
}

const periodMs = 5_000
/** Pods with problems beyond these are not tracked: the message has room for a few, and this bounds what a pass costs. */
const mostPods = 5_000

export function notificationLoop(needs: NotificationNeeds, settings: NotifySettings): Loop {
  const { clock, log } = needs
  /** By object. Nodes are apart: failed pods that are kept must not hide a node that is lost. */
  const ofNodes = new Map<string, readonly FleetProblem[]>()
  const ofPods = new Map<string, readonly FleetProblem[]>()
  const nodes = informer(needs, 'nodes', (now, before) => {
    const name = (now ?? before)?.metadata.name ?? ''
    const problems = now === undefined ? [] : problemsOfNode(now)
    if (problems.length === 0) ofNodes.delete(name)
    else ofNodes.set(name, problems)
  })
  const pods = informer(needs, 'pods', (now, before) => {
    const { namespace, name } = (now ?? before)?.metadata ?? {}
    const key = `${namespace}/${name}`
    const problems = now === undefined ? [] : problemsOfPod(now)
    if (problems.length === 0) ofPods.delete(key)
    else if (ofPods.has(key) || ofPods.size < mostPods) ofPods.set(key, problems)
  })
  const ofMaps = new Map<string, readonly FleetProblem[]>()
  const maps = informer(needs, 'configmaps', (now, before) => {
    const map = now ?? before
    if (map === undefined || !mayHaveProblem(map)) return
    ofMaps.set(map.metadata.name, now === undefined ? [] : problemsOfMap(now))
  })
  const channels = settings.channels.map((channel) => ({ channel, queue: channelQueue(channel, needs) }))
  const problemsNow = () =>
    new Map(
      [...ofNodes.values(), ...ofPods.values(), ...ofMaps.values()]
        .flat()
        .map((problem): [string, FleetProblem] => [problem.key, problem]),
    )

  const watch = async (signal: AbortSignal) => {
    let state: BatchState = noProblems
    await Promise.all([nodes.listed, pods.listed, maps.listed])
    while (!signal.aborted) {
      const { state: after, batch } = nextBatch(state, problemsNow(), clock.monotonicMs(), settings)
      state = after
      if (batch !== undefined) {
        for (const { channel, queue } of channels) {
          const message = messageFor(batch, channel.selection)
          if (message !== undefined) queue.add(message)
        }
      }
      await clock.sleep(periodMs, signal)
    }
  }

  const loops: readonly Loop[] = [
    { name: 'notified-nodes', run: nodes.run },
    { name: 'notified-pods', run: pods.run },
    { name: 'notified-rollout', run: maps.run },
    { name: 'notification-batches', run: watch },
    ...channels.map(({ channel, queue }) => ({ name: `notification-channel-${channel.name}`, run: queue.run })),
  ]
  return { name: 'notifications', run: (signal) => runLoops(loops, signal, log) }
}
