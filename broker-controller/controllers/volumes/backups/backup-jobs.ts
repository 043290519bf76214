/** Work for volumes beside the loop that decides: copies of data and commands in pods. In memory: it ends with the process. */
import { messageOf } from '../../../../daemon/errors.ts'

export type BackupJob<T> =
  | { readonly state: 'running' }
  | { readonly state: 'done'; readonly result: T }
  | { readonly state: 'failed'; readonly why: string; readonly count: number; readonly atMs: number }

export interface BackupJobs<T> {
  /** undefined: it was not begun. */
  of(volume: string, name: string): BackupJob<T> | undefined
  /** Begins it unless it runs or is done. */
  ensure(volume: string, name: string, work: (signal: AbortSignal) => Promise<T>): void
  /** All of the volume. */
  stop(volume: string): Promise<void>
  stopAll(): Promise<void>
  readonly running: number
}

type Kept<T> = { job: BackupJob<T>; readonly stop: AbortController; done: Promise<void> }

/** `visit`: the volume is looked at again. */
export function backupJobs<T>(
  { clock }: { readonly clock: { monotonicMs(): number } },
  visit: (volume: string) => void,
): BackupJobs<T> {
  const jobs = new Map<string, Map<string, Kept<T>>>()
  let running = 0
  const stop = async (volume: string) => {
    const own = [...(jobs.get(volume)?.values() ?? [])]
    jobs.delete(volume)
    for (const one of own) one.stop.abort('stopped')
    await Promise.all(own.map(({ done }) => done))
  }
  return {
    of: (volume, name) => jobs.get(volume)?.get(name)?.job,
    ensure(volume, name, work) {
      const own = jobs.get(volume) ?? new Map<string, Kept<T>>()
      jobs.set(volume, own)
      const before = own.get(name)?.job
      if (before?.state === 'running' || before?.state === 'done') return
      const controller = new AbortController()
      const kept: Kept<T> = { job: { state: 'running' }, stop: controller, done: Promise.resolve() }
      own.set(name, kept)
      running += 1
      kept.done = work(controller.signal)
        .then(
          (result) => {
            kept.job = { state: 'done', result }
          },
          (error: unknown) => {
            const count = (before?.count ?? 0) + 1
            kept.job = { state: 'failed', why: messageOf(error), count, atMs: clock.monotonicMs() }
          },
        )
        .finally(() => {
          running -= 1
          if (!controller.signal.aborted) visit(volume)
        })
    },
    stop,
    async stopAll() {
      await Promise.all([...jobs.keys()].map(stop))
    },
    get running() {
      return running
    },
  }
}
