/** What in the kernel's log means that a part of it, or what waits for it, is stuck? */
import type { Clock } from '../../daemon/clock.ts'
import { type Finding, fine, wrong } from './finding.ts'
import type { KernelLine, KernelLog } from './kernel-log.ts'

export type KernelTrouble = {
  readonly reason: 'TaskHung' | 'ProcessorStuck' | 'NetworkDeviceStuck'
  readonly what: string
  /** The process that waits, where there is one. */
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

/** So long after its last line something that cannot be looked at counts as over: the kernel repeats itself sooner. */
const rememberedMs = 5 * 60_000

type Remembered = KernelTrouble & { readonly atMs: number }

export type KernelTroubleNeeds = {
  readonly kernel: Pick<KernelLog, 'subscribe' | 'readable'>
  /** Does this process wait for the kernel, uninterruptibly? */
  readonly isStuck: (pid: number) => boolean
  readonly clock: Clock
}

/** The look of a check. */
export function kernelTroubles({ kernel, isStuck, clock }: KernelTroubleNeeds): () => Finding | undefined {
  let remembered: readonly Remembered[] = []
  kernel.subscribe(({ text, ageMs }: KernelLine) => {
    const trouble = kernelTrouble(text)
    if (trouble === undefined) return
    const others = remembered.filter(({ reason, pid }) => reason !== trouble.reason || pid !== trouble.pid)
    remembered = [...others, { ...trouble, atMs: clock.monotonicMs() - ageMs }].slice(-mostRemembered)
  })
  return () => {
    const nowMs = clock.monotonicMs()
    // The kernel stops telling of hung tasks after ten lines; the task itself can still be looked at.
    remembered = remembered.filter(
      ({ atMs, pid }) => nowMs - atMs < rememberedMs || (pid !== undefined && isStuck(pid)),
    )
    const newest = remembered.at(-1)
    if (newest !== undefined) {
      const what = remembered.map((trouble) => trouble.what).join('; ')
      return wrong(
        newest.reason,
        `${what}: a disk, network disk or driver does not answer. See 'dmesg'; if it stays so, restart the machine`,
      )
    }
    return kernel.readable() ? fine('KernelHasNoDeadlock', 'The kernel tells of nothing that is stuck') : undefined
  }
}

const mostRemembered = 5
