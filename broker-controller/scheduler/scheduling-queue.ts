/** The scheduling queue: highest priority first, then the longest wait. Pods that did not fit wait for a change. */
import { longestBackoffMs } from '../../daemon/backoff.ts'
import { dueTimes } from '../../daemon/due-times.ts'
import { heap } from '../../daemon/heap.ts'
import type { Steps } from '../../daemon/watchdog/steps.ts'
import type { StoredPod } from '../store/store.ts'
import type { Plugin } from './filter.ts'

/** `active`: due now. `backoff`: after a wait. `unschedulable`: after a change. Pods of an attempt under way are not counted. */
export type QueueCounts = { readonly active: number; readonly backoff: number; readonly unschedulable: number }

export interface SchedulingQueue {
  readonly size: number
  counts(): QueueCounts
  has(key: string): boolean
  /** A pod new to us, or one that changed so that it may fit now. */
  add(key: string, pod: StoredPod): void
  /** The pod of an attempt under way changed: the next attempt is on it as it is now. */
  update(key: string, pod: StoredPod): void
  remove(key: string): void
  /** Takes the next pod. End the attempt with `failed` or `remove`. */
  next(nowMs: number): { readonly key: string; readonly pod: StoredPod } | undefined
  /** It fits nowhere, for these refused it: it waits for `wake`, at the most five minutes. */
  failed(key: string, refusedBy: ReadonlySet<Plugin>, nowMs: number): void
  /** The attempt failed for no fault of the pod's: again after its back-off. */
  retry(key: string, nowMs: number): void
  /** Something changed that may help the pods that `mayFit`: each is tried again as soon as its back-off is over. */
  wake(
    mayFit: (waiting: { readonly pod: StoredPod; readonly refusedBy: ReadonlySet<Plugin> }) => Steps<boolean>,
    nowMs: number,
  ): Steps<void>
  /** Whether `wake` could move any pod. */
  readonly isWaiting: boolean
  /** When a pod comes due that is not yet. */
  nextMs(): number | undefined
}

const firstBackoffMs = 1_000
const maxBackoffMs = 10_000
/** Pods that no change has moved are tried again after this time. */
const longestWaitMs = 5 * 60_000

const noPlugins: ReadonlySet<Plugin> = new Set()

type Entry = {
  readonly key: string
  readonly pod: StoredPod
  readonly attempts: number
  readonly order: number
  readonly state: 'active' | 'trying' | 'backoff' | 'unschedulable'
  readonly backoffUntilMs: number
  readonly refusedBy: ReadonlySet<Plugin>
}

export function schedulingQueue(): SchedulingQueue {
  const entries = new Map<string, Entry>()
  const active = heap<Entry>(isBefore)
  const due = dueTimes()
  const unschedulable = new Set<string>()
  let order = 0

  const put = (entry: Entry) => {
    entries.set(entry.key, entry)
    if (entry.state === 'unschedulable') unschedulable.add(entry.key)
    else unschedulable.delete(entry.key)
    if (entry.state !== 'active') return
    due.delete(entry.key)
    active.push(entry)
  }

  const activate = (key: string) => {
    const entry = entries.get(key)
    if (entry !== undefined && entry.state !== 'active') put({ ...entry, state: 'active' })
  }

  const wait = (key: string, nowMs: number, state: Entry['state'], refusedBy: ReadonlySet<Plugin>) => {
    const entry = entries.get(key)
    if (entry === undefined || (entry.state !== 'trying' && entry.state !== 'unschedulable')) return
    const attempts = entry.attempts + 1
    const backoffUntilMs = nowMs + longestBackoffMs(attempts - 1, { firstMs: firstBackoffMs, maxMs: maxBackoffMs })
    put({ ...entry, attempts, state, backoffUntilMs, refusedBy })
    due.set(key, state === 'backoff' ? backoffUntilMs : nowMs + longestWaitMs)
  }

  return {
    get size() {
      return entries.size
    },
    counts() {
      const counts = { active: 0, backoff: 0, unschedulable: 0 }
      for (const { state } of entries.values()) if (state !== 'trying') counts[state]++
      return counts
    },
    has: (key) => entries.has(key),
    add(key, pod) {
      const before = entries.get(key)
      put({
        key,
        pod,
        attempts: before?.attempts ?? 0,
        order: before?.order ?? order++,
        state: 'active',
        backoffUntilMs: 0,
        refusedBy: noPlugins,
      })
    },
    update(key, pod) {
      const entry = entries.get(key)
      if (entry !== undefined) put({ ...entry, pod })
    },
    remove(key) {
      entries.delete(key)
      unschedulable.delete(key)
      due.delete(key)
    },
    next(nowMs) {
      for (const key of due.take(nowMs)) activate(key)
      for (let entry = active.pop(); entry !== undefined; entry = active.pop()) {
        if (entries.get(entry.key) !== entry) continue
        put({ ...entry, state: 'trying' })
        return { key: entry.key, pod: entry.pod }
      }
      return undefined
    },
    failed: (key, refusedBy, nowMs) => wait(key, nowMs, 'unschedulable', refusedBy),
    retry: (key, nowMs) => wait(key, nowMs, 'backoff', noPlugins),
    get isWaiting() {
      return unschedulable.size > 0
    },
    *wake(mayFit, nowMs) {
      for (const key of [...unschedulable]) {
        const entry = entries.get(key)
        if (entry === undefined || !(yield* mayFit(entry))) continue
        if (entry.backoffUntilMs <= nowMs) activate(key)
        else {
          put({ ...entry, state: 'backoff' })
          due.set(key, entry.backoffUntilMs)
        }
      }
    },
    nextMs: () => due.nextMs(),
  }
}

/** Entries are replaced, never changed: one in the heap that is no longer the present one is passed over. */
function isBefore(a: Entry, b: Entry): boolean {
  const [left, right] = [a.pod.spec.priority ?? 0, b.pod.spec.priority ?? 0]
  return left > right || (left === right && a.order < b.order)
}
