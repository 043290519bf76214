/** Evictions of pods that a part of the controller asks its own API for: budgets, webhooks, policies and the audit log have their part. */
import { maintenanceIdentity } from '../../api/identity.ts'
import type { LocalAnswer, LocalRequest } from '../apiserver/filters/in-process-api.ts'
import type { MaintenanceNeeds } from '../controllers/maintenance/maintenance-controller.ts'

export type RequestAs = (
  identity: typeof maintenanceIdentity,
  request: LocalRequest,
  signal: AbortSignal,
) => Promise<LocalAnswer>

/** 201: it is evicted; 404: it is gone already. Everything else may change: a disruption budget answers with 429. */
export function apiEvictions(request: RequestAs): MaintenanceNeeds['evict'] {
  return async ({ namespace, name }, signal) => {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/eviction`
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name } }
    const { code } = await request(maintenanceIdentity, { method: 'POST', path, body }, signal)
    return code === 201 || code === 404 ? 'evicted' : 'held'
  }
}
