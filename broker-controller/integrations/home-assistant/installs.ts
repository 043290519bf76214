/** The button of the update entity: a machine may take the release of the rollout now, out of turn. */

import { agentReleaseAnnotation } from '../../../api/node/agent-update.ts'
import type { Node } from '../../../api/node.ts'
import { withRelease } from '../../controllers/rollouts/node-facts.ts'
import { releaseOutOfTurn } from '../../controllers/rollouts/release-out-of-turn.ts'
import type { StoredRollout } from '../../controllers/rollouts/rollout-object.ts'
import { type MachineRequestNeeds, type MachineRequests, machineRequests } from './machine-requests.ts'

export type InstallNeeds = MachineRequestNeeds & {
  readonly nodeNamed: (name: string) => Node | undefined
  readonly rollout: () => StoredRollout | undefined
}

const pauseMs = 60_000

export function installs({ nodeNamed, rollout, ...needs }: InstallNeeds): MachineRequests {
  return machineRequests(needs, {
    what: 'Update of the agent of a machine',
    loopName: 'home-assistant-installs',
    pauseMs,
    annotations(name, pressedMs) {
      const node = nodeNamed(name)
      const release = node && releaseOutOfTurn(node, rollout())
      if (node === undefined || release === undefined) return undefined
      const admission = withRelease(node, release, pressedMs).metadata.annotations?.[agentReleaseAnnotation]
      return admission === undefined ? undefined : { [agentReleaseAnnotation]: admission }
    },
  })
}
