/**
 * Syncs one pod: observes it, decides what is next, and does it, until nothing is left to do (SyncPod in pkg/kubelet/kubelet.go).
 */
import type { Pod } from '../../../api/pod.ts'
import type { RuntimeContainer } from '../../runtime/runtime.ts'
import { readTerminationMessages } from '../containers/termination-message-reader.ts'
import { withFailed } from '../record/ended-with-sandbox.ts'
import { isRunning } from '../record/pod-containers.ts'
import { isOver, onObserved, type PodRecord, withoutImages } from '../record/pod-record.ts'
import { cutShort, isGone, nextAction, type PodAction } from './next-action.ts'
import { plannedSteps } from './planned-steps.ts'
import { carryOut } from './pod-actions.ts'
import { leftToLive, observeAddress, observeProbes, refreshVolumes } from './pod-reads.ts'
import { recordWaiting, reportStatus } from './pod-reports.ts'
import type { Sync } from './pod-workers.ts'
import { withShownErrors } from './shown-errors.ts'
import type { SyncPodNeeds } from './sync-needs.ts'

/** Rounds of observation and plan in one sync: more than any pod needs. */
const maxRounds = 12
/** A pod that does not settle is synced again after this time. */
const unsettledMs = 30_000

/** The sync of a pod worker. Skips pods that a source that was not read yet may desire. */
export function syncPod(needs: SyncPodNeeds): Sync {
  const { records, wanted } = needs
  return async (uid, signal) =>
    records.isComplete && wanted.isDecided(uid) ? await syncDecided(uid, needs, signal) : undefined
}

async function syncDecided(uid: string, needs: SyncPodNeeds, signal: AbortSignal): Promise<number | undefined> {
  const { records, log } = needs
  records.of(uid)
  records.update(uid, withoutImages)
  for (let round = 0; round < maxRounds && !signal.aborted; round++) {
    const observed = await observe(uid, needs)
    const action = await decide(observed, round === 0, needs)
    const settled = await carryOut({ uid, pod: observed.pod, action }, needs, signal)
    if (settled !== undefined) return settled.againInMs
  }
  if (!signal.aborted) log.warn('Pod does not settle', { podUID: uid, rounds: maxRounds })
  return unsettledMs
}

type Observed = {
  readonly uid: string
  /** undefined: nothing desires it any more. */
  readonly pod: Pod | undefined
  readonly listed: readonly RuntimeContainer[]
  /** What was being stopped before they were listed. */
  readonly stopping: PodRecord['stopping']
}

async function observe(uid: string, { runtime, logLinks, wanted, sources, records }: SyncPodNeeds): Promise<Observed> {
  const { stopping } = records.of(uid)
  const present = await runtime.listContainers(uid)
  await logLinks?.observe(uid, present)
  const pod = wanted.all.get(uid)
  return { uid, pod, listed: withShownErrors(pod, present, sources), stopping }
}

/** A stop has ended since: one that was listed as running would be stopped again. */
function isOutdated({ uid, listed, stopping }: Observed, { records }: Pick<SyncPodNeeds, 'records'>): boolean {
  const now = records.of(uid)
  return listed.some(
    (container) => isRunning(container) && stopping.has(container.id) && !now.stopping.has(container.id),
  )
}

/** Reads what the decision needs, and reports what it finds. */
async function decide(observed: Observed, isFirst: boolean, needs: SyncPodNeeds): Promise<PodAction> {
  const { uid, pod, listed } = observed
  const { records, clock } = needs
  if (isGone(pod, listed)) return { action: 'forget', wasDesired: pod !== undefined }
  const moment = { nowMs: clock.monotonicMs(), nowWallMs: clock.wallMs() }
  const record = records.update(uid, (before) => onObserved(before, pod, listed, moment)) ?? records.of(uid)
  observeAddress(uid, pod, record, listed, needs)
  const cut = cutShort(pod, record, listed)
  if (cut.length > 0) return { action: 'beginAgain', cut }

  const containers = withFailed(listed, record.endedWithSandbox)
  const runs = containers.some(isRunning)
  const unknownMs = await read({ ...observed, containers, record, refreshes: isFirst && runs }, needs)
  // A decision ended the pod during the reads, or was cancelled: the values above are outdated.
  if (records.of(uid).ended !== record.ended) return { action: 'observe' }

  const plan = await plannedSteps({ uid, pod, containers, runs }, needs)
  if (isOutdated(observed, needs)) return { action: 'observe' }
  if (pod !== undefined) {
    recordWaiting(uid, pod, plan, needs)
    if (unknownMs === 0) reportStatus(uid, pod, containers, plan, needs)
    // It has ended: the plan for that stops what still runs.
    if (plan.steps.length === 0 && records.of(uid).ended !== record.ended) return { action: 'observe' }
  }
  const leftMs = pod === undefined ? undefined : leftToLive(uid, pod, needs, runs)
  return nextAction({ pod, record, runs, plan, leftMs, unknownMs })
}

type Read = Observed & {
  readonly containers: readonly RuntimeContainer[]
  readonly record: PodRecord
  readonly refreshes: boolean
}

/** Gives the time until the results of its probes are known; 0: they are. */
async function read({ uid, pod, containers, record, refreshes }: Read, needs: SyncPodNeeds): Promise<number> {
  observeProbes(uid, pod, containers, needs)
  if (pod !== undefined) await readTerminationMessages(needs, pod, containers)
  const unknownMs = needs.prober.unknownForMs(uid)
  if (refreshes && pod !== undefined && !isOver(pod, record)) await refreshVolumes(uid, pod, needs)
  return unknownMs
}
