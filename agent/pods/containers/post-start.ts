/** Runs the postStart hook of a container beside its entrypoint. */
import type { Container, Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { onPostStartEnded, onPostStarting } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { type HookNeeds, hookFailed, runHook } from './hooks.ts'

export type PostStartNeeds = HookNeeds & {
  readonly records: PodRecords
  readonly hostIP: () => string | undefined
  readonly clock: Clock
  readonly log: Log
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  /** The hook has ended: sync the pod again. */
  readonly again: (uid: string) => void
}

/** Kubernetes sets no limit. */
const longestHookMs = 600_000

/** Starts the hook of the container with this id, if it has one. Returns at once. */
export function startPostStart(needs: PostStartNeeds, pod: Pod, container: Container, id: string): void {
  const { records } = needs
  const uid = pod.metadata.uid ?? ''
  const hook = container.lifecycle?.postStart
  if (hook === undefined) return
  const podIP = pod.spec.hostNetwork ? needs.hostIP() : records.get(uid)?.podIP
  records.update(uid, (record) => onPostStarting(record, id))
  const { signal } = new AbortController() // never aborted; one signal for all hooks would collect their listeners
  void runHook(needs, { hook, container, id, podIP, timeoutMs: longestHookMs, signal }).then(({ result, message }) => {
    const failed = result !== 'success'
    records.update(uid, (record) => onPostStartEnded(record, id, failed))
    if (failed) hookFailed(needs, pod, container, 'PostStartHook', message)
    needs.again(uid)
  })
}
