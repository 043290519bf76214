/** The controllers of workloads, with the index of pods that they share. */
import type { Loop } from '../../../daemon/run.ts'
import { daemonSetController } from './daemons/daemon-controller.ts'
import { ownedObjects } from './owned-objects.ts'
import type { PodControlNeeds } from './pod-control.ts'
import { replicaSetController, replicationControllerController } from './replicas/replica-controller.ts'

export type WorkloadNeeds = PodControlNeeds

export function workloadControllers(needs: WorkloadNeeds): readonly Loop[] {
  const pods = ownedObjects(needs, 'pods')
  const replicaSets = ownedObjects(needs, 'replicasets')
  const revisions = ownedObjects(needs, 'controllerrevisions')
  return [
    { name: 'owned-pods', run: pods.run },
    { name: 'owned-replicasets', run: replicaSets.run },
    replicaSetController(needs, pods, replicaSets),
    replicationControllerController(needs, pods),
    { name: 'owned-revisions', run: revisions.run },
    daemonSetController({ ...needs, revisions }, pods),
  ]
}
