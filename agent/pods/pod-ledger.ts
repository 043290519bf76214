/** What is known of each pod between two visits, and what the control plane was told of it. */
import { comesBack, withoutShutdown } from '../../api/node-shutdown.ts'
import type { Pod, PodStatus } from '../../api/pod.ts'
import type { Log } from '../../daemon/log.ts'
import type { ControlPlane } from '../node/control-plane.ts'
import { pathOf } from './desired-pods.ts'
import { isFinal } from './pod-phase.ts'
import type { PodWorker } from './pod-worker.ts'

export type Known = {
  readonly worker: PodWorker
  /** As last wanted. */
  readonly pod?: Pod
  /** Namespace and name of what was found, where nobody knows the pod. */
  readonly path?: string
  /** What the last look found: see `fingerprint`. */
  readonly seen: string
  readonly status?: PodStatus
  /** It was let in, or was here before. */
  readonly admitted: boolean
  /** Set once the pod is over. */
  readonly ended?: PodStatus
  /** It is over, nothing of it runs, and its volumes are gone. */
  readonly cleared?: true
  /** Monotonic: since when its deadline runs. */
  readonly activeSinceMs?: number
  /** That was said while nobody knew the date. */
  readonly dateUnknown?: boolean
  /** When it is over by a decision that gives it another time than its own. */
  readonly graceSeconds?: number
  /** The machine went down, and stopped it at this time (RFC 3339). */
  readonly interruptedAt?: string
}

export interface PodLedger {
  get(uid: string): Known | undefined
  /** Begins a page when there is none. */
  of(uid: string): Known
  change(uid: string, changes: Partial<Omit<Known, 'worker'>>): void
  readonly entries: ReadonlyMap<string, Known>
  /** Namespace and name of every pod there is something of, by UID. */
  paths(): ReadonlyMap<string, string>
  /** Tells the control plane, if it is new. */
  report(uid: string, pod: Pod, status: PodStatus): void
  /** Nothing of the pod is left. While it is `named` as wanted still, it is told once until `forgetGone`. */
  gone(uid: string, named: boolean): void
  /** Whoever still names these pods, or any, has not heard that they are gone: tell it again. */
  forgetGone(uids?: readonly string[]): void
  /** The machine that `ended` this pod by going down is up: the pod is not over, and goes on from there. */
  goesOn(uid: string, ended: PodStatus): void
  /** The pods that are over. */
  endings(): { readonly [uid: string]: PodStatus }
}

export type LedgerNeeds = {
  readonly controlPlane: Pick<ControlPlane, 'reportPod' | 'reportPodGone'>
  readonly newWorker: () => PodWorker
  readonly log: Log
}

export function podLedger({ controlPlane, newWorker, log }: LedgerNeeds): PodLedger {
  const entries = new Map<string, Known>()
  const reported = new Map<string, string>()
  const goneTold = new Set<string>()

  const of = (uid: string): Known => {
    const found = entries.get(uid)
    if (found !== undefined) return found
    const begun: Known = { worker: newWorker(), seen: '', admitted: false }
    entries.set(uid, begun)
    return begun
  }

  return {
    get: (uid) => entries.get(uid),
    of,
    change(uid, changes) {
      entries.set(uid, { ...of(uid), ...changes })
    },
    entries,
    paths: () =>
      new Map([...entries].map(([uid, { pod, path = '' }]) => [uid, pod === undefined ? path : pathOf(pod)])),
    report(uid, pod, status) {
      const { name = '', namespace = 'default', resourceVersion = '' } = pod.metadata
      const message = { namespace, name, uid, observedResourceVersion: resourceVersion, status }
      const text = JSON.stringify(message)
      if (reported.get(uid) === text) return
      const { phase, reason } = status
      const before = of(uid)
      if (before.status?.phase !== phase)
        log.info('Pod changed', { pod: pathOf(pod), phase, ...(reason ? { reason } : {}) })
      before.worker.reported(status)
      reported.set(uid, text)
      entries.set(uid, { ...before, status })
      controlPlane.reportPod(message)
    },
    gone(uid, named) {
      const { seen = '', pod } = entries.get(uid) ?? {}
      const news = reported.delete(uid) || seen !== ''
      entries.delete(uid)
      if (!news && (!named || goneTold.has(uid))) return
      if (named) goneTold.add(uid)
      controlPlane.reportPodGone(uid)
      if (news && pod !== undefined) log.info('Pod gone', { pod: pathOf(pod) })
    },
    forgetGone(uids) {
      if (uids === undefined) goneTold.clear()
      else for (const uid of uids) goneTold.delete(uid)
    },
    goesOn(uid, ended) {
      const before = of(uid)
      before.worker.stays()
      const interruptedAt = ended.conditions?.find(({ type }) => type === 'DisruptionTarget')?.lastTransitionTime
      entries.set(uid, {
        worker: before.worker,
        seen: before.seen,
        // Who was refused has never been let in.
        admitted: before.admitted && interruptedAt !== undefined,
        status: withoutShutdown(ended),
        ...(before.pod === undefined ? {} : { pod: before.pod }),
        ...(before.path === undefined ? {} : { path: before.path }),
        ...(interruptedAt === undefined ? {} : { interruptedAt }),
      })
    },
    endings: () =>
      Object.fromEntries([...entries].flatMap(([uid, { ended }]) => (ended === undefined ? [] : [[uid, ended]]))),
  }
}

export function isLeaving({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined
}

/** By a decision here, or as the control plane knows already. */
export function isOver(pod: Pod, { ended }: Known): boolean {
  return ended !== undefined || isEnd(pod)
}

/** Does the control plane call it over? What a shutdown ended is so only while the machine goes down, as we remember. */
export function isEnd(pod: Pod, status: PodStatus | undefined = pod.status): boolean {
  return isFinal(status?.phase) && !comesBack(pod, status)
}
