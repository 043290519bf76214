/** The controllers of workloads, with the index of pods that they share. */
import { localTimeZone, type TimeZone } from '../../../api/batch/time-zone.ts'
import type { Loop } from '../../../daemon/run.ts'
import { cronJobController } from './cron-jobs/cron-job-controller.ts'
import { daemonSetController } from './daemons/daemon-controller.ts'
import { deploymentController } from './deployments/deployment-controller.ts'
import { jobController } from './jobs/job-controller.ts'
import { ttlAfterFinishedController } from './jobs/ttl-after-finished.ts'
import { ownedObjects } from './owned-objects.ts'
import type { PodControlNeeds } from './pod-control.ts'
import { replicaSetController, replicationControllerController } from './replicas/replica-controller.ts'
import { statefulSetControllers } from './stateful/stateful-controller.ts'
import type { WorkloadMetrics } from './workload-metrics.ts'

export type WorkloadNeeds = PodControlNeeds & { readonly workloadMetrics: WorkloadMetrics }

/** `localZone`: of the schedules of CronJobs that name no time zone. */
export function workloadControllers(needs: WorkloadNeeds, localZone: TimeZone = localTimeZone()): readonly Loop[] {
  const pods = ownedObjects(needs, 'pods')
  const replicaSets = ownedObjects(needs, 'replicasets')
  const revisions = ownedObjects(needs, 'controllerrevisions')
  const jobs = ownedObjects(needs, 'jobs')
  return [
    { name: 'owned-pods', run: pods.run },
    { name: 'owned-replicasets', run: replicaSets.run },
    replicaSetController(needs, pods, replicaSets),
    replicationControllerController(needs, pods),
    { name: 'owned-revisions', run: revisions.run },
    daemonSetController({ ...needs, revisions }, pods),
    ...statefulSetControllers({ ...needs, revisions }, pods),
    { name: 'owned-jobs', run: jobs.run },
    jobController(needs, pods),
    cronJobController(needs, jobs, localZone),
    ttlAfterFinishedController(needs, jobs),
    deploymentController(needs, pods, replicaSets),
  ]
}
