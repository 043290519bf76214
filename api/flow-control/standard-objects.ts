/** The priority levels and flow schemas that every cluster has (apiserver, pkg/apis/flowcontrol/bootstrap/default.go). */
import type { FlowRule, FlowSchema, FlowSubject } from './flow-schema.ts'
import type { PriorityLevelConfiguration } from './priority-level-configuration.ts'

export const standardPriorityLevels: readonly PriorityLevelConfiguration[] = [
  level('exempt', { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } }),
  level('catch-all', {
    type: 'Limited',
    limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: 'Reject' } },
  }),
  queuing('system', 30, 33, 64, 6),
  queuing('node-high', 40, 25, 64, 6),
  queuing('leader-election', 10, 0, 16, 4),
  queuing('workload-high', 40, 50, 128, 6),
  queuing('workload-low', 100, 90, 128, 6),
  queuing('global-default', 20, 50, 128, 6),
]

const everyone = groups('system:unauthenticated', 'system:authenticated')
const kubeSystemAccounts: FlowSubject = {
  kind: 'ServiceAccount',
  serviceAccount: { namespace: 'kube-system', name: '*' },
}
const everything = {
  resourceRules: [resourceRule(['*'], ['*'], ['*'], true)],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
}
const leases = (verbs: readonly string[]) => resourceRule(verbs, ['coordination.k8s.io'], ['leases'], false)

export const standardFlowSchemas: readonly FlowSchema[] = [
  flow('exempt', 'exempt', 1, undefined, { subjects: groups('system:masters'), ...everything }),
  flow('probes', 'exempt', 2, undefined, {
    subjects: everyone,
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/readyz', '/livez'] }],
  }),
  flow('system-leader-election', 'leader-election', 100, 'ByUser', {
    subjects: [...users('system:kube-controller-manager', 'system:kube-scheduler'), kubeSystemAccounts],
    resourceRules: [leases(['get', 'create', 'update'])],
  }),
  flow('system-node-high', 'node-high', 400, 'ByUser', {
    subjects: groups('system:nodes'),
    resourceRules: [resourceRule(['*'], [''], ['nodes', 'nodes/status'], true), leases(['*'])],
  }),
  flow('system-nodes', 'system', 500, 'ByUser', { subjects: groups('system:nodes'), ...everything }),
  flow('kube-controller-manager', 'workload-high', 800, 'ByNamespace', {
    subjects: users('system:kube-controller-manager'),
    ...everything,
  }),
  flow('kube-scheduler', 'workload-high', 800, 'ByNamespace', {
    subjects: users('system:kube-scheduler'),
    ...everything,
  }),
  flow('kube-system-service-accounts', 'workload-high', 900, 'ByNamespace', {
    subjects: [kubeSystemAccounts],
    ...everything,
  }),
  flow('service-accounts', 'workload-low', 9000, 'ByUser', {
    subjects: groups('system:serviceaccounts'),
    ...everything,
  }),
  flow('global-default', 'global-default', 9900, 'ByUser', { subjects: everyone, ...everything }),
  flow('catch-all', 'catch-all', 10_000, 'ByUser', { subjects: everyone, ...everything }),
]

function metadata(name: string): PriorityLevelConfiguration['metadata'] {
  return { name, annotations: { 'apf.kubernetes.io/autoupdate-spec': 'true' } }
}

function level(name: string, spec: PriorityLevelConfiguration['spec']): PriorityLevelConfiguration {
  return {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'PriorityLevelConfiguration',
    metadata: metadata(name),
    spec,
  }
}

function queuing(name: string, shares: number, lendablePercent: number, queues: number, handSize: number) {
  const limitResponse = { type: 'Queue', queuing: { queues, handSize, queueLengthLimit: 50 } }
  return level(name, { type: 'Limited', limited: { nominalConcurrencyShares: shares, lendablePercent, limitResponse } })
}

function flow(name: string, levelName: string, precedence: number, by: string | undefined, rule: FlowRule): FlowSchema {
  return {
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    kind: 'FlowSchema',
    metadata: metadata(name),
    spec: {
      priorityLevelConfiguration: { name: levelName },
      matchingPrecedence: precedence,
      ...(by !== undefined && { distinguisherMethod: { type: by } }),
      rules: [rule],
    },
  }
}

function resourceRule(
  verbs: readonly string[],
  apiGroups: readonly string[],
  resources: readonly string[],
  clusterScope: boolean,
) {
  return { verbs, apiGroups, resources, namespaces: ['*'], ...(clusterScope && { clusterScope }) }
}

function groups(...names: readonly string[]): readonly FlowSubject[] {
  return names.map((name) => ({ kind: 'Group', group: { name } }))
}

function users(...names: readonly string[]): readonly FlowSubject[] {
  return names.map((name) => ({ kind: 'User', user: { name } }))
}
