/** Where a write meets the Pod Security Standards: after validation, before validating webhooks. */
import type { AnyObject } from '../../../api/meta.ts'
import type { SecuredPod } from '../../../api/pod-security/security-check.ts'
import type { ResourceNeeds, ResourceRequest } from './strategy.ts'

/** Pods are refused; of a template its author is warned; the labels of a namespace decide which. */
export type SecuredKind<T> =
  | { readonly judges: 'namespace' }
  | {
      readonly judges: 'pod' | 'template'
      /** undefined: a workload without a template. */
      parts(object: T): SecuredPod | undefined
    }

/** A valid object on its way into the store. */
export type SecuredWrite = {
  readonly request: Pick<ResourceRequest, 'route' | 'identity' | 'annotate' | 'signal'>
  readonly object: AnyObject
  /** undefined: it is being created. */
  readonly old: AnyObject | undefined
}

export interface PodSecurityGate {
  /** Warnings for the author. Throws the ApiError of a refusal. */
  judge(write: SecuredWrite, kind: SecuredKind<AnyObject>): Promise<readonly string[]>
}

/** Warnings for this write. Throws the ApiError of a refusal. */
export async function podSecurityWarnings(
  request: ResourceRequest,
  object: AnyObject,
  old: AnyObject | undefined,
  { podSecurity }: Pick<ResourceNeeds, 'podSecurity'>,
): Promise<readonly string[]> {
  const { podSecurity: kind } = request.route.resource
  return kind === undefined || podSecurity === undefined ? [] : podSecurity.judge({ request, object, old }, kind)
}
