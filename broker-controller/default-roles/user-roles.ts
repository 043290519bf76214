/** The rules of the roles `admin`, `edit` and `view`. */
import { onResources, readVerbs, writeVerbs } from './rule-words.ts'

/** Beside `edit`: to grant rights to others. */
export const adminRules = [
  onResources('create', 'authorization.k8s.io', 'localsubjectaccessreviews'),
  onResources(`${readVerbs} ${writeVerbs}`, 'rbac.authorization.k8s.io', 'roles', 'rolebindings'),
]

const streams = ['pods/attach', 'pods/proxy', 'pods/exec', 'pods/portforward']
const workloads = [
  'statefulsets',
  'statefulsets/scale',
  'daemonsets',
  'deployments',
  'deployments/scale',
  'deployments/rollback',
  'replicasets',
  'replicasets/scale',
]

/**
 * Beside `view`. With it one acts as any service account of the namespace. Endpoints are not written: they would lead a Service into
 * another namespace (CVE-2021-25740).
 */
export const editRules = [
  onResources(readVerbs, '', ...streams, 'secrets', 'services/proxy'),
  onResources('impersonate', '', 'serviceaccounts'),
  onResources(writeVerbs, '', 'pods', ...streams),
  onResources('create', '', 'pods/eviction'),
  onResources(
    writeVerbs,
    '',
    'replicationcontrollers',
    'replicationcontrollers/scale',
    'serviceaccounts',
    'services',
    'services/proxy',
    'persistentvolumeclaims',
    'configmaps',
    'secrets',
    'events',
  ),
  onResources('create', '', 'serviceaccounts/token'),
  onResources(writeVerbs, 'apps', ...workloads),
  onResources(writeVerbs, 'autoscaling', 'horizontalpodautoscalers'),
  onResources(writeVerbs, 'batch', 'jobs', 'cronjobs'),
  onResources(writeVerbs, 'policy', 'poddisruptionbudgets'),
  onResources(writeVerbs, 'networking.k8s.io', 'networkpolicies', 'ingresses'),
  onResources(`${readVerbs} ${writeVerbs}`, 'coordination.k8s.io', 'leases'),
]

/** Neither Secrets nor roles: with either one could get more rights. */
export const viewRules = [
  onResources(
    readVerbs,
    '',
    'pods',
    'replicationcontrollers',
    'replicationcontrollers/scale',
    'serviceaccounts',
    'services',
    'services/status',
    'endpoints',
    'persistentvolumeclaims',
    'persistentvolumeclaims/status',
    'configmaps',
  ),
  onResources(
    readVerbs,
    '',
    'limitranges',
    'resourcequotas',
    'bindings',
    'events',
    'pods/status',
    'resourcequotas/status',
    'namespaces/status',
    'replicationcontrollers/status',
    'pods/log',
  ),
  onResources(readVerbs, '', 'namespaces'),
  onResources(readVerbs, 'discovery.k8s.io', 'endpointslices'),
  onResources(
    readVerbs,
    'apps',
    'controllerrevisions',
    'statefulsets',
    'statefulsets/status',
    'statefulsets/scale',
    'daemonsets',
    'daemonsets/status',
    'deployments',
    'deployments/status',
    'deployments/scale',
    'replicasets',
    'replicasets/status',
    'replicasets/scale',
  ),
  onResources(readVerbs, 'autoscaling', 'horizontalpodautoscalers', 'horizontalpodautoscalers/status'),
  onResources(readVerbs, 'batch', 'jobs', 'cronjobs', 'cronjobs/status', 'jobs/status'),
  onResources(readVerbs, 'policy', 'poddisruptionbudgets', 'poddisruptionbudgets/status'),
  onResources(readVerbs, 'networking.k8s.io', 'networkpolicies', 'ingresses', 'ingresses/status'),
]
