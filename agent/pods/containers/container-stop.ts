/** Stops a container: its preStop hook, then the signal, within one grace period. Starts the stop and returns. */
import type { Pod } from '../../../api/pod.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { Log } from '../../../daemon/log.ts'
import type { ContainerRuntime } from '../../runtime/runtime.ts'
import type { StepOf } from '../plan/pod-steps.ts'
import { leastGraceSeconds } from '../record/pod-containers.ts'
import type { PodEvent } from '../record/pod-events.ts'
import { onPreStop, onStopEnded, onStopping } from '../record/pod-record.ts'
import type { PodRecords } from '../record/pod-records.ts'
import { containerNamed, type HookNeeds, hookFailed, runHook } from './hooks.ts'

export type ContainerStopNeeds = HookNeeds & {
  readonly records: PodRecords
  readonly runtime: Pick<ContainerRuntime, 'stopContainer' | 'exec'>
  readonly hostIP: () => string | undefined
  readonly clock: Clock
  readonly log: Log
  readonly recordEvent: (pod: Pod, event: PodEvent) => void
  /** The stop has ended or failed: sync the pod again, at once or after this long. */
  readonly again: (uid: string, afterMs?: number) => void
}

const tryAgainMs = 1_000

export interface ContainerStop {
  stop(uid: string, pod: Pod | undefined, step: StepOf<'stop'>): void
  /** Its hook begins before its turn to stop, which waits for the end of the hook. */
  preStop(uid: string, pod: Pod | undefined, step: StepOf<'preStop'>): void
}

type HookRun = { readonly cancel: () => void; readonly done: Promise<void>; readonly isEarly: boolean }

export function containerStop(needs: ContainerStopNeeds): ContainerStop {
  const { records, runtime, clock, log } = needs
  /** By container id: preStop hooks under way. */
  const running = new Map<string, HookRun>()

  const preStopOf = (uid: string, pod: Pod | undefined, { target, graceSeconds }: StepOf<'stop' | 'preStop'>) => {
    const container = pod && containerNamed(pod, target.identity.containerName)
    const hook = container?.lifecycle?.preStop
    const ran = records.get(uid)?.preStops.has(target.id) ?? false
    if (pod === undefined || container === undefined || hook === undefined) return undefined
    return ran || graceSeconds === 0 ? undefined : { pod, container, hook }
  }

  /** Resolves when the hook has ended, also when it was cancelled; undefined: the container has none, or it ran. */
  const begin = (uid: string, pod: Pod | undefined, step: StepOf<'stop' | 'preStop'>, isEarly: boolean) => {
    const { target, graceSeconds } = step
    const preStop = preStopOf(uid, pod, step)
    if (preStop === undefined) return undefined
    const { container, hook } = preStop
    records.update(uid, (record) => onPreStop(record, target.id))
    const hookRun = new AbortController()
    const { signal } = hookRun
    const podIP = preStop.pod.spec.hostNetwork ? needs.hostIP() : records.get(uid)?.podIP
    const call = { hook, container, id: target.id, podIP, timeoutMs: graceSeconds * 1000, signal }
    const done = runHook(needs, call).then(({ result, message }) => {
      if (running.get(target.id)?.done === done) running.delete(target.id)
      if (!signal.aborted && result !== 'success') hookFailed(needs, preStop.pod, container, 'PreStopHook', message)
    })
    running.set(target.id, { cancel: () => hookRun.abort(), done, isEarly })
    return { done, signal }
  }

  const leftSeconds = (untilMs: number) =>
    Math.max(leastGraceSeconds, Math.ceil((untilMs - clock.monotonicMs()) / 1000))

  const stop = async (uid: string, pod: Pod | undefined, step: StepOf<'stop'>, untilMs: number) => {
    const { target, graceSeconds } = step
    const underWay = running.get(target.id)
    if (underWay?.isEarly) {
      const waiting = new AbortController()
      await Promise.race([underWay.done, clock.sleep(graceSeconds * 1000, waiting.signal)])
      waiting.abort()
      if (records.get(uid)?.stopping.get(target.id) !== untilMs) return
      underWay.cancel()
      return await runtime.stopContainer(target.id, leftSeconds(untilMs))
    }
    underWay?.cancel()
    const hook = begin(uid, pod, step, false)
    if (hook === undefined) return await runtime.stopContainer(target.id, graceSeconds)
    await hook.done
    if (!hook.signal.aborted) await runtime.stopContainer(target.id, leftSeconds(untilMs))
  }

  return {
    preStop: (uid, pod, step) => void begin(uid, pod, step, true),
    stop(uid, pod, step) {
      const { target, graceSeconds, why } = step
      const { containerName } = target.identity
      const untilMs = clock.monotonicMs() + graceSeconds * 1000
      records.update(uid, (record) => onStopping(record, step, untilMs))
      if (pod !== undefined && why !== '') {
        needs.recordEvent(pod, { type: 'Normal', reason: 'Killing', message: why, containerName })
      }
      if (containerName !== '') log.info('Container stopping', { podUID: uid, container: containerName, graceSeconds })
      const ended = (afterMs?: number) => {
        records.update(uid, (record) => onStopEnded(record, target.id, untilMs))
        needs.again(uid, afterMs)
      }
      stop(uid, pod, step, untilMs).then(
        () => ended(),
        (error) => {
          log.warn('Container not stopped', { podUID: uid, container: containerName, error })
          ended(tryAgainMs)
        },
      )
    },
  }
}
