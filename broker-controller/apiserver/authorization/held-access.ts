/**
 * Answers that last, such as watches and shells: whether their client is still who it was, and still has the right, is asked again
 * after each change that may matter. Kubernetes asks once.
 */
import { setImmediate } from 'node:timers/promises'
import { type ApiError, isApiError } from '../../../api/api-error.ts'
import type { Clock } from '../../../daemon/clock.ts'
import type { LimitedLog } from '../../../daemon/log-limit.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import type { Store } from '../../store/store.ts'
import type { Authorizer } from '../handlers/authorizer.ts'

/** A question whose answer was yes when the answer began. */
export type AccessCheck = {
  /** Equal questions have equal keys: they are asked once. */
  readonly key: string
  /** What changes before the answer to it does: any object, as a service account; a role or a binding; the time alone. */
  readonly dependsOn: 'objects' | 'roles' | 'time'
  /** Wall time from which on it is asked every time: the credentials end then. */
  readonly untilMs?: number
  /** Rejects with Unauthorized or Forbidden: no. Another error does not decide. */
  readonly ask: () => Promise<unknown>
}

export interface HeldAccess {
  /** `lost` aborts when one of the checks fails. */
  hold(checks: readonly AccessCheck[]): HeldAnswer
  /** Asks every few seconds, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>
}

export interface HeldAnswer {
  readonly lost: AbortSignal
  release(): void
}

export type HeldAccessNeeds = {
  readonly store: Pick<Store, 'version'>
  readonly access: Pick<Authorizer, 'revision'>
  readonly clock: Pick<Clock, 'sleep' | 'wallMs'>
  readonly registry: MetricsRegistry
  readonly log: LimitedLog
}

export const checkAccessMs = 5_000

type Asked = { check: AccessCheck; isNew: boolean; readonly holders: Set<AbortController> }
type Changed = { readonly objects: boolean; readonly roles: boolean }

/** A new answer is asked for once: something may have changed while it was prepared. */
export function isDue({ check, isNew }: Pick<Asked, 'check' | 'isNew'>, changed: Changed, nowMs: number): boolean {
  const { dependsOn, untilMs = Number.POSITIVE_INFINITY } = check
  return isNew || nowMs >= untilMs || (dependsOn !== 'time' && changed[dependsOn])
}

/** Registers its metric: once for a registry. Answers at rest cost nothing while the store does not change. */
export function heldAccess({ store, access, clock, registry, log }: HeldAccessNeeds): HeldAccess {
  const revoked = registry.counter({
    name: 'bramble_api_revoked_streams_total',
    help: 'Watches and other streams that were ended because their client lost its identity or its right.',
    labelNames: [],
  })
  const asked = new Map<string, Asked>()
  let [version, revision] = ['', 0]

  const changedSince = async (): Promise<Changed> => {
    const [nowVersion, nowRevision] = [await store.version().catch(() => version), access.revision()]
    const changed = { objects: nowVersion !== version, roles: nowRevision !== revision }
    ;[version, revision] = [nowVersion, nowRevision]
    return changed
  }

  const end = ({ holders }: Asked, error: ApiError) => {
    for (const holder of [...holders]) {
      if (holder.signal.aborted) continue
      revoked.inc()
      log.info('revoked', 'Stream ended: its client no longer has the right', { because: error.message })
      holder.abort(lostReason)
    }
  }

  const askAll = async (signal: AbortSignal) => {
    const changed = await changedSince()
    for (const one of [...asked.values()]) {
      if (!isDue(one, changed, clock.wallMs())) continue
      if (signal.aborted) return
      one.isNew = false
      await one.check.ask().catch((error: unknown) => {
        if (isApiError(error, 'Unauthorized') || isApiError(error, 'Forbidden')) end(one, error)
        // It could not be found out, and nothing may change again before it can.
        else one.isNew = true
      })
      await setImmediate()
    }
  }

  return {
    hold(checks) {
      const holder = new AbortController()
      for (const check of checks) {
        const holders = asked.get(check.key)?.holders ?? new Set()
        asked.set(check.key, { check, isNew: true, holders: holders.add(holder) })
      }
      return {
        lost: holder.signal,
        release() {
          for (const { key } of checks) {
            const holders = asked.get(key)?.holders
            if (holders?.delete(holder) && holders.size === 0) asked.delete(key)
          }
        },
      }
    },
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(checkAccessMs, signal)
        if (!signal.aborted && asked.size > 0) await askAll(signal)
      }
    },
  }
}

/** Without a reason each abort would make an exception with its stack. */
const lostReason = 'lost'
