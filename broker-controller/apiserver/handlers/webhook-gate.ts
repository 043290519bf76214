/** Where a write meets the admission webhooks that its rules choose. */
import type { Identity } from '../../../api/identity.ts'
import type { AnyObject } from '../../../api/meta.ts'
import type { ResourceRequest, ResourceRoute } from './strategy.ts'

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

/** A write as webhooks see it. */
export type ReviewedWrite = {
  readonly operation: Operation
  readonly route: ResourceRoute
  readonly identity: Identity
  /** '' where the server will generate it. */
  readonly name: string
  /** undefined: a deletion. An object of another kind for subresources that have one, such as Binding. */
  readonly object: AnyObject | undefined
  /** undefined: it is being created. */
  readonly old: AnyObject | undefined
  readonly query: URLSearchParams
  readonly dryRun: boolean
  readonly signal: AbortSignal
  /** When the first webhook of the request was about to be called, by `nowMs` of the gate. */
  readonly startedMs: number
  /** Takes what webhooks have for the user, and for the audit log. */
  readonly trail: WebhookTrail
}

export type WebhookTrail = {
  readonly warn: (text: string) => void
  readonly annotate: (key: string, value: string) => void
}

export interface WebhookGate {
  /** Monotonic time: all webhooks of one request share one deadline. */
  nowMs(): number
  /** Whether a webhook may want to see this operation; without one nothing needs to be prepared. */
  concerns(route: ResourceRoute, operation: Operation): Promise<boolean>
  /** The object after all mutating webhooks, not decoded yet. Throws the ApiError of a refusal. */
  mutate(write: ReviewedWrite): Promise<unknown>
  /** Throws the ApiError of a refusal. */
  validate(write: ReviewedWrite): Promise<void>
}

export type RequestWebhooks = {
  /** Warnings of all webhooks so far. */
  readonly warnings: readonly string[]
  /** The given object itself when nothing changed it. */
  mutate(object: AnyObject | undefined, old: AnyObject | undefined, name?: string): Promise<unknown>
  validate(object: AnyObject | undefined, old: AnyObject | undefined, name?: string): Promise<void>
}

const mostWarnings = 50

/** The webhooks of one request; undefined: none is concerned. */
export async function webhooksOf(
  { route, identity, query, signal, annotate }: ResourceRequest,
  gate: WebhookGate | undefined,
  operation: Operation,
  dryRun: boolean,
): Promise<RequestWebhooks | undefined> {
  if (gate === undefined || !(await gate.concerns(route, operation))) return undefined
  const warnings: string[] = []
  const trail: WebhookTrail = {
    warn: (text) => {
      if (warnings.length < mostWarnings && !warnings.includes(text)) warnings.push(text)
    },
    annotate: (key, value) => annotate?.(key, value),
  }
  const startedMs = gate.nowMs()
  const write = (object: AnyObject | undefined, old: AnyObject | undefined, name = route.name): ReviewedWrite => {
    return { operation, route, identity, query, dryRun, signal, startedMs, trail, object, old, name }
  }
  return {
    warnings,
    mutate: (object, old, name) => gate.mutate(write(object, old, name)),
    validate: (object, old, name) => gate.validate(write(object, old, name)),
  }
}
