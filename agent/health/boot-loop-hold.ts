/** The hold of a pod after a boot loop: its duration, its release, and its messages. */
import type { Pod } from '../../api/pod.ts'
import { guiltyAfter } from './boot-loop.ts'

/** How long a pod is held back, counted in the time of one boot. Then it is started again. */
export const heldMs = 3600_000

/** `false` on a pod exempts it from being held back. */
export const holdAnnotation = 'bramble.dev/boot-loop-hold'

export function isExempt({ metadata }: Pod): boolean {
  return metadata.annotations?.[holdAnnotation] === 'false'
}

/** `pod`: `namespace/name`, or its UID where the name is unknown. `untilMs`: on the wall clock. */
export function heldMessage(pod: string, untilMs: number): string {
  return `The machine went down ${guiltyAfter} times in a row soon after this pod's start, and not while the pod waited: it is held back so that other pods can run, until the machine has been up for an hour (${timeOf(untilMs)}). To start it now: ${releaseCommand(pod)}. A pod that is deleted and created again is not held back`
}

export function trialMessage(times: number, waitMs: number): string {
  return `The machine went down ${times} times in a row soon after its start, without a shutdown: this pod waits ${waitMs / 1000} s to see whether it does so without it`
}

export function releaseCommand(pod: string): string {
  const [namespace, name = '<pod>'] = pod.includes('/') ? pod.split('/') : ['<namespace>']
  return `'kubectl annotate pod -n ${namespace} ${name} ${holdAnnotation}=false'`
}

/** `11:24 UTC`, rounded up to the minute. */
function timeOf(ms: number): string {
  const minuteMs = 60_000
  return `${new Date(Math.ceil(ms / minuteMs) * minuteMs).toISOString().slice(11, 16)} UTC`
}
