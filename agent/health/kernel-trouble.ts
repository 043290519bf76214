/** Lines of the kernel's log that mean that a part of it, or a task that waits for it, is stuck. */
import type { Clock } from '../../daemon/clock.ts'
import { type ConditionCheck, fine, type HealthFinding, minutes, seconds, wrong } from './condition-check.ts'
import type { KernelLine, KernelLog } from './kernel-log.ts'

export type KernelTrouble = {
  readonly reason: 'TaskHung' | 'ProcessorStuck' | 'NetworkDeviceStuck'
  readonly what: string
  /** The process that waits, if there is one. */
  readonly pid: number | undefined
}

export function kernelTrouble(text: string): KernelTrouble | undefined {
  const hung = /^(?:INFO: )?task (\S+):(\d+) blocked for more than (\d+) seconds/.exec(text)
  if (hung !== null) {
    const what = `${hung[1]} (process ${hung[2]}) has waited for the kernel for more than ${hung[3]} s`
    return { reason: 'TaskHung', what, pid: Number(hung[2]) }
  }
  const stuck = /(?:soft lockup|hard LOCKUP|self-detected stall on CPU|detected stalls on CPUs)/.exec(text)
  if (stuck !== null) return { reason: 'ProcessorStuck', what: `a processor is stuck (${stuck[0]})`, pid: undefined }
  const device = /unregister_netdevice: waiting for (\S+) to become free/.exec(text)
  if (device === null) return undefined
  return { reason: 'NetworkDeviceStuck', what: `network device ${device[1]} cannot be removed`, pid: undefined }
}

/** A trouble without a process counts as over after this time: the kernel repeats the line sooner. */
const rememberedMs = 5 * 60_000

type Remembered = KernelTrouble & { readonly atMs: number }

export type KernelTroubleNeeds = {
  readonly kernel: Pick<KernelLog, 'subscribe' | 'readable'>
  /** The process waits for the kernel, uninterruptibly. */
  readonly isStuck: (pid: number) => boolean
  readonly clock: Clock
}

export type KernelTroubleReading = {
  /** The newest last. */
  readonly troubles: readonly KernelTrouble[]
  /** False: the agent has no permission to read the kernel's log. */
  readonly isReadable: boolean
}

export function kernelDeadlock({ troubles, isReadable }: KernelTroubleReading): HealthFinding | undefined {
  const newest = troubles.at(-1)
  if (newest !== undefined) {
    return wrong(
      newest.reason,
      `${troubles.map(({ what }) => what).join('; ')}: a disk, network disk or driver does not answer`,
      "See 'dmesg'; if it stays so, restart the machine",
    )
  }
  return isReadable ? fine('KernelHasNoDeadlock', 'The kernel reports nothing that is stuck') : undefined
}

export const kernelDeadlockCheck: ConditionCheck<{ kernelTroubles(): KernelTroubleReading }> = {
  type: 'KernelDeadlock',
  name: 'kernel',
  unknown: "The kernel's log cannot be read",
  periodMs: 5 * seconds,
  holdMs: minutes,
  look: (source) => kernelDeadlock(source.kernelTroubles()),
}

/** Keeps the troubles from the kernel's log. Returns those that are not over. */
export function kernelTroubles({ kernel, isStuck, clock }: KernelTroubleNeeds): () => KernelTroubleReading {
  let remembered: readonly Remembered[] = []
  kernel.subscribe(({ text, ageMs }: KernelLine) => {
    const trouble = kernelTrouble(text)
    if (trouble === undefined) return
    const others = remembered.filter(({ reason, pid }) => reason !== trouble.reason || pid !== trouble.pid)
    remembered = [...others, { ...trouble, atMs: clock.monotonicMs() - ageMs }].slice(-mostRemembered)
  })
  return () => {
    const nowMs = clock.monotonicMs()
    // The kernel stops reporting hung tasks after ten lines; the task itself can still be inspected.
    remembered = remembered.filter(
      ({ atMs, pid }) => nowMs - atMs < rememberedMs || (pid !== undefined && isStuck(pid)),
    )
    return { troubles: remembered, isReadable: kernel.readable() }
  }
}

const mostRemembered = 5
