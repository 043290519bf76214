/** A double of logind: the test sets the delay that it grants, and when it shuts down, cancels or closes the connection. */
import type {
  OtherLock,
  ScheduledShutdown,
  ShutdownInhibitor,
  ShutdownListener,
  ShutdownSession,
} from '../shutdown/inhibitor.ts'

export interface FakeInhibitor extends ShutdownInhibitor {
  delayMs: number
  /** The longest delay that can be requested. */
  mostDelayMs: number
  readonly others: OtherLock[]
  readonly locks: { held: number; taken: number }
  scheduled: ScheduledShutdown | undefined
  /** The action that it announces: `reboot`, `power-off`. */
  action: string | undefined
  hasBus: boolean
  /** No call is answered. */
  isAway: boolean
  prepare(isPreparing: boolean, action?: string): void
  /** The bus is another one. */
  hangUp(): void
  /** Drops all locks. */
  forget(): void
}

export function fakeInhibitor(): FakeInhibitor {
  let isPreparing = false
  let known = false
  let listener: ShutdownListener | undefined
  let hangUp: () => void = () => undefined
  const locks = { held: 0, taken: 0 }
  const answer = () => {
    if (fake.isAway) throw new Error('No answer')
  }
  const fake: FakeInhibitor = {
    delayMs: 5_000,
    mostDelayMs: Number.POSITIVE_INFINITY,
    others: [],
    locks,
    scheduled: undefined,
    action: undefined,
    hasBus: true,
    isAway: false,
    isAvailable: () => fake.hasBus,
    prepare(next, action) {
      isPreparing = next
      listener?.preparing(next, action)
    },
    hangUp: () => hangUp(),
    forget() {
      known = false
      listener?.changed()
    },
    async open(opened): Promise<ShutdownSession> {
      answer()
      listener = opened
      return {
        async isPreparing() {
          answer()
          return isPreparing
        },
        scheduled: async () => fake.scheduled,
        async action() {
          answer()
          return fake.action
        },
        async locks(own) {
          answer()
          return { isHeld: known && own !== undefined, others: fake.others }
        },
        async configureDelay(ms) {
          answer()
          fake.delayMs = Math.min(Math.max(fake.delayMs, ms ?? 0), fake.mostDelayMs)
          return {
            grantedMs: fake.delayMs,
            because: fake.delayMs < (ms ?? 0) ? '/etc/other.conf grants less' : undefined,
          }
        },
        async takeLock() {
          answer()
          locks.held++
          locks.taken++
          known = true
          return { how: 'descriptor', pid: process.pid, release: () => void locks.held-- }
        },
        ended: new Promise((resolve) => {
          hangUp = resolve
        }),
        close: () => undefined,
      }
    },
  }
  return fake
}
