/** One open page: its rights, and what waits to be sent to it. */
import type { ViewRights } from '../../api/dashboard/dashboard-messages.ts'
import type { Identity } from '../../api/identity.ts'
import type { Alarm } from '../../daemon/alarm.ts'

export interface FleetViewer {
  readonly rights: ViewRights
  /** Equal for viewers with equal rights. */
  readonly rightsKey: string
  /** It receives changes. */
  isLive: boolean
  /** It is to forget all cards, and to receive those that it may see. */
  needsReset: boolean
  readonly ended: boolean
  /** Resolves when it ended. */
  readonly aborted: Promise<void>
  /** Over the limit what waits is dropped, and all cards are sent again. */
  send(text: Buffer): void
  next(): Buffer | undefined
  /** Resolves when something waits, or it ended. */
  wait(): Promise<void>
  /** Asks for its identity again; without one it ends, with other rights it begins again. */
  check(rightsOf: (identity: Identity) => Promise<ViewRights>): Promise<void>
  end(): void
}

export type FleetViewerNeeds = {
  readonly identity: () => Promise<Identity>
  readonly rights: ViewRights
  readonly wake: Alarm
  readonly signal: AbortSignal
}

const mostWaitingBytes = 4 * 1024 * 1024
const longestWaitMs = 60_000

export function fleetViewer({ identity, rights: first, wake, signal }: FleetViewerNeeds): FleetViewer {
  const ending = new AbortController()
  const queue: Buffer[] = []
  let waiting = 0
  let rights = first
  let rightsKey = JSON.stringify(first)
  const end = () => {
    ending.abort()
    wake.ring()
  }
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  const clear = () => {
    queue.length = 0
    waiting = 0
  }
  const viewer: FleetViewer = {
    get rights() {
      return rights
    },
    get rightsKey() {
      return rightsKey
    },
    isLive: false,
    needsReset: true,
    get ended() {
      return ending.signal.aborted
    },
    aborted: new Promise((resolve) => {
      ending.signal.addEventListener('abort', () => resolve(), { once: true })
      if (ending.signal.aborted) resolve()
    }),
    send(text) {
      if (viewer.needsReset) return
      queue.push(text)
      waiting += text.length
      if (waiting > mostWaitingBytes) {
        clear()
        viewer.needsReset = true
      }
      wake.ring()
    },
    next() {
      const text = queue.shift()
      waiting -= text?.length ?? 0
      return text
    },
    wait: () => wake.sleep(longestWaitMs, ending.signal),
    async check(rightsOf) {
      try {
        const now = await rightsOf(await identity())
        const key = JSON.stringify(now)
        if (key === rightsKey) return
        rights = now
        rightsKey = key
        clear()
        viewer.needsReset = true
        wake.ring()
      } catch {
        end()
      }
    },
    end() {
      signal.removeEventListener('abort', end)
      end()
    },
  }
  return viewer
}
