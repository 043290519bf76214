/** logind as a test wants it: it grants what it is told to grant, and goes down, calls off and hangs up when it is told to. */
import type { OtherLock, ShutdownInhibitor, ShutdownListener, ShutdownSession } from '../shutdown/inhibitor.ts'

export interface FakeInhibitor extends ShutdownInhibitor {
  delayMs: number
  /** The longest delay that it may be asked for. */
  mostDelayMs: number
  readonly others: OtherLock[]
  readonly locks: { held: number }
  /** Nobody answers. */
  isAway: boolean
  prepare(isPreparing: boolean, action?: string): void
  /** The bus is another one. */
  hangUp(): void
  /** Forgets all locks. */
  forget(): void
}

export function fakeInhibitor(): FakeInhibitor {
  let isPreparing = false
  let known = false
  let listener: ShutdownListener | undefined
  let hangUp: () => void = () => undefined
  const locks = { held: 0 }
  const answer = () => {
    if (fake.isAway) throw new Error('No answer')
  }
  const fake: FakeInhibitor = {
    delayMs: 5_000,
    mostDelayMs: Number.POSITIVE_INFINITY,
    others: [],
    locks,
    isAway: false,
    isHere: () => true,
    prepare(next, action) {
      isPreparing = next
      listener?.preparing(next, action)
    },
    hangUp: () => hangUp(),
    forget() {
      known = false
      listener?.changed()
    },
    async open(heard): Promise<ShutdownSession> {
      answer()
      listener = heard
      return {
        async delayMs() {
          answer()
          return fake.delayMs
        },
        async isPreparing() {
          answer()
          return isPreparing
        },
        scheduled: async () => undefined,
        async locks() {
          answer()
          return { ours: known && locks.held > 0, others: fake.others }
        },
        async askDelay(ms) {
          answer()
          fake.delayMs = Math.min(Math.max(fake.delayMs, ms ?? 0), fake.mostDelayMs)
          return { grantedMs: fake.delayMs, by: fake.delayMs < (ms ?? 0) ? '/etc/other.conf' : undefined }
        },
        async takeLock() {
          answer()
          locks.held++
          known = true
          return { how: 'descriptor', release: () => void locks.held-- }
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
