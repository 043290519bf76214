/** Which requests get a line in the audit log. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../daemon/clock.ts'
import { tokenBuckets } from '../../../daemon/limits/token-bucket.ts'
import type { MetricsRegistry } from '../../../daemon/metrics-registry.ts'
import { addressKey } from '../authentication/peer-address.ts'
import {
  type AuditedRoute,
  type AuditFacts,
  auditLine,
  isAudited,
  isLeftOut,
  type RequestSender,
} from './audit-event.ts'
import type { AuditFile } from './audit-file.ts'

export type AuditedRequest = Omit<AuditFacts, 'stage'>

export interface AuditLog {
  /** The ID of a request of this route, which its answer carries; undefined: its requests are not audited. */
  idFor(route: AuditedRoute): string | undefined
  /** Writes down that a request was answered, or, of a connection, that it began. */
  record(request: AuditedRequest & { readonly isBeginning?: boolean }): void
}

export type AuditLogNeeds = {
  readonly file: Pick<AuditFile, 'append'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly registry: MetricsRegistry
}

/**
 * Lines about requests of unknown senders, for each address and for all: more of them would let a stranger rotate away the lines
 * that matter.
 */
const strangers = { perSecond: 1, burst: 60 }
const allStrangers = { perSecond: 5, burst: 300 }

export function auditLog({ file, clock, registry }: AuditLogNeeds): AuditLog {
  const perAddress = tokenBuckets(strangers, clock, 1000)
  const inTotal = tokenBuckets(allStrangers, clock, 1)
  const omitted = registry.counter({
    name: 'bramble_audit_refusals_omitted_total',
    help: 'Requests of unauthenticated clients that were not allowed and are not in the audit log, because there were too many.',
  })
  return {
    idFor: (route) => (isAudited(route) ? randomUUID() : undefined),
    record({ route, isBeginning = false, ...facts }) {
      if (isLeftOut(route, facts.code)) return
      if (facts.sender.decision !== 'allow' && isStranger(facts.sender)) {
        if (perAddress.take(addressKey(facts.address)) > 0 || inTotal.take('') > 0) {
          omitted.inc()
          return
        }
      }
      const stage = isBeginning ? 'ResponseStarted' : 'ResponseComplete'
      file.append(auditLine({ ...facts, route, stage }))
    },
  }
}

function isStranger({ identity }: RequestSender): boolean {
  return identity === undefined || identity.groups.includes('system:unauthenticated')
}
