/** What a write to a subresource may change, and what it leaves alone. */
import type { CertificateSigningRequest } from '../../../api/certificate-signing-request.ts'
import type { ObjectMeta } from '../../../api/meta.ts'
import { forbidden, invalidObject } from '../../../api/problem.ts'
import type { Resource } from '../../../api/resources.ts'
import type { AnyObject } from '../wire/request-body.ts'
import type { AnyStored } from './watch.ts'

/** A write to the object itself: the status stays, where the kind has one of its own. */
export function withoutStatusChange(resource: Resource, present: AnyStored, wanted: AnyObject): AnyObject {
  return resource.subresources.includes('status') ? withStatus(wanted, statusOf(present)) : wanted
}

/** A write to `…/status`: the status, and what the kubelet writes with it, labels and annotations. */
export function statusChange(present: AnyStored, wanted: AnyObject): AnyObject {
  const status = isRequest(present) && isRequest(wanted) ? signedStatus(present, wanted) : statusOf(wanted)
  return withStatus(withMetadata(present, wanted.metadata), status)
}

/** A write to `…/ephemeralcontainers`: these, and nothing else of the pod. */
export function ephemeralChange(present: AnyStored, wanted: AnyObject): AnyObject {
  if (present.kind !== 'Pod' || wanted.kind !== 'Pod') return present
  const { ephemeralContainers: _, ...spec } = present.spec
  const { ephemeralContainers } = wanted.spec
  return { ...present, spec: { ...spec, ...(ephemeralContainers && { ephemeralContainers }) } }
}

/** A write to `…/approval`: the verdict and nothing else, whatever else the client sends along. */
export function approvalChange(resource: Resource, present: AnyStored, wanted: AnyObject, now: string): AnyObject {
  if (!isRequest(present) || !isRequest(wanted)) return present
  const conditions = (wanted.status?.conditions ?? []).map((condition) => ({
    lastUpdateTime: now,
    lastTransitionTime: now,
    ...condition,
  }))
  const types = conditions.map(({ type }) => type)
  if (types.includes('Approved') && types.includes('Denied')) {
    const problem = forbidden('status.conditions', 'Approved and Denied conditions are mutually exclusive')
    throw invalidObject(resource, present.metadata.name, [problem])
  }
  return { ...present, status: { ...present.status, conditions } }
}

/** Who signs may not take back, or make up, the verdict of who approves. */
function signedStatus(present: CertificateSigningRequest, wanted: CertificateSigningRequest) {
  const isVerdict = ({ type }: { readonly type: string }) => type === 'Approved' || type === 'Denied'
  const verdict = (present.status?.conditions ?? []).filter(isVerdict)
  const others = (wanted.status?.conditions ?? []).filter((condition) => !isVerdict(condition))
  const conditions = [...verdict, ...others]
  return { ...wanted.status, ...(conditions.length > 0 && { conditions }) }
}

function withMetadata(present: AnyStored, { labels, annotations, finalizers }: ObjectMeta): AnyObject {
  const { labels: _, annotations: __, finalizers: ___, ...kept } = present.metadata
  const metadata = {
    ...kept,
    ...(labels && { labels }),
    ...(annotations && { annotations }),
    ...(finalizers && { finalizers }),
  }
  return { ...present, metadata }
}

function withStatus(object: AnyObject, status: unknown): AnyObject {
  const { status: _, ...rest } = object as AnyObject & { readonly status?: unknown }
  return (status === undefined ? rest : { ...rest, status }) as AnyObject
}

function statusOf(object: AnyObject): unknown {
  return 'status' in object ? object.status : undefined
}

function isRequest(object: AnyObject): object is CertificateSigningRequest {
  return object.kind === 'CertificateSigningRequest'
}
