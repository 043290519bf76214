/**
 * The cluster roles and bindings that every fleet has, with the rights that Kubernetes gives them
 * (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go). Left out are those of Kubernetes' own controllers, which are
 * parts of this program and use no roles.
 */
import type { ClusterRole } from '../../api/access/cluster-role.ts'
import type { ClusterRoleBinding } from '../../api/access/cluster-role-binding.ts'
import { kiosksGroup } from '../../api/access/kiosk-link.ts'
import { type PolicyRule, type Role, rbacGroup } from '../../api/access/role.ts'
import type { RoleBinding, Subject } from '../../api/access/role-binding.ts'
import { serviceAccountsGroup } from '../../api/access/service-account-names.ts'
import {
  anonymous,
  authenticatedGroup,
  homeAssistantIdentity,
  maintenanceIdentity,
  mastersGroup,
} from '../../api/identity.ts'
import { rolloutKey } from '../../api/node/agent-rollout.ts'
import { onResources, readVerbs } from './rule-words.ts'
import { adminRules, editRules, viewRules } from './user-roles.ts'

const apiVersion = 'rbac.authorization.k8s.io/v1'
const onPaths = (...nonResourceURLs: readonly string[]): PolicyRule => ({ verbs: ['get'], nonResourceURLs })
const onNamed = (rule: PolicyRule, ...resourceNames: readonly string[]): PolicyRule => ({ ...rule, resourceNames })
const eventRules: readonly PolicyRule[] = [
  onResources('create patch update', '', 'events'),
  onResources('create patch update', 'events.k8s.io', 'events'),
]
const reviewRules: readonly PolicyRule[] = [
  onResources('create', 'authentication.k8s.io', 'tokenreviews'),
  onResources('create', 'authorization.k8s.io', 'subjectaccessreviews'),
]
const evictions = onResources('create', '', 'pods/eviction')
const health = ['/livez', '/readyz', '/healthz']
const version = ['/version', '/version/']
const everything: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

