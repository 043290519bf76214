/** Static pods: the folder of manifests and the loop that watches it. */
import type { Log } from '../../daemon/log.ts'
import type { Loop } from '../../daemon/run.ts'
import type { LoopWatch } from '../../daemon/watchdog/loop-watch.ts'
import { manifestFolder } from '../adapters/disk/manifest-folder.ts'
import type { AgentConfiguration } from '../configuration.ts'
import type { NodeEvent } from '../node/status/node-event.ts'
import { staticPodManager } from '../pods/static/static-pod-manager.ts'
import type { WriteEnds } from './board.ts'

export type StaticPodParts = {
  readonly write: WriteEnds
  readonly configuration: AgentConfiguration
  readonly nodeName: string
  readonly event: (event: NodeEvent) => void
  readonly watch: LoopWatch
  readonly log: Log
}

/** Resolves after the folder was read once, so that static pods are known before pods are admitted or removed. */
export async function readStaticPods(parts: StaticPodParts): Promise<readonly Loop[]> {
  const { write, configuration, nodeName, event, watch, log } = parts
  const read = write('staticPods').staticPods
  const { staticPodPath, fileCheckMs } = configuration
  if (staticPodPath === '') {
    read.set([])
    return []
  }
  const staticPods = staticPodManager(
    {
      folder: manifestFolder(staticPodPath),
      onChange: read.set,
      warn: (reason, message) => event({ type: 'Warning', reason, message }),
      clock: watch.clockFor('static-pods'),
      log,
    },
    { nodeName, fileCheckMs },
  )
  await staticPods.look()
  return [staticPods]
}
