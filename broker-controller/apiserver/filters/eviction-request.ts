/** Evictions that a part of this program requests from its own API: budgets, webhooks, policies and the audit log have their part. */
import { type EvictedPod, type EvictionAnswer, evictionAnswer } from '../../../api/pod/eviction-answer.ts'
import type { LocalAnswer, LocalRequest } from './in-process-api.ts'

/** Evicts this pod only, not another one that has its name by then. `request` never rejects. */
export async function requestEviction(
  { namespace, name, uid }: EvictedPod,
  request: (request: LocalRequest) => Promise<LocalAnswer>,
): Promise<EvictionAnswer> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`
  const deleteOptions = { preconditions: { uid } }
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions }
  const { code } = await request({ method: 'POST', path, body })
  return evictionAnswer(code)
}