const plainRoles: { readonly [name: string]: readonly PolicyRule[] } = {
  'cluster-admin': everything,
  'system:discovery': [onPaths(...health, ...version, '/openapi', '/openapi/*', '/api', '/api/*', '/apis', '/apis/*')],
  'system:monitoring': [
    onPaths(
      '/metrics',
      '/metrics/slis',
      '/metrics/fleet',
      '/fleet/*',
      ...health,
      '/livez/*',
      '/readyz/*',
      '/healthz/*',
    ),
  ],
  'system:basic-user': [
    onResources('create', 'authorization.k8s.io', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'),
    onResources('create', 'authentication.k8s.io', 'selfsubjectreviews'),
  ],
  'system:public-info-viewer': [onPaths(...health, ...version)],
  'system:service-account-issuer-discovery': [
    onPaths(
      '/.well-known/openid-configuration',
      '/.well-known/openid-configuration/',
      '/openid/v1/jwks',
      '/openid/v1/jwks/',
    ),
  ],
  'system:auth-delegator': reviewRules,
  'system:node': nodeRules(),
  'system:node-bootstrapper': [
    onResources('create get list watch', 'certificates.k8s.io', 'certificatesigningrequests'),
  ],
  'system:node-problem-detector': [
    onResources('get', '', 'nodes'),
    onResources('patch', '', 'nodes/status'),
    ...eventRules,
  ],
  'system:kubelet-api-admin': [
    onResources(readVerbs, '', 'nodes'),
    onResources('proxy', '', 'nodes'),
    onResources('*', '', 'nodes/proxy', 'nodes/metrics', 'nodes/stats', 'nodes/log'),
  ],
  'system:node-proxier': [
    onResources('list watch', '', 'services', 'endpoints'),
    onResources(readVerbs, '', 'nodes'),
    ...eventRules,
    onResources('list watch', 'discovery.k8s.io', 'endpointslices'),
  ],
  'system:kube-dns': [onResources('list watch', '', 'endpoints', 'services')],
  'system:kube-scheduler': schedulerRules(),
  'system:volume-scheduler': [
    onResources('get list watch update patch', '', 'persistentvolumes'),
    onResources(readVerbs, 'storage.k8s.io', 'storageclasses'),
    onResources('get list watch update patch', '', 'persistentvolumeclaims'),
  ],
  'system:persistent-volume-provisioner': [
    onResources('get list watch create delete', '', 'persistentvolumes'),
    onResources('get list watch update', '', 'persistentvolumeclaims'),
    onResources(readVerbs, 'storage.k8s.io', 'storageclasses'),
    onResources('watch', '', 'events'),
    ...eventRules,
  ],
  'bramble:kiosk': kioskRules(),
  [homeAssistantIdentity.user]: homeAssistantRules(),
  [maintenanceIdentity.user]: [evictions],
  'bramble:metrics-reader': metricsReaderRules(),
  ...certificateRoles(),
}

/** What a read-only link to the dashboard shows: no logs, no Secrets, and no environment of containers beyond what Pods hold. */
function kioskRules(): readonly PolicyRule[] {
  return [
    onResources(readVerbs, '', 'nodes', 'pods', 'events', 'namespaces'),
    onResources(readVerbs, 'apps', 'deployments', 'statefulsets', 'daemonsets'),
    onResources(readVerbs, 'metrics.k8s.io', 'nodes'),
  ]
}

/** What the buttons of Home Assistant do with machines: cordon, uncordon, drain, request a reboot, and let them update. */
function homeAssistantRules(): readonly PolicyRule[] {
  return [onResources('get patch', '', 'nodes'), evictions]
}

/** All that a Prometheus scrapes, and what it discovers nodes by. Without `nodes/proxy`, which opens the whole node. */
function metricsReaderRules(): readonly PolicyRule[] {
  return [
    onPaths('/metrics', '/metrics/slis', '/metrics/fleet', '/fleet/*'),
    onResources(readVerbs, '', 'nodes'),
    onResources('get', '', 'nodes/metrics', 'nodes/stats'),
  ]
}

/** A person who approves requests also needs the right to write the approval. */
function certificateRoles(): { readonly [name: string]: readonly PolicyRule[] } {
  const prefix = 'system:certificates.k8s.io:'
  const group = 'certificates.k8s.io'
  const signers = ['legacy-unknown', 'kubelet-serving', 'kube-apiserver-client', 'kube-apiserver-client-kubelet']
  const approvers = signers.map((signer) => [
    `${prefix}${signer}-approver`,
    [onNamed(onResources('approve', group, 'signers'), `kubernetes.io/${signer}`)],
  ])
  const clients = ['nodeclient', 'selfnodeclient'].map((client) => [
    `${prefix}certificatesigningrequests:${client}`,
    [onResources('create', group, `certificatesigningrequests/${client}`)],
  ])
  return Object.fromEntries([...approvers, ...clients])
}

/** The fixed rules for nodes are narrower; the role exists for bindings that name it. */
function nodeRules(): readonly PolicyRule[] {
  return [
    onResources('create', 'authentication.k8s.io', 'tokenreviews'),
    onResources('create', 'authorization.k8s.io', 'subjectaccessreviews', 'localsubjectaccessreviews'),
    onResources(readVerbs, '', 'services'),
    onResources('create get list watch', '', 'nodes'),
    onResources('update patch', '', 'nodes/status', 'nodes'),
    onResources('create update patch', '', 'events'),
    onResources('get list watch create delete', '', 'pods'),
    onResources('update patch', '', 'pods/status'),
    onResources('create', '', 'pods/eviction'),
    onResources(readVerbs, '', 'secrets', 'configmaps'),
    onResources('get', '', 'persistentvolumeclaims', 'persistentvolumes', 'endpoints'),
    onResources('create get list watch', 'certificates.k8s.io', 'certificatesigningrequests'),
    onResources('get create update patch delete', 'coordination.k8s.io', 'leases'),
    onResources('get', 'storage.k8s.io', 'volumeattachments'),
    onResources('create', '', 'serviceaccounts/token'),
    onResources('get update patch', '', 'persistentvolumeclaims/status'),
    onResources(readVerbs, 'storage.k8s.io', 'csidrivers'),
    onResources('get create update patch delete', 'storage.k8s.io', 'csinodes'),
    onResources(readVerbs, 'node.k8s.io', 'runtimeclasses'),
  ]
}

/** For a scheduler of the operator's own beside the built-in one. */
function schedulerRules(): readonly PolicyRule[] {
  return [
    ...eventRules,
    onResources('create', 'coordination.k8s.io', 'leases'),
    onNamed(onResources('get update list watch', 'coordination.k8s.io', 'leases'), 'kube-scheduler'),
    onResources(readVerbs, '', 'nodes'),
    onResources('get list watch delete', '', 'pods'),
    onResources('create', '', 'pods/binding', 'bindings'),
    onResources('patch update', '', 'pods/status'),
    onResources(readVerbs, '', 'services', 'replicationcontrollers'),
    onResources(readVerbs, 'apps', 'replicasets', 'statefulsets'),
    onResources(readVerbs, 'policy', 'poddisruptionbudgets'),
    onResources(readVerbs, '', 'persistentvolumeclaims', 'persistentvolumes'),
    ...reviewRules,
    onResources(readVerbs, 'storage.k8s.io', 'csinodes', 'volumeattachments', 'csidrivers', 'csistoragecapacities'),
    onResources(readVerbs, '', 'namespaces'),
  ]
}

const aggregateLabel = (to: string) => ({ [`rbac.authorization.k8s.io/aggregate-to-${to}`]: 'true' })
const gathering = (to: string) => ({ clusterRoleSelectors: [{ matchLabels: aggregateLabel(to) }] })

export const defaultClusterRoles: readonly ClusterRole[] = [
  ...Object.entries(plainRoles).map(([name, rules]) => clusterRole(name, { rules })),
  clusterRole('admin', { aggregationRule: gathering('admin') }),
  clusterRole('edit', { aggregationRule: gathering('edit') }, aggregateLabel('admin')),
  clusterRole('view', { aggregationRule: gathering('view') }, aggregateLabel('edit')),
  clusterRole('system:aggregate-to-admin', { rules: adminRules }, aggregateLabel('admin')),
  clusterRole('system:aggregate-to-edit', { rules: editRules }, aggregateLabel('edit')),
  clusterRole('system:aggregate-to-view', { rules: viewRules }, aggregateLabel('view')),
  // metrics.k8s.io is a part of this program; elsewhere the manifest of metrics-server brings its role.
  clusterRole(
    'system:aggregated-metrics-reader',
    { rules: [onResources(readVerbs, 'metrics.k8s.io', 'pods', 'nodes')] },
    { ...aggregateLabel('admin'), ...aggregateLabel('edit'), ...aggregateLabel('view') },
  ),
]

const group = (name: string): Subject => ({ kind: 'Group', apiGroup: rbacGroup, name })
const user = (name: string): Subject => ({ kind: 'User', apiGroup: rbacGroup, name })
const unauthenticated = anonymous.groups.map(group)

export const defaultClusterRoleBindings: readonly ClusterRoleBinding[] = [
  clusterRoleBinding('cluster-admin', group(mastersGroup)),
  clusterRoleBinding('system:monitoring', group('system:monitoring')),
  clusterRoleBinding('system:discovery', group(authenticatedGroup)),
  clusterRoleBinding('system:basic-user', group(authenticatedGroup)),
  clusterRoleBinding('system:public-info-viewer', group(authenticatedGroup), ...unauthenticated),
  clusterRoleBinding('system:service-account-issuer-discovery', group(serviceAccountsGroup)),
  clusterRoleBinding('system:node-proxier', user('system:kube-proxy')),
  clusterRoleBinding('system:kube-dns', { kind: 'ServiceAccount', name: 'kube-dns', namespace: 'kube-system' }),
  clusterRoleBinding('system:kube-scheduler', user('system:kube-scheduler')),
  clusterRoleBinding('system:volume-scheduler', user('system:kube-scheduler')),
  clusterRoleBinding('bramble:kiosk', group(kiosksGroup)),
  clusterRoleBinding(homeAssistantIdentity.user, user(homeAssistantIdentity.user)),
  clusterRoleBinding(maintenanceIdentity.user, user(maintenanceIdentity.user)),
  // Without subjects, as in Kubernetes: nodes have the fixed rules.
  clusterRoleBinding('system:node'),
]

/** In namespaces (namespace_policy.go): for extension servers, whose accounts are bound to it. */
export const defaultRoles: readonly Role[] = [
  {
    apiVersion,
    kind: 'Role',
    metadata: { ...metadata('extension-apiserver-authentication-reader'), namespace: 'kube-system' },
    rules: [onNamed(onResources(readVerbs, '', 'configmaps'), 'extension-apiserver-authentication')],
  },
  {
    apiVersion,
    kind: 'Role',
    metadata: { ...metadata(homeAssistantIdentity.user), namespace: rolloutKey.namespace },
    // To create it by name is possible with an apply only.
    rules: [onNamed(onResources('get create patch', '', 'configmaps'), rolloutKey.name)],
  },
]

export const defaultRoleBindings: readonly RoleBinding[] = [
  {
    apiVersion,
    kind: 'RoleBinding',
    metadata: { ...metadata(homeAssistantIdentity.user), namespace: rolloutKey.namespace },
    roleRef: { apiGroup: rbacGroup, kind: 'Role', name: homeAssistantIdentity.user },
    subjects: [user(homeAssistantIdentity.user)],
  },
]

function metadata(name: string, labels: { readonly [key: string]: string } = {}) {
  return {
    name,
    labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
    annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
  }
}

function clusterRole(
  name: string,
  content: Pick<ClusterRole, 'rules' | 'aggregationRule'>,
  labels?: { readonly [key: string]: string },
): ClusterRole {
  return { apiVersion, kind: 'ClusterRole', metadata: metadata(name, labels), ...content }
}

function clusterRoleBinding(name: string, ...subjects: readonly Subject[]): ClusterRoleBinding {
  const roleRef = { apiGroup: rbacGroup, kind: 'ClusterRole', name }
  return { apiVersion, kind: 'ClusterRoleBinding', metadata: metadata(name), roleRef, subjects }
}
