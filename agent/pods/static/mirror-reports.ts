/**
 * Reports static pods under the UID of their mirror pods; keeps the reports of a pod that has none yet (TranslatePodUID
 * in pkg/kubelet/pod/pod_manager.go).
 */
import type { Event } from '../../../api/event.ts'
import { mirroredHash } from '../../../api/pod/static-pod.ts'
import type { Pod } from '../../../api/pod.ts'
import type { PodMessage } from '../../../api/topics.ts'
import type { ControlPlane } from '../../node/connection/control-plane.ts'

type Reports = Pick<ControlPlane, 'reportPod' | 'reportPodGone' | 'reportEvent'>

export interface MirrorReporter extends Reports {
  /** The UIDs of all static pods, including those of which only containers or volumes are left. */
  setStatic(uids: ReadonlySet<string>): void
  /** All existing mirror pods. */
  setMirrors(pods: readonly Pod[]): void
}

/** For each pod without a mirror. */
const mostEvents = 20

export function mirrorReporter(controlPlane: Reports): MirrorReporter {
  /** By UID of the static pod: its last report, and Events that wait for its mirror. */
  const own = new Map<string, { readonly message?: PodMessage; readonly events: readonly Event[] }>()
  let mirrors: ReadonlyMap<string, Pod['metadata']> = new Map()

  const reportMirror = (message: PodMessage) => {
    const { uid, resourceVersion = '' } = mirrors.get(message.uid) ?? {}
    if (uid !== undefined) controlPlane.reportPod({ ...message, uid, observedResourceVersion: resourceVersion })
  }

  /** What waited for the mirror. */
  const reportWaiting = (uid: string) => {
    const last = own.get(uid)
    if (last === undefined) return
    for (const event of last.events) controlPlane.reportEvent(event)
    own.set(uid, { ...last, events: [] })
    if (last.message !== undefined) reportMirror(last.message)
  }

  return {
    setStatic(uids) {
      for (const uid of own.keys()) if (!uids.has(uid)) own.delete(uid)
      for (const uid of uids) if (!own.has(uid)) own.set(uid, { events: [] })
    },
    reportPod(message) {
      const last = own.get(message.uid)
      if (last === undefined) return controlPlane.reportPod(message)
      own.set(message.uid, { ...last, message })
      reportMirror(message)
    },
    reportPodGone(uid) {
      if (!own.delete(uid)) return controlPlane.reportPodGone(uid)
      const mirror = mirrors.get(uid)?.uid
      if (mirror !== undefined) controlPlane.reportPodGone(mirror)
    },
    reportEvent(event) {
      const uid = event.involvedObject.uid ?? ''
      const last = own.get(uid)
      // The controller rejects an Event of an unknown pod, so it waits for the mirror.
      if (last === undefined || mirrors.has(uid)) return controlPlane.reportEvent(event)
      own.set(uid, { ...last, events: [...last.events, event].slice(-mostEvents) })
    },
    setMirrors(pods) {
      const before = mirrors
      mirrors = new Map(pods.flatMap((pod) => [[mirroredHash(pod) ?? '', pod.metadata] as const]))
      const uids = new Set([...mirrors.values()].map(({ uid }) => uid))
      for (const { uid } of before.values()) {
        if (uid !== undefined && !uids.has(uid)) controlPlane.reportPodGone(uid)
      }
      for (const [hash, { uid }] of mirrors) if (before.get(hash)?.uid !== uid) reportWaiting(hash)
    },
  }
}
